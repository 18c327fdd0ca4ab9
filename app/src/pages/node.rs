//! One page of the draft: as it reads, as it is written, how it differs from what is live, and how it came to be.

use super::site::pages;
use crate::{
    api,
    live::Live,
    parts::{
        badge, diff,
        frame::frame,
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        page::window_title,
        text::{digest, foreign},
        time::Ago,
    },
    words,
};
use cloudhal_domain::{
    id::NodeId,
    link,
    view::{NodeView, RevisionRow},
};
use leptos::{either::Either, prelude::*};
use leptos_router::hooks::use_params_map;
use serde_json::Value;

#[component]
pub fn Node() -> impl IntoView {
    let params = use_params_map();
    let which = Memo::new(move |_| {
        params.with(|p| {
            (
                p.get("slug").unwrap_or_default(),
                p.get("node").unwrap_or_default(),
            )
        })
    });
    let node = ask(
        move || which.get(),
        |(slug, node)| api::node(slug, NodeId::new(node)),
    );
    Live::get().refetch_on(node, |_| true);
    let key = Signal::derive(move || which.with(|(slug, node)| format!("{slug}/{node}")));
    window_title(Signal::derive(move || {
        which.with(|(slug, _)| format!("Page · {slug}"))
    }));
    view! {
        <section class="screen">
            <Notice/>
            {loaded(node, key, show)}
        </section>
    }
    .into_any()
}

fn show(view: NodeView) -> AnyView {
    let node = &view.node;
    let slug = view.site.slug.clone();
    let live = view.live_url.clone().map(|url| {
        view! { <a class="btn" href=url target="_blank" rel="noopener external">{icon("out")}"See it live"</a> }
    });
    let below = (!view.children.is_empty()).then(|| {
        view! {
            <section aria-labelledby="below-title">
                <h2 id="below-title">"Below this page"</h2>
                {pages(view.children.clone(), &slug)}
            </section>
        }
    });
    view! {
        <header class="head">
            {crumbs(&view)}
            <h1 tabindex="-1">{foreign(&node.title)}</h1>
            <p class="eyebrow">
                {badge::badge(words::node_status(node.status))}
                <code class="hush"><bdi>{format!("/{}", node.path)}</bdi></code>
                <span class="hush">{node.kind.clone()} ", changed " <Ago at=node.updated_at/></span>
            </p>
            {view.description.as_deref().map(|text| view! { <p class="by">{foreign(text)}</p> })}
            <p class="ways">{live}</p>
        </header>
        {difference(&view)}
        {content(&view)}
        {fields(&view)}
        {below}
        {history(&view)}
        {delete(&view)}
    }
    .into_any()
}

fn crumbs(view: &NodeView) -> AnyView {
    let slug = view.site.slug.clone();
    let parents = view
        .parents
        .iter()
        .map(|parent| {
            view! { <a href=link::node(&slug, &parent.id)>{foreign(&parent.title)}</a> }
        })
        .collect_view();
    view! {
        <nav class="crumbs" aria-label="Where you are">
            <a href=link::SITES>"Sites"</a>
            <a href=link::site(&slug)>{foreign(&view.site.title)}</a>
            {parents}
        </nav>
    }
    .into_any()
}

fn difference(view: &NodeView) -> impl IntoView + use<> {
    let diff = view.diff.clone().filter(|diff| !diff.fields.is_empty())?;
    Some(view! {
        <section aria-labelledby="diff-title">
            <h2 id="diff-title">"Not live yet"</h2>
            {diff::nodes(vec![diff], None, view.site.live_version)}
        </section>
    })
}

/// Rendered in a frame that can run nothing; the Markdown beside it, as it is.
fn content(view: &NodeView) -> AnyView {
    let src = link::draft_preview(&view.site.slug, &view.node.id);
    let source = if view.body.trim().is_empty() {
        Either::Left(view! { <p class="quiet">"This page has no text of its own."</p> })
    } else {
        Either::Right(view! { <pre class="source"><code>{foreign(&view.body)}</code></pre> })
    };
    view! {
        <section aria-labelledby="content-title">
            <h2 id="content-title">"Content"</h2>
            <div class="pair">
                <figure class="frame">
                    <figcaption><span>"As it would read"</span><a href=src.clone() target="_blank" rel="noopener external">"Open full page"</a></figcaption>
                    {frame(src, "The draft, rendered".into())}
                </figure>
                <figure class="frame">
                    <figcaption><span>"Markdown"</span></figcaption>
                    {source}
                </figure>
            </div>
        </section>
    }
    .into_any()
}

fn fields(view: &NodeView) -> AnyView {
    let rows: Vec<_> = view
        .fields
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            view! {
                <dt>{foreign(name)}</dt>
                <dd>{foreign(&text)}</dd>
            }
        })
        .collect();
    view! {
        <section aria-labelledby="fields-title">
            <h2 id="fields-title">"Facts"</h2>
            <dl class="facts">
                {rows.collect_view()}
                <dt>"Revision"</dt>
                <dd class="num">{view.rev}</dd>
                <dt>"Content"</dt>
                <dd>{digest(&view.hash)}</dd>
                <dt>"Id for tools"</dt>
                <dd><code class="digest">{view.node.id.to_string()}</code></dd>
            </dl>
        </section>
    }
    .into_any()
}

fn history(view: &NodeView) -> AnyView {
    let rows = view.history.iter().map(revision).collect_view();
    view! {
        <section aria-labelledby="history-title">
            <h2 id="history-title">"How it came to be"</h2>
            <table class="table">
                <thead>
                    <tr>
                        <th scope="col" class="end">"Revision"</th>
                        <th scope="col">"Title"</th>
                        <th scope="col">"By"</th>
                        <th scope="col">"When"</th>
                        <th scope="col">"Published in"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </section>
    }
    .into_any()
}

fn revision(row: &RevisionRow) -> AnyView {
    let published = row
        .published_in
        .map_or("not yet".to_string(), |v| format!("version {v}"));
    view! {
        <tr>
            <td class="end num">{row.rev}</td>
            <td>{foreign(&row.title)}</td>
            <td>{foreign(&row.author)}</td>
            <td><Ago at=row.at/></td>
            <td class="num hush">{published}</td>
        </tr>
    }
    .into_any()
}

fn delete(view: &NodeView) -> impl IntoView + use<> {
    let action = format!("/sites/{}/nodes/{}/delete", view.site.slug, view.node.id);
    let below = match view.node.children {
        0 => String::new(),
        n => format!(" with the {} below it", words::count(n, "page", "pages")),
    };
    let state = view.state_hash.clone();
    view.site.role.may_act().then(|| {
        view! {
            <details class="box danger">
                <summary>"Delete this page"</summary>
                <form method="post" action=action>
                    <p>{format!("Takes this page{below} out of the draft. What is live stays until the next publish.")}</p>
                    <input type="hidden" name="stateHash" value=state/>
                    <button class="btn no">{icon("no")}"Delete from the draft"</button>
                </form>
            </details>
        }
    })
}
