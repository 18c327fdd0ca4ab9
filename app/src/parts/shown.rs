//! A secret that the answer to a form shows, once: it stands in no address and in no other answer.

use super::{copy::Command, text::foreign, time::At};
use crate::words;
use cloudhal_domain::view::{Shown, ShownKind};
use leptos::prelude::*;

/// `mcp_url` is where the holder of a key connects.
pub fn shown(shown: Option<Shown>, mcp_url: &str) -> AnyView {
    let Some(shown) = shown else {
        return ().into_any();
    };
    let name = foreign(&shown.name);
    let until = shown.expires_at.map(|at| view! { <At at/> });
    let (title, about, more) = match shown.kind {
        ShownKind::Key => {
            let end = match until {
                Some(until) => view! { "It is good until " {until} "." }.into_any(),
                None => "It has no end; it is good until somebody revokes it.".into_any(),
            };
            let connect = words::connect_line(mcp_url);
            (
                view! { "The key of " {name} }.into_any(),
                view! { "It is shown this once and nobody can look it up again. Copy it now and keep it where the agent can read it. " {end} }
                    .into_any(),
                view! { <p class="small">"Where the agent runs, say where Cloudhal is:"</p><Command line=connect/> }.into_any(),
            )
        }
        ShownKind::PersonalKey => (
            view! { "The key of your client " {name} }.into_any(),
            view! {
                "It is shown this once and nobody can look it up again. It is good while you stay signed in here, until " {until}
                " at the latest. What your client asks for with it waits for a person, as an agent's calls do."
            }
            .into_any(),
            view! { <p class="small">"Where the client runs, say where Cloudhal is:"</p><Command line=words::connect_line(mcp_url)/> }.into_any(),
        ),
        ShownKind::SignInLink => (
            view! { "The sign-in link of " {name} }.into_any(),
            view! {
                "It is shown this once. Send it to them yourself, in a way that nobody else reads: whoever opens it is signed in as "
                {foreign(&shown.name)} ". It works once, until " {until} "."
            }
            .into_any(),
            ().into_any(),
        ),
        ShownKind::WebhookSecret => {
            let before = until.map(|until| {
                view! { " The one before signs as well until " {until} ", so that the receiver can change over." }
            });
            (
                view! { "The secret of " {name} }.into_any(),
                view! { "It is shown this once and nobody can look it up again. Copy it now into the receiver's settings: with it, the receiver can tell that a message is really from here." {before} }
                    .into_any(),
                ().into_any(),
            )
        }
    };
    let copy = match shown.kind {
        ShownKind::Key | ShownKind::PersonalKey => "Copy the key",
        ShownKind::SignInLink => "Copy the link",
        ShownKind::WebhookSecret => "Copy the secret",
    };
    view! {
        <section class="box shown" aria-labelledby="shown-title">
            <h2 id="shown-title" tabindex="-1" autofocus>{title}</h2>
            <Command line=shown.secret label=copy/>
            <p>{about}</p>
            {more}
        </section>
    }
    .into_any()
}
