//! A page's body as safe HTML.
//!
//! 1. [`shortcodes`] makes Hugo's shortcodes readable text, so that no parser takes them for something else.
//! 2. pulldown-cmark parses; this file writes the parts whose HTML we want otherwise (alerts, footnotes, code, tables).
//! 3. [`nesting`] refuses what would take a tree builder too long; such a page is shown as its source.
//! 4. ammonia keeps an allow-list of elements and attributes and serialises what is left in one canonical form.
//! 5. [`finish`] walks that form: headings get their ids, links are resolved ([`links`]), missing pictures become text.
//!
//! Step 5 comes after the sanitiser so that links, headings and pictures written as raw HTML are treated like the others.
//! It adds only what it has made itself: escaped attributes and addresses from a URL parser.

mod finish;
mod links;
mod nesting;
mod shortcodes;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use pulldown_cmark::{
    Alignment, BlockQuoteKind, CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html,
};

pub use links::{Alias, Links, alias_paths};

/// Ids that the theme gives to parts of the page; a heading of that name gets a number.
pub const RESERVED_IDS: [&str; 4] = ["content", "site-nav", "page-contents", "below-title"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub html: String,
    pub headings: Vec<Heading>,
    pub word_count: usize,
    /// Links to pages that do not exist, as written, in order, each once.
    pub unresolved: Vec<String>,
    /// Pictures that are shown as their alternative text, as written, in order, each once.
    pub missing_images: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    pub level: u8,
    pub id: String,
    pub text: String,
}

pub fn render(body: &str, links: &Links<'_>) -> Rendered {
    let source = shortcodes::as_text(body);
    let raw = to_html(&source);
    if nesting::is_tangled(&raw) {
        return as_source(body);
    }
    let safe = SANITISER.clean(&raw).to_string();
    finish::finish(&safe, links)
}

fn as_source(body: &str) -> Rendered {
    let html = format!(
        "<div class=\"alert alert-warning\"><p class=\"alert-title\">Shown as source</p>\
         <p>This text is nested too deeply to be laid out.</p></div>\n\
         <pre tabindex=\"0\"><code>{}</code></pre>\n",
        escape(&body.replace('\0', "\u{fffd}"))
    );
    let word_count = body.split_whitespace().count();
    Rendered {
        html,
        headings: Vec::new(),
        word_count,
        unresolved: Vec::new(),
        missing_images: Vec::new(),
    }
}

pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_GFM
}

// ---------------------------------------------------------------------------------------------------------------------
// Markdown to HTML, not yet safe

fn to_html(source: &str) -> String {
    let mut writer = Writer::default();
    let events: Vec<Event> = Parser::new_ext(source, options())
        .filter_map(|event| writer.take(event))
        .collect();
    let mut out = String::with_capacity(source.len() * 3 / 2);
    html::push_html(&mut out, events.into_iter());
    writer.footnotes.push_html(&mut out);
    out
}

#[derive(Default)]
struct Writer<'a> {
    table: Table,
    footnotes: Footnotes<'a>,
    has_caption: bool,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    column: usize,
    in_head: bool,
}

impl<'a> Writer<'a> {
    /// The event as it should be written, or nothing if it belongs to a footnote, which is written at the end.
    fn take(&mut self, event: Event<'a>) -> Option<Event<'a>> {
        let event = match event {
            Event::Start(Tag::FootnoteDefinition(name)) => {
                self.footnotes.open(name);
                return None;
            }
            Event::End(TagEnd::FootnoteDefinition) => {
                self.footnotes.close();
                return None;
            }
            event => self.rewrite(event),
        };
        self.footnotes.keep(event)
    }

    fn rewrite(&mut self, event: Event<'a>) -> Event<'a> {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => self.open_code(&kind),
            Event::End(TagEnd::CodeBlock) => markup(if std::mem::take(&mut self.has_caption) {
                "</code></pre></figure>\n"
            } else {
                "</code></pre>\n"
            }),
            Event::Start(Tag::BlockQuote(Some(kind))) => markup(open_alert(kind)),
            Event::End(TagEnd::BlockQuote(Some(_))) => markup("</div>\n"),
            Event::Start(Tag::Heading { level, id, .. }) => Event::Start(Tag::Heading {
                level,
                id,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            }) if dest_url.starts_with("data:") => {
                // It is not shown anyway, and as a tag of a hundred kilobytes it would cost the page its layout.
                drop(dest_url);
                Event::Start(Tag::Image {
                    link_type,
                    dest_url: "data:".into(),
                    title,
                    id,
                })
            }
            Event::TaskListMarker(done) => {
                // Checkboxes are form controls, and a published page has none.
                Event::InlineHtml(
                    if done {
                        "<span class=\"task\">☑</span> "
                    } else {
                        "<span class=\"task\">☐</span> "
                    }
                    .into(),
                )
            }
            Event::FootnoteReference(name) => {
                Event::InlineHtml(self.footnotes.reference(name).into())
            }
            event => self.table.rewrite(event),
        }
    }

    fn open_code(&mut self, kind: &CodeBlockKind) -> Event<'a> {
        let CodeBlockKind::Fenced(info) = kind else {
            return markup("<pre><code>");
        };
        let language: String = info
            .chars()
            .take_while(|c| !c.is_whitespace() && !matches!(c, '{' | ','))
            .collect();
        let mut tags = String::new();
        if let Some(file) = file_of(info) {
            self.has_caption = true;
            tags = format!(
                "<figure class=\"listing\"><figcaption>{}</figcaption>",
                escape(file)
            );
        }
        match language.as_str() {
            "" => tags.push_str("<pre><code>"),
            name => tags.push_str(&format!("<pre><code class=\"language-{}\">", escape(name))),
        }
        Event::Html(tags.into())
    }
}

fn markup<'a>(tags: &'static str) -> Event<'a> {
    Event::Html(CowStr::Borrowed(tags))
}

/// ```` ```go {file="main.go"} ````: the attribute that carries meaning for a reader.
fn file_of(info: &str) -> Option<&str> {
    let attributes = &info[info.find('{')?..];
    let value = ["file=\"", "title=\""]
        .iter()
        .find_map(|name| Some(&attributes[attributes.find(name)? + name.len()..]))?;
    value.split('"').next().filter(|file| !file.is_empty())
}

fn open_alert(kind: BlockQuoteKind) -> &'static str {
    match kind {
        BlockQuoteKind::Note => {
            "<div class=\"alert alert-note\"><p class=\"alert-title\">Note</p>\n"
        }
        BlockQuoteKind::Tip => "<div class=\"alert alert-tip\"><p class=\"alert-title\">Tip</p>\n",
        BlockQuoteKind::Important => {
            "<div class=\"alert alert-important\"><p class=\"alert-title\">Important</p>\n"
        }
        BlockQuoteKind::Warning => {
            "<div class=\"alert alert-warning\"><p class=\"alert-title\">Warning</p>\n"
        }
        BlockQuoteKind::Caution => {
            "<div class=\"alert alert-caution\"><p class=\"alert-title\">Caution</p>\n"
        }
    }
}

impl Table {
    /// Cells say their alignment by class: the `style` that the parser's own writer uses does not pass the sanitiser.
    fn rewrite<'a>(&mut self, event: Event<'a>) -> Event<'a> {
        match &event {
            Event::Start(Tag::Table(alignments)) => self.alignments.clone_from(alignments),
            Event::Start(Tag::TableHead) => (self.in_head, self.column) = (true, 0),
            Event::End(TagEnd::TableHead) => self.in_head = false,
            Event::Start(Tag::TableRow) => self.column = 0,
            Event::Start(Tag::TableCell) => return markup(self.open_cell()),
            Event::End(TagEnd::TableCell) => {
                return markup(if self.in_head { "</th>" } else { "</td>" });
            }
            _ => {}
        }
        event
    }

    fn open_cell(&mut self) -> &'static str {
        let alignment = self
            .alignments
            .get(self.column)
            .copied()
            .unwrap_or(Alignment::None);
        self.column += 1;
        match (self.in_head, alignment) {
            (true, Alignment::Center) => "<th scope=\"col\" class=\"center\">",
            (true, Alignment::Right) => "<th scope=\"col\" class=\"right\">",
            (true, Alignment::Left | Alignment::None) => "<th scope=\"col\">",
            (false, Alignment::Center) => "<td class=\"center\">",
            (false, Alignment::Right) => "<td class=\"right\">",
            (false, Alignment::Left | Alignment::None) => "<td>",
        }
    }
}

/// Notes stand at the end of the page in the order in which they are first mentioned, wherever they were written.
#[derive(Default)]
struct Footnotes<'a> {
    numbers: HashMap<CowStr<'a>, usize>,
    mentions: Vec<usize>,
    open: Option<usize>,
    events: Vec<Vec<Event<'a>>>,
}

impl<'a> Footnotes<'a> {
    fn number(&mut self, name: CowStr<'a>) -> usize {
        let next = self.numbers.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.mentions.push(0);
            self.events.push(Vec::new());
        }
        number
    }

    fn open(&mut self, name: CowStr<'a>) {
        self.open = Some(self.number(name));
    }

    fn close(&mut self) {
        self.open = None;
    }

    fn keep(&mut self, event: Event<'a>) -> Option<Event<'a>> {
        match self.open {
            Some(number) => {
                self.events[number].push(event);
                None
            }
            None => Some(event),
        }
    }

    fn reference(&mut self, name: CowStr<'a>) -> String {
        let number = self.number(name);
        self.mentions[number] += 1;
        let (n, mention) = (number + 1, self.mentions[number]);
        let id = if mention == 1 {
            format!("fnref-{n}")
        } else {
            format!("fnref-{n}-{mention}")
        };
        format!("<sup class=\"footnote-ref\" id=\"{id}\"><a href=\"#fn-{n}\">{n}</a></sup>")
    }

    fn push_html(self, out: &mut String) {
        if self.events.iter().all(Vec::is_empty) {
            return;
        }
        out.push_str("<section class=\"footnotes\"><ol>\n");
        for (number, events) in self.events.into_iter().enumerate() {
            let n = number + 1;
            out.push_str(&format!("<li id=\"fn-{n}\">"));
            html::push_html(out, events.into_iter());
            if self.mentions[number] > 0 {
                out.push_str(&format!(
                    "<a class=\"footnote-back\" href=\"#fnref-{n}\">↩</a>"
                ));
            }
            out.push_str("</li>\n");
        }
        out.push_str("</ol></section>\n");
    }
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

// ---------------------------------------------------------------------------------------------------------------------
// The sanitiser

const TAGS: [&str; 61] = [
    "a",
    "abbr",
    "b",
    "bdi",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "u",
    "ul",
    "var",
];

/// Elements whose text is code, a resource or a form's; it goes with them instead of appearing as prose.
const DROPPED_WITH_CONTENT: [&str; 19] = [
    "script", "style", "iframe", "object", "embed", "applet", "noscript", "noembed", "noframes",
    "template", "textarea", "select", "option", "title", "xmp", "svg", "math", "audio", "video",
];

static SANITISER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut builder = ammonia::Builder::empty();
    builder
        .tags(TAGS.into())
        .clean_content_tags(DROPPED_WITH_CONTENT.into())
        .generic_attributes(["class", "dir", "id", "lang", "title"].into())
        .tag_attributes(HashMap::from([
            ("a", ["href"].into()),
            ("img", ["src", "alt", "width", "height"].into()),
            ("ol", ["start", "reversed"].into()),
            ("td", ["colspan", "rowspan"].into()),
            ("th", ["colspan", "rowspan", "scope"].into()),
            ("col", ["span"].into()),
            ("colgroup", ["span"].into()),
            ("details", ["open"].into()),
            ("time", ["datetime"].into()),
        ]))
        .url_schemes(["http", "https", "mailto", "tel"].into())
        .url_relative(ammonia::UrlRelative::PassThrough)
        .link_rel(None)
        .strip_comments(true)
        .attribute_filter(|element, attribute, value| match attribute {
            "class" => our_classes(element, value),
            "id" => value
                .bytes()
                .all(is_id_byte)
                .then_some(Cow::Borrowed(value))
                .filter(|id| !id.is_empty()),
            _ => Some(Cow::Borrowed(value)),
        });
    builder
});

/// Only the classes that this module writes itself: with others a page could dress up as the theme around it.
fn our_classes<'u>(element: &str, value: &'u str) -> Option<Cow<'u, str>> {
    let ours = |class: &&str| match element {
        "code" => *class == "shortcode" || class.strip_prefix("language-").is_some_and(is_language),
        "div" => class.strip_prefix("alert").is_some_and(is_alert),
        "p" => *class == "alert-title",
        "span" => *class == "task",
        "figure" => *class == "listing",
        "section" => *class == "footnotes",
        "sup" => *class == "footnote-ref",
        "a" => *class == "footnote-back",
        "td" | "th" => matches!(*class, "center" | "right"),
        _ => false,
    };
    let kept: Vec<&str> = value.split_ascii_whitespace().filter(ours).collect();
    (!kept.is_empty()).then(|| Cow::Owned(kept.join(" ")))
}

fn is_language(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'+' | b'#' | b'.'))
}

fn is_alert(kind: &str) -> bool {
    matches!(
        kind,
        "" | "-note" | "-tip" | "-important" | "-warning" | "-caution"
    )
}

/// Enough for every id that people write, and for letters of any script; no space, quote or angle bracket.
fn is_id_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':') || b >= 0x80
}

#[cfg(test)]
mod tests;
