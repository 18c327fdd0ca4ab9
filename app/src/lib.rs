//! The Studio: screens, parts and thin server functions.
//!
//! A page is rendered on the server, works as it stands (links and plain forms), and is then hydrated. What a screen
//! shows is made by the engine (`cloudhal_domain::view`), fetched through [`api`], drawn by [`pages`] out of [`parts`].
//! [`live`] listens for hints that something moved and makes the page look again; [`keys`] adds the keyboard.

pub mod api;
pub mod words;

mod keys;
mod live;
mod pages;
mod parts;

#[cfg(feature = "ssr")]
mod shell;
#[cfg(feature = "ssr")]
pub use shell::{ICON, PageEnv, Theme, shell};

use leptos::prelude::*;
use leptos_meta::provide_meta_context;
use leptos_router::{
    SsrMode,
    components::{ParentRoute, Redirect, Route, Router, Routes},
    path,
};

use pages::{
    agents::Agents, approval::Approval, changes::Changes, desk::Desk, desk::NothingOpen,
    journal::Journal, node::Node, people::People, settings::Settings, site::Site, sites::Sites,
    trouble::NotFound, versions::Versions,
};
use pages::{login::Login, login::SetUp, login::SignInLink, studio::Studio};

/// Every route of the Studio. Whoever is signed out is sent to sign in before anything is fetched.
///
/// Each route renders as a whole before the first byte leaves: the status is right, and nothing on the page moves.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    parts::time::provide_clock();
    mark_hydrated();
    if api::send_to_sign_in() {
        return leptos::either::Either::Left(());
    }
    let routes = view! {
        <parts::icon::Sprite/>
        <Router>
            <Routes fallback=NotFound>
                <Route path=path!("/login") view=Login ssr=SsrMode::Async/>
                <Route path=path!("/login/link/:token") view=SignInLink ssr=SsrMode::Async/>
                <Route path=path!("/setup/:token") view=SetUp ssr=SsrMode::Async/>
                <ParentRoute path=path!("") view=Studio ssr=SsrMode::Async>
                    <Route path=path!("/") view=|| view! { <Redirect path=cloudhal_domain::link::APPROVALS/> } ssr=SsrMode::Async/>
                    <ParentRoute path=path!("/approvals") view=Desk ssr=SsrMode::Async>
                        <Route path=path!("") view=NothingOpen ssr=SsrMode::Async/>
                        <Route path=path!(":id") view=Approval ssr=SsrMode::Async/>
                    </ParentRoute>
                    <Route path=path!("/approvals/:id/changes") view=Changes ssr=SsrMode::Async/>
                    <Route path=path!("/sites") view=Sites ssr=SsrMode::Async/>
                    <Route path=path!("/sites/:slug") view=Site ssr=SsrMode::Async/>
                    <Route path=path!("/sites/:slug/versions") view=Versions ssr=SsrMode::Async/>
                    <Route path=path!("/sites/:slug/nodes/:node") view=Node ssr=SsrMode::Async/>
                    <Route path=path!("/sites/:slug/settings") view=Settings ssr=SsrMode::Async/>
                    <Route path=path!("/people") view=People ssr=SsrMode::Async/>
                    <Route path=path!("/agents") view=Agents ssr=SsrMode::Async/>
                    <Route path=path!("/journal") view=Journal ssr=SsrMode::Async/>
                </ParentRoute>
            </Routes>
        </Router>
    };
    leptos::either::Either::Right(routes)
}

/// Says on `<html data-hydrated>` that the page answers to scripts now; for tests, which wait on it and never on time.
fn mark_hydrated() {
    #[cfg(feature = "hydrate")]
    Effect::new(|_| {
        if let Some(root) = document().document_element() {
            let _ = root.set_attribute("data-hydrated", "");
        }
    });
}
