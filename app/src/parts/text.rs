//! Other people's text: isolated, and with every character shown that would otherwise be read wrongly.

use cloudhal_domain::odd::{self, Segment};
use leptos::{either::EitherOf4, prelude::*};

/// A value as a stranger wrote it. Direction cannot leak out of it and nothing in it is invisible.
pub fn foreign(text: &str) -> AnyView {
    view! { <bdi>{segments(text)}</bdi> }.into_any()
}

/// The same without isolation, for stretches inside one isolated text.
pub fn segments(text: &str) -> impl IntoView + use<> {
    odd::segments(text)
        .into_iter()
        .map(|segment| match segment {
            Segment::Plain(plain) => EitherOf4::A(plain.to_string()),
            Segment::Odd(c) => EitherOf4::B(view! {
                <span class="odd" title=odd::name(c)>{odd::code_point(c)}</span>
            }),
            Segment::Mixed(word) => EitherOf4::C(view! {
                <span class="mixed" title="Letters from scripts that look alike">
                    {word.to_string()}
                    <span class="odd">"mixed letters"</span>
                </span>
            }),
            Segment::Coded(name) => EitherOf4::D(view! {
                <span class="mixed" title="Stands for a name in other letters, which a browser may show instead">
                    {name.to_string()}
                    <span class="odd">"coded name"</span>
                </span>
            }),
        })
        .collect_view()
}

/// Every character outside plain ASCII as its code: what the bytes are, whatever they look like.
pub fn exact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n\n"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            other => out.push_str(&format!("\\u{{{:04x}}}", other as u32)),
        }
    }
    out
}

/// A digest that can be compared at a glance and is there in full.
pub fn digest(text: &str) -> AnyView {
    view! { <code class="digest">{text.to_string()}</code> }.into_any()
}

/// 14,210 bytes as a person says it.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1_000.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_hides_nothing() {
        assert_eq!(exact("a\u{202e}b\n"), "a\\u{202e}b\\n\n");
        assert_eq!(exact("né"), "n\\u{00e9}");
    }
}
