//! Where a link leads, as a browser would read it.
//!
//! Every address goes through the same URL parser as in a browser, so that tabs, back slashes, dots and escapes mean
//! here what they mean there. What comes out is an outside address, a page of this site, or nothing.

use serde_json::{Map, Value};
use url::{ParseError, Url};

use crate::content::slug;

/// What links of one page are resolved against.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    /// What comes before every path, without a slash at its end: `/live/harbour`, or `../..` in a static export.
    pub base: &'a str,
    /// The path of the page with the links: `visit/opening-hours`, or empty for the home page.
    pub page: &'a str,
    /// Whether the page's text stands inside its own folder (`_index.md`), and so do its relative links.
    pub is_section: bool,
    /// Whether a page has this path, which has no slash at either end. The home page always exists.
    pub exists: &'a dyn Fn(&str) -> bool,
    /// The page that was once served under this path.
    pub alias: Option<&'a Alias<'a>>,
}

pub type Alias<'a> = dyn Fn(&str) -> Option<String> + 'a;

pub(super) enum Target {
    Outside(String),
    Inside(String),
    Missing,
}

/// Names that a generator, a repository or a web server gives to the page of a folder.
const INDEX_NAMES: [&str; 3] = ["index", "_index", "readme"];
const PAGE_ENDINGS: [&str; 4] = [".md", ".markdown", ".html", ".htm"];
const LANGUAGE_PREFIX: &str = "en";

impl Links<'_> {
    pub(super) fn resolve(&self, href: &str) -> Target {
        let href = href.trim();
        if href.starts_with('#') {
            return if href.len() > 1 {
                Target::Inside(href.to_string())
            } else {
                Target::Missing
            };
        }
        match Url::parse(href) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "mailto" | "tel") => {
                Target::Outside(url.into())
            }
            Err(ParseError::RelativeUrlWithoutBase) if !href.is_empty() => {
                self.resolve_relative(href)
            }
            _ => Target::Missing,
        }
    }

    fn resolve_relative(&self, href: &str) -> Target {
        let served = served_at(self.page);
        let Ok(url) = served.join(href) else {
            return Target::Missing;
        };
        if url.host() != served.host() || url.port().is_some() {
            // `//host/…` and the spellings that a browser takes for it.
            return Target::Outside(url.into());
        }
        let fragment = url
            .fragment()
            .map(|fragment| format!("#{fragment}"))
            .unwrap_or_default();
        // `index.md` beside `deep.md` is the section's page, though a browser would read it as `deep/` itself.
        let is_file = [".md", ".markdown"]
            .iter()
            .any(|ending| url.path().ends_with(ending));
        let beside = || self.find_beside(href);
        let found = is_file
            .then(beside)
            .flatten()
            .or_else(|| self.find(&path_of(&url)))
            .or_else(beside)
            .or_else(|| self.find_from_root(href));
        match found {
            Some(path) if path.is_empty() => Target::Inside(format!("{}/{fragment}", self.base)),
            Some(path) => Target::Inside(format!("{}/{}/{fragment}", self.base, encoded(&path))),
            None => Target::Missing,
        }
    }

    /// Authors also link from file to file: `x.md` in `visit/hours.md` means `visit/x`, though the page is served at
    /// `visit/hours/`.
    fn find_beside(&self, href: &str) -> Option<String> {
        if self.is_section {
            return None;
        }
        let folder = self.page.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.find(&path_of(&served_at(folder).join(href).ok()?))
    }

    /// Hugo looks a bare path up from the root in the end. One that begins with a dot says where it starts.
    fn find_from_root(&self, href: &str) -> Option<String> {
        if href.starts_with('.') {
            return None;
        }
        self.find(&path_of(&served_at("").join(href).ok()?))
    }

    fn find(&self, path: &str) -> Option<String> {
        self.find_exactly(path).or_else(|| {
            let rest = path
                .strip_prefix(LANGUAGE_PREFIX)
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
            self.find_exactly(rest.trim_start_matches('/'))
        })
    }

    fn find_exactly(&self, path: &str) -> Option<String> {
        self.known(path).or_else(|| {
            let lower = path.to_ascii_lowercase();
            let shorter = without_file_name(&lower);
            let slugs = shorter
                .split('/')
                .filter(|s| !s.is_empty())
                .map(slug::slugify)
                .collect::<Vec<_>>()
                .join("/");
            [lower.as_str(), shorter, &slugs]
                .into_iter()
                .find_map(|path| self.known(path))
        })
    }

    fn known(&self, path: &str) -> Option<String> {
        if path.is_empty() || (self.exists)(path) {
            return Some(path.to_string());
        }
        let renamed = self.alias.and_then(|alias| alias(path))?;
        (renamed.is_empty() || (self.exists)(&renamed)).then_some(renamed)
    }
}

/// The paths that a page's `aliases` name, without slashes at the ends and in lower case. One that does not begin with a
/// slash stands beside the page, as in Hugo.
pub fn alias_paths(fields: &Map<String, Value>, page: &str) -> Vec<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let aliases: Vec<&str> = match fields.get("aliases") {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one],
        _ => Vec::new(),
    };
    let resolved = aliases
        .into_iter()
        .filter_map(|alias| served_at(folder).join(alias).ok());
    resolved
        .map(|url| without_file_name(&path_of(&url).to_ascii_lowercase()).to_string())
        .filter(|p| !p.is_empty())
        .collect()
}

/// A page's address on a host that cannot exist, so that an outside address is told by its host.
fn served_at(page: &str) -> Url {
    let mut url = Url::parse("https://site.invalid/").expect("a constant address");
    if !page.is_empty() {
        url.set_path(&format!("/{}/", encoded(page)));
    }
    url
}

/// Decoded, without slashes at the ends or twice in a row.
fn path_of(url: &Url) -> String {
    let decoded = decoded(url.path());
    decoded
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect::<Vec<_>>()
        .join("/")
}

/// `visit/hours.md` and `visit/hours/index.html` are both the page `visit/hours`.
fn without_file_name(path: &str) -> &str {
    let stem = PAGE_ENDINGS
        .iter()
        .find_map(|ending| path.strip_suffix(ending))
        .unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((folder, name)) if INDEX_NAMES.contains(&name) => folder,
        None if INDEX_NAMES.contains(&stem) => "",
        _ => stem,
    }
}

pub(super) fn decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| path.get(at + 1..at + 3))
            .flatten();
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Slugs need no escapes; a path from elsewhere might.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(char::from(byte))
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
