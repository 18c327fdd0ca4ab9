//! The last pass, over what the sanitiser wrote.
//!
//! That text is canonical: elements are balanced, attributes stand in double quotes, and a `<` or `"` that is content is
//! written as a reference. So it can be read tag by tag without a parser's guesses. Tags that need no change are copied.

use std::collections::{HashMap, HashSet};

use super::links::{Links, Target, decoded};
use super::{Heading, RESERVED_IDS, Rendered, escape};

pub(super) fn finish(safe: &str, links: &Links<'_>) -> Rendered {
    let mut pass = Pass {
        links,
        out: String::with_capacity(safe.len() + safe.len() / 4),
        ids: RESERVED_IDS.into_iter().map(str::to_string).collect(),
        id_counts: HashMap::new(),
        open_links: Vec::new(),
        open_headings: Vec::new(),
        headings: Vec::new(),
        word_count: 0,
        unresolved: Noted::default(),
        missing_images: Noted::default(),
    };
    for token in Tokens(safe) {
        pass.take(&token);
    }
    let Pass {
        out: html,
        mut headings,
        word_count,
        unresolved,
        missing_images,
        ..
    } = pass;
    headings.sort_by_key(|(position, _)| *position);
    let headings = headings.into_iter().map(|(_, heading)| heading).collect();
    Rendered {
        html,
        headings,
        word_count,
        unresolved: unresolved.list,
        missing_images: missing_images.list,
    }
}

struct Pass<'a> {
    links: &'a Links<'a>,
    out: String,
    ids: HashSet<String>,
    /// The last number given to a wanted id, because ten thousand equal headings are also a page.
    id_counts: HashMap<String, usize>,
    /// The end tag of each open link: a missing one is a span.
    open_links: Vec<&'static str>,
    open_headings: Vec<OpenHeading>,
    headings: Vec<(usize, Heading)>,
    word_count: usize,
    unresolved: Noted,
    missing_images: Noted,
}

/// Each address once, in the order in which it was first met.
#[derive(Default)]
struct Noted {
    list: Vec<String>,
    known: HashSet<String>,
}

impl Noted {
    fn add(&mut self, address: &str) {
        if self.known.insert(address.to_string()) {
            self.list.push(address.to_string());
        }
    }
}

struct OpenHeading {
    level: u8,
    id: Option<String>,
    other_attributes: String,
    text: String,
    /// How much had been written before it. Its tag is written when its text, and so its id, is known.
    start: usize,
}

impl Pass<'_> {
    fn take(&mut self, token: &Token) {
        match token {
            Token::Text(text) => self.text(text),
            Token::Open {
                name: "a",
                attributes,
                ..
            } => self.open_link(attributes),
            Token::Close { name: "a", .. } => {
                let end = self.open_links.pop().unwrap_or("");
                self.out.push_str(end);
            }
            Token::Open {
                name: "img",
                attributes,
                ..
            } => self.image(attributes),
            Token::Open {
                name: "table",
                attributes,
                ..
            } => {
                self.out.push_str("<div class=\"table\" tabindex=\"0\">");
                self.open("table", attributes);
            }
            Token::Close { name: "table", .. } => self.out.push_str("</table></div>"),
            Token::Open {
                name: "pre",
                attributes,
                ..
            } => {
                // A wide listing scrolls inside the page, so a keyboard has to reach it.
                let attributes: Vec<_> = attributes
                    .iter()
                    .cloned()
                    .chain([("tabindex", "0".to_string())])
                    .collect();
                self.open("pre", &attributes);
            }
            Token::Open {
                name, attributes, ..
            } if anchor_level(name).is_some() => self.open_heading(name, attributes),
            Token::Close { name, .. } if anchor_level(name).is_some() => self.close_heading(name),
            Token::Open {
                name,
                attributes,
                raw,
            } => {
                if attributes.iter().any(|(name, _)| *name == "id") {
                    self.open(name, attributes);
                } else {
                    self.out.push_str(raw);
                }
            }
            Token::Close { raw, .. } => self.out.push_str(raw),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(text);
        self.word_count += text
            .split_whitespace()
            .filter(|word| word.contains(char::is_alphanumeric))
            .count();
        if !self.open_headings.is_empty() {
            let text = unescape(text);
            for heading in &mut self.open_headings {
                heading.text.push_str(&text);
            }
        }
    }

    fn open(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.out.push('<');
        self.out.push_str(name);
        for (attribute, value) in attributes {
            // An id that is taken would make two places one; only headings are worth another name.
            if *attribute == "id" && !self.ids.insert(value.clone()) {
                continue;
            }
            push_attribute(&mut self.out, attribute, value);
        }
        self.out.push('>');
    }

    fn open_link(&mut self, attributes: &[(&str, String)]) {
        let href = attributes
            .iter()
            .find(|(name, _)| *name == "href")
            .map(|(_, value)| value.as_str());
        let mut kept: Vec<_> = attributes
            .iter()
            .filter(|(name, _)| *name != "href")
            .cloned()
            .collect();
        match href.map(|href| self.links.resolve(href)) {
            // `<a id="…">` is a place to link to.
            None if kept.iter().any(|(name, _)| *name == "id") => self.open_links.push("</a>"),
            Some(Target::Inside(href)) => {
                kept.insert(0, ("href", href));
                self.open_links.push("</a>");
            }
            Some(Target::Outside(href)) => {
                let is_web = href.starts_with("http");
                kept.insert(0, ("href", href));
                if is_web {
                    kept.push(("rel", "noopener noreferrer nofollow".to_string()));
                }
                self.open_links.push("</a>");
            }
            // Without an address, or with one that the sanitiser took away, or with one that leads nowhere.
            None | Some(Target::Missing) => {
                if let Some(href) = href {
                    self.unresolved.add(&decoded(href));
                }
                self.open_links.push("</span>");
                kept.retain(|(name, _)| *name == "id");
                kept.push(("class", "link-missing".to_string()));
                if let Some(href) = href {
                    kept.push(("title", decoded(href)));
                }
                return self.open("span", &kept);
            }
        }
        self.open("a", &kept);
    }

    fn image(&mut self, attributes: &[(&str, String)]) {
        let value = |wanted: &str| {
            attributes
                .iter()
                .find(|(name, _)| *name == wanted)
                .map_or("", |(_, v)| v.as_str())
        };
        let source = value("src");
        if let Target::Outside(url) = self.links.resolve(source)
            && url.starts_with("https://")
        {
            let mut kept: Vec<_> = attributes
                .iter()
                .filter(|(name, _)| !matches!(*name, "src" | "alt"))
                .cloned()
                .collect();
            kept.insert(0, ("src", url));
            kept.insert(1, ("alt", value("alt").to_string()));
            kept.push(("loading", "lazy".to_string()));
            kept.push(("referrerpolicy", "no-referrer".to_string()));
            return self.open("img", &kept);
        }
        self.missing_images.add(source);
        let file_name = source.rsplit('/').next().unwrap_or_default();
        let words = [value("alt"), value("title"), file_name]
            .into_iter()
            .find(|words| !words.trim().is_empty());
        self.out.push_str("<span class=\"image-missing\">");
        self.out.push_str(&escape(words.unwrap_or("Image")));
        self.out.push_str("</span>");
    }

    fn open_heading(&mut self, name: &str, attributes: &[(&str, String)]) {
        let id = attributes
            .iter()
            .find(|(name, _)| *name == "id")
            .map(|(_, id)| id.clone());
        let mut other_attributes = String::new();
        for (name, value) in attributes.iter().filter(|(name, _)| *name != "id") {
            push_attribute(&mut other_attributes, name, value);
        }
        let level = anchor_level(name).unwrap_or(TERM_LEVEL);
        let start = self.out.len();
        self.open_headings.push(OpenHeading {
            level,
            id,
            other_attributes,
            text: String::new(),
            start,
        });
    }

    fn close_heading(&mut self, name: &str) {
        let Some(open) = self.open_headings.pop() else {
            return;
        };
        let inner = self.out.split_off(open.start);
        let text = open.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let id = self.unique_id(open.id.unwrap_or_else(|| anchor(&text)));
        self.out.push_str(&format!(
            "<{name} id=\"{}\"{}>",
            escape(&id),
            open.other_attributes
        ));
        self.out.push_str(&inner);
        self.out.push_str(&format!("</{name}>"));
        if !text.is_empty() && open.level != TERM_LEVEL {
            self.headings.push((
                open.start,
                Heading {
                    level: open.level,
                    id,
                    text,
                },
            ));
        }
    }

    /// `name`, `name-1`, `name-2`: as GitHub and Hugo count, so that links written for them arrive.
    fn unique_id(&mut self, wanted: String) -> String {
        let mut id = wanted.clone();
        while !self.ids.insert(id.clone()) {
            let number = self.id_counts.entry(wanted.clone()).or_insert(0);
            *number += 1;
            id = format!("{wanted}-{number}");
        }
        id
    }
}

/// The anchor that GitHub and Hugo make from a heading: letters and digits in lower case, spaces as hyphens.
fn anchor(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '-' | '_' => out.push(c),
            c if c.is_whitespace() => out.push('-'),
            c if c.is_alphanumeric() => out.extend(c.to_lowercase()),
            _ => {}
        }
    }
    if out.is_empty() {
        "section".to_string()
    } else {
        out
    }
}

/// Terms of a definition list are linked to like headings, and are none.
const TERM_LEVEL: u8 = 0;

fn anchor_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        b"dt" => Some(TERM_LEVEL),
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}

fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    out.push_str(&escape(value));
    out.push('"');
}

// ---------------------------------------------------------------------------------------------------------------------
// Reading canonical HTML

enum Token<'a> {
    Text(&'a str),
    Open {
        name: &'a str,
        attributes: Vec<(&'a str, String)>,
        raw: &'a str,
    },
    Close {
        name: &'a str,
        raw: &'a str,
    },
}

struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let length = if self.0.starts_with('<') {
            tag_length(self.0)
        } else {
            self.0.find('<').unwrap_or(self.0.len())
        };
        let (raw, rest) = self.0.split_at(length);
        self.0 = rest;
        let Some(inner) = raw.strip_prefix('<').and_then(|raw| raw.strip_suffix('>')) else {
            return Some(Token::Text(raw));
        };
        if let Some(name) = inner.strip_prefix('/') {
            return Some(Token::Close { name, raw });
        }
        let (name, attributes) = inner.split_once(' ').unwrap_or((inner, ""));
        Some(Token::Open {
            name,
            attributes: read_attributes(attributes),
            raw,
        })
    }
}

/// Up to the `>` that does not stand in quotes.
fn tag_length(text: &str) -> usize {
    let mut in_quotes = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => in_quotes = !in_quotes,
            b'>' if !in_quotes => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn read_attributes(mut text: &str) -> Vec<(&str, String)> {
    let mut attributes = Vec::new();
    while let Some((name, rest)) = text.trim_start().split_once("=\"") {
        let Some((value, rest)) = rest.split_once('"') else {
            break;
        };
        attributes.push((name, unescape(value)));
        text = rest;
    }
    attributes
}

/// The references that the sanitiser writes, and no others. `&amp;` comes last, so that nothing is read twice.
fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_string();
    }
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&nbsp;", "\u{a0}");
    text.replace("&amp;", "&")
}
