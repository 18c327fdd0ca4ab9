//! Every published state of a site, and the way back to one.

use crate::{
    api,
    live::Live,
    parts::{
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        page::{Empty, window_title},
        query,
        text::foreign,
        time::Ago,
    },
    words,
};
use cloudhal_domain::{
    link,
    view::{VersionRow, VersionsView},
};
use leptos::{either::Either, prelude::*};
use leptos_router::hooks::{use_params_map, use_query_map};

#[component]
pub fn Versions() -> impl IntoView {
    let (params, map) = (use_params_map(), use_query_map());
    let which = Memo::new(move |_| {
        let slug = params.with(|p| p.get("slug").unwrap_or_default());
        (slug, map.with(|m| m.get("cursor")))
    });
    let versions = ask(
        move || which.get(),
        |(slug, cursor)| api::versions(slug, cursor),
    );
    Live::get().refetch_on(versions, |_| true);
    let key = Signal::derive(move || which.with(|(slug, cursor)| format!("{slug}/{cursor:?}")));
    window_title(Signal::derive(move || {
        which.with(|(slug, _)| format!("Versions · {slug}"))
    }));
    view! {
        <section class="screen">
            <Notice/>
            {loaded(versions, key, show)}
        </section>
    }
    .into_any()
}

fn show(view: VersionsView) -> AnyView {
    let slug = view.site.slug.clone();
    let list = if view.versions.is_empty() {
        Either::Left(
            view! { <Empty title="Nothing was published yet"><p>"The first publish makes version 1."</p></Empty> },
        )
    } else {
        let rows = view
            .versions
            .iter()
            .map(|row| version(row, &view))
            .collect_view();
        Either::Right(view! { <ol class="versions">{rows}</ol> })
    };
    let next = view.next_cursor.as_ref().map(|cursor| {
        let to = query::with_query(&link::versions(&slug), &[("cursor", Some(cursor))]);
        view! { <a class="btn" href=to>"Older versions"</a> }
    });
    view! {
        <header class="head">
            <nav class="crumbs" aria-label="Where you are">
                <a href=link::SITES>"Sites"</a>
                <a href=link::site(&slug)>{foreign(&view.site.title)}</a>
            </nav>
            <h1 tabindex="-1">"Versions"</h1>
            <p class="by">"Each publish made one, and none of them ever changes. Rolling back shows an older one to the public; the draft stays as it is."</p>
        </header>
        {list}
        <nav class="pager" aria-label="Pages">{next}</nav>
    }
    .into_any()
}

fn version(row: &VersionRow, view: &VersionsView) -> AnyView {
    let standing = if row.live {
        Either::Left(view! { <span class="badge yes">{icon("yes")}"Live now"</span> })
    } else {
        Either::Right(view.site.role.may_act().then(|| rollback(row, view)))
    };
    let approval = row
        .approval
        .as_ref()
        .map(|id| view! { " · " <a href=link::approval(id)>"the approval"</a> });
    view! {
        <li class="version" class:is-live=row.live>
            <p class="number num">{row.version}</p>
            <div class="about">
                <p><b>{foreign(&row.author)}</b> " " <span class="hush"><Ago at=row.at/></span> {approval}</p>
                <p class="hush small num">{delta(row)}</p>
            </div>
            <div class="standing">{standing}</div>
        </li>
    }
    .into_any()
}

fn delta(row: &VersionRow) -> String {
    let part = |n: i64, word: &str| (n > 0).then(|| format!("{} {word}", words::digits(n)));
    let mut parts: Vec<_> = [
        part(row.edited, "edited"),
        part(row.added, "new"),
        part(row.removed, "removed"),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.push(words::count(row.node_count, "page in all", "pages in all"));
    parts.join(" · ")
}

fn rollback(row: &VersionRow, view: &VersionsView) -> AnyView {
    let version = row.version;
    view! {
        <details class="inline">
            <summary class="btn small">{icon("undo")}"Roll back to this"</summary>
            <form method="post" action=format!("/sites/{}/rollback", view.site.slug)>
                <input type="hidden" name="version" value=version.to_string()/>
                <input type="hidden" name="stateHash" value=view.state_hash.clone()/>
                <p class="small">{format!("The public sees version {version} at once. The draft stays as it is.")}</p>
                <button class="btn yes">{format!("Show version {version}")}</button>
            </form>
        </details>
    }
    .into_any()
}
