//! One site: what is live, what a publish would change, its pages, and what happened lately.

use crate::{
    api,
    live::Live,
    parts::{
        badge, card,
        icon::icon,
        journal::journal,
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
    card::{Card, NodeChange},
    link,
    view::{NodeRow, SiteRow, SiteView},
};
use leptos::{either::Either, prelude::*};
use leptos_router::hooks::use_params_map;

#[component]
pub fn Site() -> impl IntoView {
    let params = use_params_map();
    let slug = Memo::new(move |_| params.with(|p| p.get("slug").unwrap_or_default()));
    let site = ask(move || slug.get(), api::site);
    Live::get().refetch_on(site, |_| true);
    window_title(Signal::derive(move || format!("{} · Sites", slug.get())));
    view! {
        <section class="screen">
            <Notice/>
            {loaded(site, slug.into(), show)}
        </section>
    }
    .into_any()
}

fn show(view: SiteView) -> AnyView {
    let site = &view.site;
    let waiting = (site.waiting > 0).then(|| {
        view! { <a class="btn" href=query::inbox(link::APPROVALS, &waiting_here(site))>{words::count(site.waiting, "request waits", "requests wait")}</a> }
    });
    let live = site.live_version.map(|_| {
        view! { <a class="btn" href=view.live_url.clone() target="_blank" rel="noopener external">{icon("out")}"See it live"</a> }
    });
    view! {
        <header class="head">
            <nav class="crumbs" aria-label="Where you are"><a href=link::SITES>"Sites"</a></nav>
            <h1 tabindex="-1">{foreign(&site.title)}</h1>
            <p class="by">{standing(site)}</p>
            <p class="ways">
                {live}
                <a class="btn" href=link::versions(&site.slug)>"Versions"</a>
                <a class="btn" href=link::settings(&site.slug)>"Settings"</a>
                {waiting}
            </p>
        </header>
        {publish(&view)}
        <section aria-labelledby="pages-title">
            <h2 id="pages-title">"Pages of the draft"</h2>
            {pages(view.nodes.clone(), &site.slug)}
        </section>
        <section aria-labelledby="recent-title">
            <h2 id="recent-title">"Lately"</h2>
            {journal(view.recent.clone())}
            <p class="small"><a href=query::with_query(link::JOURNAL, &[("site", Some(&site.slug))])>"The whole journal of this site"</a></p>
        </section>
        {delete(&view)}
    }
    .into_any()
}

fn waiting_here(site: &SiteRow) -> cloudhal_domain::view::InboxQuery {
    cloudhal_domain::view::InboxQuery {
        site: Some(site.slug.clone()),
        ..Default::default()
    }
}

fn standing(site: &SiteRow) -> AnyView {
    let live = match (site.live_version, site.live_at) {
        (Some(version), Some(at)) => Either::Left(
            view! { {format!("Version {version} is live, published ")} <Ago at/> ". " },
        ),
        _ => Either::Right("Nothing is live yet. "),
    };
    view! { {live} {words::count(site.node_count, "page", "pages")} " in the draft. " {words::role(site.role)} "." }.into_any()
}

/// What a publish would do now, and the button for those who may.
fn publish(view: &SiteView) -> impl IntoView + use<> {
    let card = &view.publish_card;
    let total = card.changes.as_ref().map_or(0, |changes| changes.total);
    if total == 0 {
        return Either::Left(view! {
            <section class="box calm">
                <h2>"The draft equals what is live"</h2>
                <p class="quiet">"When an agent or a person edits a page, what would change stands here."</p>
            </section>
        });
    }
    let slug = view.site.slug.clone();
    let state = view.state_hash.clone();
    let empty = card.site.node_count == 0;
    let note = empty.then(|| view! { <p class="quiet">"There is no page left, and a site cannot be published without one. To take it all off the web, delete the site."</p> });
    let form = (view.site.role.may_act() && !empty).then(|| {
        view! {
            <form method="post" action=format!("/sites/{slug}/publish")>
                <input type="hidden" name="stateHash" value=state/>
                <button class="btn yes">{icon("yes")}"Publish now"</button>
                <span class="hush small">"You act yourself, so it runs at once and is journaled."</span>
            </form>
        }
    });
    Either::Right(view! {
        <section class="box publish" aria-labelledby="publish-title">
            <h2 id="publish-title" class="sentence">{foreign(&card.sentence)}"?"</h2>
            <p class="quiet">{card.consequence.clone()}</p>
            {card.changes.as_ref().map(card::summary)}
            {changed(card, &view.site.slug)}
            {note}
            {form}
        </section>
    })
}

fn changed(card: &Card, slug: &str) -> AnyView {
    const SHOWN: usize = 12;
    let nodes: &[NodeChange] = card.changes.as_ref().map_or(&[], |changes| &changes.nodes);
    let total = card.changes.as_ref().map_or(0, |changes| changes.total);
    let items = nodes.iter().take(SHOWN).map(|change| {
        let title = foreign(&change.title);
        let title = match change.after {
            Some(_) => Either::Left(view! { <a href=link::node(slug, &change.node)>{title}</a> }),
            None => Either::Right(title),
        };
        view! { <li>{title} " " <code class="hush"><bdi>{format!("/{}", change.path)}</bdi></code> " " <span class="hush">{change.change.in_words()}</span></li> }
    }).collect_view();
    let more = total - nodes.len().min(SHOWN) as i64;
    view! {
        <ul class="moved">
            {items}
            {(more > 0).then(|| view! { <li class="hush">{format!("and {} more", words::digits(more))}</li> })}
        </ul>
    }
    .into_any()
}

/// A table of nodes, for a site's top level and for a node's children.
pub fn pages(nodes: Vec<NodeRow>, slug: &str) -> impl IntoView + use<> {
    if nodes.is_empty() {
        return Either::Left(
            view! { <Empty title="No page yet"><p>"Pages that agents or people add stand here."</p></Empty> },
        );
    }
    let rows = nodes
        .into_iter()
        .map(|node| page_row(node, slug))
        .collect_view();
    Either::Right(view! {
        <table class="table pages">
            <thead>
                <tr>
                    <th scope="col">"Page"</th>
                    <th scope="col">"Address"</th>
                    <th scope="col" class="end">"Below"</th>
                    <th scope="col">"Standing"</th>
                    <th scope="col" class="end">"Changed"</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    })
}

fn page_row(node: NodeRow, slug: &str) -> AnyView {
    let symbol = if node.kind == "collection" || node.children > 0 {
        "folder"
    } else {
        "page"
    };
    let below = if node.children > 0 {
        words::digits(node.children)
    } else {
        "–".into()
    };
    view! {
        <tr>
            <td class="name">{icon(symbol)}<a href=link::node(slug, &node.id)>{foreign(&node.title)}</a></td>
            <td class="path"><code class="hush"><bdi>{format!("/{}", node.path)}</bdi></code></td>
            <td class="end num below">{below}</td>
            <td class="standing">{badge::badge(words::node_status(node.status))}</td>
            <td class="end when"><Ago at=node.updated_at/></td>
        </tr>
    }
    .into_any()
}

/// Behind a fold and a typed name: it cannot be undone.
fn delete(view: &SiteView) -> impl IntoView + use<> {
    let slug = view.site.slug.clone();
    view.site.role.may_delete_site().then(|| {
        view! {
            <details class="box danger">
                <summary>"Delete this site"</summary>
                <form method="post" action=format!("/sites/{slug}/delete")>
                    <button type="submit" disabled hidden tabindex="-1" aria-hidden="true"></button>
                    <p>"Its address stops working, its name becomes free, and every open request on it is voided. The journal and all records stay. This cannot be undone."</p>
                    <input type="hidden" name="stateHash" value=view.state_hash.clone()/>
                    <label class="confirm">
                        <span>"Type " <code>{slug.clone()}</code> " to confirm"</span>
                        <input class="field" name="confirm" required pattern=slug.clone() autocomplete="off" autocapitalize="none" spellcheck="false"/>
                    </label>
                    <button class="btn no">{icon("no")}"Delete the site"</button>
                </form>
            </details>
        }
    })
}
