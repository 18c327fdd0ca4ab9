//! All sites of the person.

use crate::{
    api,
    live::Live,
    parts::{
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        page::{Empty, window_title},
        time::Ago,
    },
    words,
};
use cloudhal_domain::{link, view::SiteRow};
use leptos::{either::Either, prelude::*};

#[component]
pub fn Sites() -> impl IntoView {
    let sites = ask(|| (), |()| api::sites());
    Live::get().refetch_on(sites, |_| true);
    window_title("Sites");
    view! {
        <section class="screen">
            <Notice/>
            <header class="head">
                <h1 tabindex="-1">"Sites"</h1>
            </header>
            {loaded(sites, Signal::stored(String::new()), list)}
        </section>
    }
    .into_any()
}

fn list(sites: Vec<SiteRow>) -> impl IntoView {
    if sites.is_empty() {
        return Either::Left(view! {
            <Empty title="No site yet">
                <p>"A site begins as a folder of Markdown. On the server:"</p>
                <crate::parts::copy::Command line="cloudhal site import ./my-site --slug my-site --title \"My site\""/>
            </Empty>
        });
    }
    Either::Right(view! { <ul class="cards">{sites.into_iter().map(card).collect_view()}</ul> })
}

fn card(site: SiteRow) -> AnyView {
    let live = match (site.live_version, site.live_at) {
        (Some(version), Some(at)) => {
            Either::Left(view! { {format!("Version {version} is live, published ")} <Ago at/> })
        }
        _ => Either::Right("Nothing is live yet"),
    };
    let unpublished = (site.unpublished > 0).then(|| {
        view! { <span class="badge accent">{icon("pen")}{words::count(site.unpublished, "unpublished change", "unpublished changes")}</span> }
    });
    let waiting = (site.waiting > 0).then(|| {
        view! { <span class="badge wait">{icon("wait")}{format!("{} waiting", words::digits(site.waiting))}</span> }
    });
    let href = link::site(&site.slug);
    view! {
        <li>
            <a class="site-card" href=href>
                <span class="title">{site.title}</span>
                <code class="hush">{site.slug}</code>
                <span class="quiet">{live}</span>
                <span class="marks">
                    <span class="hush small num">{words::count(site.node_count, "page", "pages")} " · " {words::role(site.role)}</span>
                    {unpublished}
                    {waiting}
                </span>
            </a>
        </li>
    }
    .into_any()
}
