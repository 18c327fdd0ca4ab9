//! A part of the page that hangs on one answer of the server: one resource, one suspense, never more.

use super::page::{Loading, Trouble};
use crate::api::{Packed, StudioError, open};
use cloudhal_domain::code::Code;
use leptos::prelude::*;
use serde::de::DeserializeOwned;
use std::{marker::PhantomData, pin::Pin};

/// An answer that the page asked for; all are of one type beneath, whatever they carry.
pub struct Asked<T> {
    pub resource: Resource<Answer>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Asked<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Asked<T> {}

type Answer = Result<String, StudioError>;

/// Asks, and asks again whenever what is asked for changes.
pub fn ask<S, T, F>(
    what: impl Fn() -> S + Send + Sync + 'static,
    fetch: impl Fn(S) -> F + Send + Sync + 'static,
) -> Asked<T>
where
    S: PartialEq + Clone + Send + Sync + 'static,
    T: 'static,
    F: Future<Output = Result<Packed<T>, StudioError>> + Send + 'static,
{
    let fetch = move |what| -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        let answer = fetch(what);
        Box::pin(async move { answer.await.map(Packed::into_text) })
    };
    Asked {
        resource: Resource::new(what, fetch),
        of: PhantomData,
    }
}

/// Draws an answer once it is there. `key` says what is looked at: while the same thing is looked at again and the server
/// cannot be reached, the last answer stays; the bar at the top says that it may be old.
/// The type is erased here, or those of whole screens would nest beyond what the compiler takes.
pub fn loaded<T, V>(
    asked: Asked<T>,
    key: Signal<String>,
    show: impl Fn(T) -> V + Copy + Send + Sync + 'static,
) -> AnyView
where
    T: DeserializeOwned + 'static,
    V: IntoView + 'static,
{
    let draw = move |text: &str| match open::<T>(text) {
        Ok(value) => show(value).into_any(),
        Err(error) => view! { <Trouble error/> }.into_any(),
    };
    drawn(asked.resource, key, Box::new(draw))
}

type Draw = Box<dyn Fn(&str) -> AnyView + Send + Sync>;

fn drawn(resource: Resource<Answer>, key: Signal<String>, draw: Draw) -> AnyView {
    let last = StoredValue::new(None::<(String, String)>);
    let draw = StoredValue::new(draw);
    let show = move || {
        Suspend::new(async move {
            let answer = resource.await;
            let key = key.get_untracked();
            let answer = match answer {
                Err(error) if error.code == Code::Unavailable => last
                    .get_value()
                    .filter(|(of, _)| *of == key)
                    .map(|(_, kept)| kept)
                    .ok_or(error),
                other => other,
            };
            match answer {
                Ok(text) => {
                    let view = draw.with_value(|draw| draw(&text));
                    last.set_value(Some((key, text)));
                    view
                }
                Err(error) => view! { <Trouble error/> }.into_any(),
            }
        })
    };
    view! { <Transition fallback=Loading>{show}</Transition> }.into_any()
}
