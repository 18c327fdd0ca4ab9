//! Other people's pages: no scripts, no forms, an origin of its own that reaches nothing of ours.

use leptos::{attr::custom::CustomAttribute, html, prelude::*};

/// The attributes are the library's own where it has them: one by name (`attr`) is set anew when the page hydrates, and a
/// frame whose `src` is set loads again and adds a dead step to the browser's history.
pub fn frame(src: String, title: String) -> impl IntoView {
    html::iframe()
        .sandbox("")
        .src(src)
        .title(title)
        .attr("loading", "lazy")
}
