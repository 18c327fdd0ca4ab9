//! The published site's look: whole HTML documents from plain data.
//!
//! A published page is other people's text on our origin, so a document has no scripts, no forms and nothing from
//! elsewhere but the author's own https pictures. Everything here is escaped by the template; the one exception is
//! [`PageView::html`], which comes from [`super::markdown::render`].
//!
//! Titles, navigation and links come from the caller; [`super::outline::Outline`] makes most of them.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::markdown::Heading;

/// The stylesheet: served beside the pages, or inlined into a sandboxed frame.
pub const CSS: &str = include_str!("../../../style/live.css");

/// A page with fewer headings needs no table of contents.
const CONTENTS_MIN: usize = 3;
const CONTENTS_LEVELS: std::ops::RangeInclusive<u8> = 2..=3;

#[derive(Debug, Clone, Copy)]
pub enum Style<'a> {
    /// The address of [`CSS`].
    Link(&'a str),
    /// The text of a stylesheet, for documents that must not load anything: never anything but our own.
    Inline(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crumb {
    pub title: String,
    pub path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NavItem {
    pub title: String,
    pub path: String,
    pub current: bool,
    /// The current page or above it.
    pub open: bool,
    pub children: Vec<NavItem>,
}

#[derive(Debug, Clone)]
pub struct PageView<'a> {
    pub lang: &'a str,
    pub site_title: &'a str,
    /// What comes before every path, without a slash at its end; the same as in [`super::markdown::Links`].
    pub base: &'a str,
    /// The version that is shown, if it is a published one.
    pub version: Option<i64>,
    pub style: Style<'a>,
    pub robots_noindex: bool,
    /// Said above everything else, for example that this is a preview.
    pub notice: Option<&'a str>,

    pub title: &'a str,
    pub description: Option<&'a str>,
    /// Empty for the home page.
    pub path: &'a str,
    pub breadcrumbs: Vec<Crumb>,
    pub nav: Vec<NavItem>,
    /// Listed under the text.
    pub children: Vec<Crumb>,
    pub prev: Option<Crumb>,
    pub next: Option<Crumb>,

    pub headings: &'a [Heading],
    /// From [`super::markdown::render`], and from nowhere else.
    pub html: &'a str,
}

pub fn page(view: &PageView<'_>) -> String {
    let is_home = view.path.is_empty();
    let title = match is_home {
        true => view.site_title.to_string(),
        false => format!("{} · {}", view.title, view.site_title),
    };
    let head = Head {
        lang: view.lang,
        title: &title,
        description: view.description,
        style: view.style,
        noindex: view.robots_noindex,
    };
    let contents = contents(view.headings);
    // The home page lists the top level in its text, and once is enough.
    let has_nav = !view.nav.is_empty() && !is_home;
    document(
        &head,
        html! {
            @if let Some(notice) = view.notice { p.notice role="note" { (notice) } }
            (header(view.site_title, Some(view.base)))
            div.frame.home[is_home].has-nav[has_nav].has-contents[contents.is_some()] {
                @if has_nav { (side_nav(view)) }
                main id="content" tabindex="-1" {
                    (article_head(view, is_home))
                    @if let Some(contents) = &contents { (contents) }
                    article.prose { (PreEscaped(without_title(view))) }
                    (children(view))
                    (neighbours(view))
                }
            }
            (footer(view.version))
        },
    )
}

/// An address of a site where no page is. `base` is left out where the way home is not known (a static 404 page is
/// shown at any depth).
pub fn not_found(site_title: &str, base: Option<&str>, style: Style<'_>) -> String {
    let body = html! {
        h1 { "There is no page here" }
        p { "It may have moved, or the link that led here is mistyped." }
        @if let Some(base) = base { p { a href={ (base) "/" } { "Go to the start of " (site_title) } } }
    };
    message("Page not found", Some(site_title), base, style, &body)
}

/// A site that was deleted. It says no name: what is gone says nothing about itself.
pub fn gone(style: Style<'_>) -> String {
    let body = html! {
        h1 { "This site is gone" }
        p { "Its owners have taken it down. Nothing is published here any more." }
    };
    message("Site removed", None, None, style, &body)
}

/// A site whose start has no page of its own: what there is, listed.
pub fn empty(site_title: &str, base: &str, pages: &[Crumb], style: Style<'_>) -> String {
    let body = html! {
        h1 { (site_title) }
        @if pages.is_empty() {
            p { "Nothing is published here yet." }
        } @else {
            nav aria-label="Pages" { (crumb_list(base, pages)) }
        }
    };
    message(site_title, Some(site_title), Some(base), style, &body)
}

// ---------------------------------------------------------------------------------------------------------------------
// The parts of a document, from the outside in

struct Head<'a> {
    lang: &'a str,
    title: &'a str,
    description: Option<&'a str>,
    style: Style<'a>,
    noindex: bool,
}

fn document(head: &Head, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang=(head.lang) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // A site without a picture of its own; named, or every browser asks the server for /favicon.ico.
                link rel="icon" href="data:,";
                title { (head.title) }
                @if let Some(description) = head.description { meta name="description" content=(description); }
                @if head.noindex { meta name="robots" content="noindex, nofollow"; }
                @match head.style {
                    Style::Link(address) => { link rel="stylesheet" href=(address); }
                    Style::Inline(css) => { style { (PreEscaped(css)) } }
                }
            }
            body {
                a.skip href="#content" { "Skip to the text" }
                (body)
            }
        }
    }
    .into_string()
}

fn message(
    title: &str,
    site_title: Option<&str>,
    base: Option<&str>,
    style: Style<'_>,
    body: &Markup,
) -> String {
    document(
        &Head {
            lang: "en",
            title,
            description: None,
            style,
            noindex: true,
        },
        html! {
            @if let Some(site_title) = site_title { (header(site_title, base)) }
            div.frame { main id="content" tabindex="-1" { div.prose.message { (body) } } }
            (footer(None))
        },
    )
}

fn header(site_title: &str, base: Option<&str>) -> Markup {
    html! {
        header.masthead {
            @match base {
                Some(base) => { a.site href={ (base) "/" } { (site_title) } }
                None => { span.site { (site_title) } }
            }
        }
    }
}

/// Folded on a phone; where there is room the stylesheet opens it for good.
fn side_nav(view: &PageView) -> Markup {
    html! {
        nav.side id="site-nav" aria-label="Site" {
            details {
                summary { "Pages" }
                (nav_list(view.base, &view.nav))
            }
        }
    }
}

fn nav_list(base: &str, items: &[NavItem]) -> Markup {
    html! {
        ul {
            @for item in items {
                li.open[item.open] {
                    a href=(href(base, &item.path)) aria-current=[item.current.then_some("page")] { (item.title) }
                    @if !item.children.is_empty() { (nav_list(base, &item.children)) }
                }
            }
        }
    }
}

fn article_head(view: &PageView, is_home: bool) -> Markup {
    html! {
        header.opening {
            @if !is_home {
                nav.crumbs aria-label="Breadcrumb" {
                    ol {
                        li { a href={ (view.base) "/" } { "Home" } }
                        @for crumb in &view.breadcrumbs { li { a href=(href(view.base, &crumb.path)) { (crumb.title) } } }
                    }
                }
            }
            h1 { (view.title) }
            @if let Some(description) = view.description { p.lead { (description) } }
        }
    }
}

/// The text without a first heading that only repeats the page's title, which stands above it.
fn without_title<'v>(view: &PageView<'v>) -> &'v str {
    let html = view.html.trim_start();
    let repeats = view.headings.first().is_some_and(|first| {
        first.level == 1 && first.text.trim().eq_ignore_ascii_case(view.title.trim())
    });
    match html.split_once("</h1>") {
        Some((heading, rest)) if repeats && heading.starts_with("<h1") => rest,
        _ => view.html,
    }
}

fn contents(headings: &[Heading]) -> Option<Markup> {
    let listed: Vec<&Heading> = headings
        .iter()
        .filter(|heading| CONTENTS_LEVELS.contains(&heading.level))
        .collect();
    (listed.len() >= CONTENTS_MIN).then(|| {
        html! {
            nav.contents id="page-contents" aria-label="On this page" {
                details {
                    summary { "On this page" }
                    ol { @for heading in listed { li.{ "level-" (heading.level) } { a href={ "#" (heading.id) } { (heading.text) } } } }
                }
            }
        }
    })
}

fn children(view: &PageView) -> Markup {
    html! {
        @if !view.children.is_empty() {
            nav.below aria-labelledby="below-title" {
                h2 id="below-title" { @if view.path.is_empty() { "Pages" } @else { "In this section" } }
                (crumb_list(view.base, &view.children))
            }
        }
    }
}

fn crumb_list(base: &str, crumbs: &[Crumb]) -> Markup {
    html! { ul.pages { @for crumb in crumbs { li { a href=(href(base, &crumb.path)) { (crumb.title) } } } } }
}

fn neighbours(view: &PageView) -> Markup {
    html! {
        @if view.prev.is_some() || view.next.is_some() {
            nav.neighbours aria-label="Previous and next page" {
                @if let Some(prev) = &view.prev {
                    a.prev rel="prev" href=(href(view.base, &prev.path)) { small { "Previous" } span { (prev.title) } }
                }
                @if let Some(next) = &view.next {
                    a.next rel="next" href=(href(view.base, &next.path)) { small { "Next" } span { (next.title) } }
                }
            }
        }
    }
}

fn footer(version: Option<i64>) -> Markup {
    html! {
        footer.colophon {
            p { "Published with Cloudhal" @if let Some(version) = version { " · version " (version) } }
        }
    }
}

fn href(base: &str, path: &str) -> String {
    if path.is_empty() {
        format!("{base}/")
    } else {
        format!("{base}/{path}/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crumb(title: &str, path: &str) -> Crumb {
        Crumb {
            title: title.into(),
            path: path.into(),
        }
    }

    fn view<'a>(headings: &'a [Heading]) -> PageView<'a> {
        PageView {
            lang: "en",
            site_title: "Harbour Street Bakery",
            base: "/live/bakery",
            version: Some(41),
            style: Style::Link("/live/bakery/style.css"),
            robots_noindex: false,
            notice: None,
            title: "Opening hours",
            description: Some("When we are open."),
            path: "visit/opening-hours",
            breadcrumbs: vec![crumb("Visit", "visit")],
            nav: vec![NavItem {
                title: "Visit".into(),
                path: "visit".into(),
                open: true,
                children: vec![NavItem {
                    title: "Opening hours".into(),
                    path: "visit/opening-hours".into(),
                    current: true,
                    open: true,
                    children: Vec::new(),
                }],
                ..NavItem::default()
            }],
            children: vec![crumb("Easter", "visit/opening-hours/easter")],
            prev: None,
            next: Some(crumb("How to find us", "visit/how-to-find-us")),
            headings,
            html: "<p>Open.</p>",
        }
    }

    #[test]
    fn a_heading_that_repeats_the_title_is_not_shown_twice() {
        let heading = |level, text: &str| Heading {
            level,
            id: "x".into(),
            text: text.into(),
        };
        for (first, html, shown) in [
            (
                heading(1, "opening HOURS "),
                "<h1 id=\"x\">opening HOURS </h1><p>a</p>",
                "<p>a</p>",
            ),
            (
                heading(1, "Other"),
                "<h1 id=\"x\">Other</h1>",
                "<h1 id=\"x\">Other</h1>",
            ),
            (
                heading(2, "Opening hours"),
                "<h2 id=\"x\">Opening hours</h2>",
                "<h2 id=\"x\">Opening hours</h2>",
            ),
            (
                heading(1, "Opening hours"),
                "<p>b</p><h1 id=\"x\">Opening hours</h1>",
                "<p>b</p><h1 id=\"x\">Opening hours</h1>",
            ),
        ] {
            let headings = [first];
            let out = page(&PageView {
                html,
                ..view(&headings)
            });
            assert!(
                out.contains(&format!("<article class=\"prose\">{shown}</article>")),
                "{out}"
            );
        }
    }

    #[test]
    fn a_page_has_its_parts_and_their_links() {
        let out = page(&view(&[]));
        for part in [
            "<!DOCTYPE html><html lang=\"en\">",
            "<title>Opening hours · Harbour Street Bakery</title>",
            "<a class=\"skip\" href=\"#content\">",
            "<a class=\"site\" href=\"/live/bakery/\">Harbour Street Bakery</a>",
            "<li><a href=\"/live/bakery/visit/\">Visit</a></li>",
            "<a href=\"/live/bakery/visit/opening-hours/\" aria-current=\"page\">Opening hours</a>",
            "<h1>Opening hours</h1><p class=\"lead\">When we are open.</p>",
            "<article class=\"prose\"><p>Open.</p></article>",
            "href=\"/live/bakery/visit/opening-hours/easter/\"",
            "<a class=\"next\" rel=\"next\" href=\"/live/bakery/visit/how-to-find-us/\">",
            "Published with Cloudhal · version 41",
        ] {
            assert!(out.contains(part), "{part} is missing in {out}");
        }
        assert!(
            !out.contains("noindex")
                && !out.contains("page-contents")
                && !out.contains("class=\"notice\"")
        );
    }

    #[test]
    fn only_a_long_page_has_a_table_of_contents() {
        let heading = |level, id: &str| Heading {
            level,
            id: id.into(),
            text: format!("The {id} & more"),
        };
        let short = [heading(2, "a"), heading(2, "b"), heading(4, "c")];
        assert!(!page(&view(&short)).contains("page-contents"));
        let long = [heading(2, "a"), heading(2, "b"), heading(3, "c")];
        assert!(
            page(&view(&long))
                .contains("<li class=\"level-3\"><a href=\"#c\">The c &amp; more</a></li>")
        );
    }

    #[test]
    fn whatever_a_caller_passes_is_text() {
        const EVIL: &str = "</title></style><script>alert(1)</script>\" onload=\"x";
        let crumbs = || vec![crumb(EVIL, EVIL)];
        let nav = vec![NavItem {
            title: EVIL.into(),
            path: EVIL.into(),
            ..NavItem::default()
        }];
        let headings = vec![
            Heading {
                level: 2,
                id: EVIL.into(),
                text: EVIL.into()
            };
            3
        ];
        let view = PageView {
            lang: EVIL,
            site_title: EVIL,
            base: EVIL,
            style: Style::Link(EVIL),
            notice: Some(EVIL),
            title: EVIL,
            description: Some(EVIL),
            path: EVIL,
            breadcrumbs: crumbs(),
            nav,
            children: crumbs(),
            prev: crumbs().pop(),
            next: crumbs().pop(),
            ..view(&headings)
        };
        for out in [
            page(&view),
            not_found(EVIL, Some(EVIL), Style::Inline(CSS)),
            empty(EVIL, EVIL, &crumbs(), Style::Link(EVIL)),
        ] {
            assert!(
                !out.contains("<script") && !out.contains("\" onload"),
                "{out}"
            );
            assert_eq!(out.matches("</title>").count(), 1, "{out}");
        }
    }

    #[test]
    fn nothing_runs_asks_or_loads() {
        let inline = PageView {
            style: Style::Inline(CSS),
            robots_noindex: true,
            notice: Some("Preview"),
            ..view(&[])
        };
        let out = page(&inline);
        for absent in [
            "<script",
            "<form",
            "<input",
            "<button",
            "<iframe",
            "<link rel=\"stylesheet",
            "src=\"",
            "javascript:",
            " style=\"",
        ] {
            assert!(!out.contains(absent), "{absent} in {out}");
        }
        assert!(
            out.contains("noindex, nofollow")
                && out.contains("<p class=\"notice\" role=\"note\">Preview</p>")
        );
        assert!(!gone(Style::Inline(CSS)).contains("Bakery"));
    }

    #[test]
    fn the_stylesheet_is_small_and_self_contained() {
        assert!(CSS.len() < 14_000, "{} bytes", CSS.len());
        for absent in ["</", "url(", "@import", "@font-face", "expression("] {
            assert!(!CSS.contains(absent), "{absent}");
        }
        assert_eq!(CSS.matches('{').count(), CSS.matches('}').count());
    }

    #[test]
    fn the_home_page_is_the_sites_and_lists_its_pages() {
        let out = page(&PageView {
            path: "",
            breadcrumbs: Vec::new(),
            title: "Fresh bread",
            ..view(&[])
        });
        assert!(
            out.contains("<title>Harbour Street Bakery</title>")
                && out.contains("<h1>Fresh bread</h1>")
        );
        assert!(
            !out.contains("class=\"crumbs\"")
                && !out.contains("site-nav")
                && out.contains(">Pages</h2>")
        );
        assert!(
            empty("Bakery", "/live/bakery", &[], Style::Inline(CSS))
                .contains("Nothing is published here yet.")
        );
    }
}
