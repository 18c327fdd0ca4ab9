//! Other people's pages: no scripts, no forms, an origin of its own that reaches nothing of ours.

use leptos::{attr::custom::CustomAttribute, html, prelude::*};

pub fn frame(src: String, title: String) -> impl IntoView {
    html::iframe()
        .attr("sandbox", "")
        .attr("loading", "lazy")
        .attr("src", src)
        .attr("title", title)
}
