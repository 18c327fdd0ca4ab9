//! A part of the page that hangs on one answer of the server: one resource, one suspense, never more.

use super::page::{Loading, Trouble};
use crate::api::StudioError;
use cloudhal_domain::code::Code;
use leptos::prelude::*;

/// Draws an answer once it is there. `key` says what is looked at: while the same thing is looked at again and the server
/// cannot be reached, the last answer stays; the bar at the top says that it may be old.
/// The type is erased here, or those of whole screens would nest beyond what the compiler takes.
pub fn loaded<T, V>(
    resource: Resource<Result<T, StudioError>>,
    key: Signal<String>,
    show: impl Fn(T) -> V + Copy + Send + Sync + 'static,
) -> AnyView
where
    T: Clone + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let last = StoredValue::new(None::<(String, T)>);
    let draw = move || {
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
                Ok(value) => {
                    last.set_value(Some((key, value.clone())));
                    show(value).into_any()
                }
                Err(error) => view! { <Trouble error/> }.into_any(),
            }
        })
    };
    view! { <Transition fallback=Loading>{draw}</Transition> }.into_any()
}
