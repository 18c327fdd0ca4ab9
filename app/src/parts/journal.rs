//! Lines of the journal, as a table on wide screens and as a list on narrow ones.

use super::{text::foreign, time::Ago};
use cloudhal_domain::{link, view::JournalRow};
use leptos::prelude::*;

pub fn journal(rows: Vec<JournalRow>) -> AnyView {
    let rows = rows.into_iter().map(row).collect_view();
    view! {
        <table class="table journal">
            <thead>
                <tr>
                    <th scope="col">"When"</th>
                    <th scope="col">"Who"</th>
                    <th scope="col">"What"</th>
                    <th scope="col" class="end">"Entry"</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(row: JournalRow) -> AnyView {
    let short: String = row
        .hash
        .trim_start_matches("sha256:")
        .chars()
        .take(10)
        .collect();
    let sentence = foreign(&row.sentence);
    let what = match row.approval {
        Some(id) => {
            leptos::either::Either::Left(view! { <a href=link::approval(&id)>{sentence}</a> })
        }
        None => leptos::either::Either::Right(sentence),
    };
    view! {
        <tr>
            <td class="when"><Ago at=row.at/></td>
            <td class="by">{foreign(&row.actor)}</td>
            <td class="what">{what}</td>
            <td class="end"><code class="hush" title=row.hash>{format!("{} · {short}", row.seq)}</code></td>
        </tr>
    }
    .into_any()
}
