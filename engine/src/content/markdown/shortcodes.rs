//! Hugo's shortcodes, `{{< name … >}}` and `{{% name … %}}`, as text that a reader can see.
//!
//! We run none of them. Left alone they would still do harm: Markdown takes `{{<note>}}` for an HTML element and loses
//! it, and turns the settings between `{{< code-toggle >}}` and its end into headings and rules. So, before parsing:
//!
//! - a pair in angle brackets, each alone on its line, becomes one code block with everything between (Hugo does not
//!   read that as Markdown either);
//! - `ref` and `relref` as a link's address become the page they name, which is all they ever mean; any other address
//!   stays one, so that the link's words can be read although it leads nowhere;
//! - every other one becomes `<code class="shortcode">`, spelled so that nothing inside it is markup;
//! - `{{</* name */>}}`, the way to write about a shortcode, loses the marks that say so.
//!
//! Code in the page stays as it is.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

pub(super) fn as_text(body: &str) -> Cow<'_, str> {
    if !body.contains("{{<") && !body.contains("{{%") {
        return Cow::Borrowed(body);
    }
    let body = body
        .replace("{{</*", "{{<")
        .replace("*/>}}", ">}}")
        .replace("{{%/*", "{{%")
        .replace("*/%}}", "%}}");
    let mut spans = Spans::of(&body);
    let mut finder = Finder::new(&body);
    let ends = Ends::of(&body);
    let mut out = String::with_capacity(body.len() + body.len() / 8);
    let mut done = 0;
    while let Some(code) = finder.find(done) {
        let (text, next) = match spans.at(code.range.start) {
            Some(Span::Code) => (body[code.range.clone()].to_string(), code.range.end),
            Some(Span::Html) => (spelled(&body[code.range.clone()]), code.range.end),
            None => readable(&body, &code, &ends, done),
        };
        // A block replaces its line from the start, so that its fences stand where the line stood.
        let before = &body[done..code.range.start];
        let before = if next > code.range.end {
            before.trim_end_matches([' ', '\t', '>'])
        } else {
            before
        };
        out.push_str(before);
        out.push_str(&text);
        done = next;
    }
    out.push_str(&body[done..]);
    Cow::Owned(out)
}

/// The text for a shortcode in prose, and where the text after it goes on.
fn readable(body: &str, code: &Shortcode, ends: &Ends, done: usize) -> (String, usize) {
    if let Some(block) = code.block(body, ends).filter(|block| block.start >= done) {
        return (fenced(&body[block.clone()]), block.end);
    }
    let before = &body[..code.range.start];
    let unwrapped = before.strip_suffix('<');
    let bare = unwrapped.unwrap_or(before);
    let is_address = bare.ends_with("](") || bare.trim_end_matches([' ', '\t']).ends_with("]:");
    let text = match code.page() {
        _ if !is_address => format!(
            "<code class=\"shortcode\">{}</code>",
            spelled(code.whole(body))
        ),
        Some(page) => page,
        // Still an address to Markdown, if one that leads nowhere: the link's words stay readable.
        None if unwrapped.is_some() => spelled(code.whole(body)),
        None => format!("<{}>", spelled(code.whole(body))),
    };
    (text, code.range.end)
}

struct Shortcode<'a> {
    range: Range<usize>,
    is_raw: bool,
    inner: &'a str,
}

struct Finder<'a> {
    body: &'a str,
    /// Set once an end mark is known not to come any more, so that a page full of beginnings is read once.
    without_end: [bool; 2],
}

impl<'a> Finder<'a> {
    fn new(body: &'a str) -> Self {
        Self {
            body,
            without_end: [false; 2],
        }
    }

    fn find(&mut self, from: usize) -> Option<Shortcode<'a>> {
        let mut at = from;
        while let Some(found) = self.body[at..].find("{{") {
            let start = at + found;
            let (is_raw, end_mark) = match self.body.as_bytes().get(start + 2) {
                Some(b'<') => (true, ">}}"),
                Some(b'%') => (false, "%}}"),
                _ => {
                    at = start + 2;
                    continue;
                }
            };
            let inner = start + 3;
            let without_end = &mut self.without_end[usize::from(is_raw)];
            let length = if *without_end {
                None
            } else {
                self.body[inner..].find(end_mark)
            };
            let Some(length) = length else {
                // One without an end stays; what follows may still be whole.
                *without_end = true;
                at = inner;
                continue;
            };
            let range = start..inner + length + end_mark.len();
            return Some(Shortcode {
                range,
                is_raw,
                inner: self.body[inner..inner + length].trim(),
            });
        }
        None
    }
}

impl Shortcode<'_> {
    /// The lines from this shortcode to its end, if it stands alone on its line and so does its end.
    fn block(&self, body: &str, ends: &Ends) -> Option<Range<usize>> {
        let name = self.inner.split_whitespace().next()?;
        let before = body[..self.range.start].trim_end_matches([' ', '\t', '>']);
        let after = body[self.range.end..].trim_start_matches([' ', '\t', '\r']);
        let is_alone = (before.is_empty() || before.ends_with('\n')) && after.starts_with('\n');
        if !self.is_raw || !is_alone || name.starts_with('/') || self.inner.ends_with('/') {
            return None;
        }
        Some(before.len()..ends.after(name, self.range.end)?)
    }

    fn whole<'b>(&self, body: &'b str) -> &'b str {
        &body[self.range.clone()]
    }

    fn page(&self) -> Option<String> {
        let arguments = self
            .inner
            .strip_prefix("relref")
            .or_else(|| self.inner.strip_prefix("ref"))?;
        let page = arguments.trim().trim_matches(['"', '`']);
        (arguments.starts_with([' ', '"'])
            && !page.is_empty()
            && !page.contains([' ', '"', '(', ')', '<', '>']))
        .then(|| page.to_string())
    }
}

/// The lines that hold nothing but the end of a raw shortcode, by its name.
struct Ends<'a>(HashMap<&'a str, Vec<Range<usize>>>);

impl<'a> Ends<'a> {
    fn of(body: &'a str) -> Self {
        let mut ends: HashMap<&str, Vec<Range<usize>>> = HashMap::new();
        let mut start = 0;
        for line in body.split_inclusive('\n') {
            if let Some(name) = ended_by(line) {
                ends.entry(name)
                    .or_default()
                    .push(start..start + line.len());
            }
            start += line.len();
        }
        Self(ends)
    }

    /// Where the first such line after a position ends.
    fn after(&self, name: &str, position: usize) -> Option<usize> {
        let lines = self.0.get(name)?;
        let first = lines.partition_point(|line| line.start < position);
        Some(lines.get(first)?.end)
    }
}

fn ended_by(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '\t', '>']).trim_end();
    let inner = line.strip_prefix("{{<")?.strip_suffix(">}}")?;
    Some(inner.trim().strip_prefix('/')?.trim())
}

/// A fence longer than any inside, behind the same quote marks and indentation as the lines that it holds.
fn fenced(lines: &str) -> String {
    let indent: String = lines
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t' | '>'))
        .collect();
    let longest = lines.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if lines.ends_with('\n') { "" } else { "\n" };
    format!("{indent}{fence}shortcode\n{lines}{end}{indent}{fence}\n")
}

/// Every mark of punctuation as a character reference: the parsers see text, the reader sees the mark.
fn spelled(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 4);
    for c in text.chars() {
        match c {
            '\n' => out.push(' '),
            c if c.is_ascii_punctuation() => out.push_str(&format!("&#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

#[derive(Clone, Copy)]
enum Span {
    Code,
    Html,
}

/// Where code and raw HTML stand, asked in ascending order.
struct Spans {
    spans: Vec<(Range<usize>, Span)>,
    next: usize,
}

impl Spans {
    fn of(body: &str) -> Self {
        let spans = Parser::new_ext(body, super::options())
            .into_offset_iter()
            .filter_map(|(event, range)| match event {
                Event::Code(_) | Event::Start(Tag::CodeBlock(_)) => Some((range, Span::Code)),
                Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_) => Some((range, Span::Html)),
                _ => None,
            })
            .collect();
        Self { spans, next: 0 }
    }

    fn at(&mut self, position: usize) -> Option<Span> {
        while self
            .spans
            .get(self.next)
            .is_some_and(|(range, _)| range.end <= position)
        {
            self.next += 1;
        }
        self.spans
            .get(self.next)
            .filter(|(range, _)| range.contains(&position))
            .map(|(_, span)| *span)
    }
}
