//! A site from a folder of Markdown.
//!
//! A file is a page, a folder is the page above its files, and the folder's own text comes from the first of `_index.md`,
//! `index.md`, `README.md` inside it or `name.md` beside it. Front matter is optional, YAML between `---` or TOML
//! between `+++`. One bad file never stops the rest: it is left out and [`Import::skipped`] says why.

mod aliases;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cloudhal_domain::limits::{JSON_KEYS_MAX, NODE_DEPTH_MAX, TITLE_CHARS_MAX};
use serde_json::{Map, Value};

use super::slug;

pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

const FIELD_BYTES_MAX: usize = 4 * 1024;
const FIELD_ITEMS_MAX: usize = 256;
/// The integers that every JSON reader keeps exactly; canonical JSON refuses the rest.
const SAFE_INTEGER_MAX: i64 = (1 << 53) - 1;
/// Up to this many files of one kind are named one by one.
const NAMED_MAX: usize = 3;
/// The distance between siblings that come without an order, so that a page fits in between later.
const ORDER_STEP: i64 = 10;

/// What a folder gave. Nodes come parents first, siblings in their order; the same folder always gives the same list.
#[derive(Debug)]
pub struct Import {
    pub nodes: Vec<ImportedNode>,
    /// What was left out, by path inside the folder, and why.
    pub skipped: Vec<Skipped>,
    /// What was not taken literally: another folder, a changed slug, a made-up title.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ImportedNode {
    /// Slugs from the root; empty for the home page.
    pub path: Vec<String>,
    pub kind: ImportedKind,
    /// The last of `path`; empty for the home page.
    pub slug: String,
    pub title: String,
    /// From `order` or `weight`; siblings without one follow in the order of their titles.
    pub order: i64,
    pub description: Option<String>,
    /// The rest of the front matter, as far as it is plain: scalars and lists of scalars.
    pub fields: Map<String, Value>,
    pub body: String,
}

/// A folder that has children, or a page. The home page is a page: nothing lies below its path but everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedKind {
    Page,
    Collection,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: String,
    pub reason: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read the folder {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("no Markdown file in {} could be used ({skipped} skipped)", path.display())]
    NoMarkdown { path: PathBuf, skipped: usize },
}

pub fn read_folder(dir: &Path) -> Result<Import, ImportError> {
    let unreadable = |source| ImportError::Unreadable {
        path: dir.to_path_buf(),
        source,
    };
    let dir = fs::canonicalize(dir).map_err(unreadable)?;
    if !dir.is_dir() {
        return Err(ImportError::NotAFolder(dir));
    }
    fs::read_dir(&dir).map_err(unreadable)?;
    let mut report = Report::default();
    let root = content_root(&dir, &mut report);
    let folder = scan(
        &Place {
            root: &root,
            dir: &root,
            rel: String::new(),
            depth: 0,
        },
        &mut report,
    );

    let mut nodes = Vec::new();
    place_home(&folder, &mut nodes);
    place_children(folder, &[], &mut nodes, &mut report);
    let (skipped, notes) = report.finish();
    if nodes.is_empty() {
        return Err(ImportError::NoMarkdown {
            path: root,
            skipped: skipped.len(),
        });
    }
    Ok(Import {
        nodes,
        skipped,
        notes,
    })
}

/// A checkout of a Hugo site keeps its pages under `content`, per language under `content/en`.
fn content_root(dir: &Path, report: &mut Report) -> PathBuf {
    if has_markdown(dir, |stem| !is_project_file(stem)) {
        return dir.to_path_buf();
    }
    for inner in ["content/en", "content"] {
        // A link could lead anywhere, so it is not followed here either.
        let Ok(found) = fs::canonicalize(dir.join(inner)) else {
            continue;
        };
        if found.is_dir() && found.starts_with(dir) {
            report.notes.push(format!(
                "read {inner}, the content folder inside; nothing beside it was looked at"
            ));
            return found;
        }
    }
    dir.to_path_buf()
}

/// Files that stand at the top of every repository and say nothing about where the pages are.
fn is_project_file(stem: &str) -> bool {
    [
        "readme",
        "license",
        "licence",
        "contributing",
        "changelog",
        "code_of_conduct",
        "security",
    ]
    .contains(&stem.to_ascii_lowercase().as_str())
}

fn has_markdown(dir: &Path, counts: impl Fn(&str) -> bool) -> bool {
    entries(dir).unwrap_or_default().iter().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        markdown_stem(&name).is_some_and(&counts) && !name.starts_with('.')
    })
}

// ---------------------------------------------------------------------------------------------------------------------
// From the disk

struct Folder {
    name: String,
    rel: String,
    index: Option<Document>,
    documents: Vec<Document>,
    folders: Vec<Folder>,
}

struct Document {
    stem: String,
    rel: String,
    front: FrontMatter,
    body: String,
}

struct Place<'a> {
    root: &'a Path,
    dir: &'a Path,
    rel: String,
    depth: usize,
}

impl Place<'_> {
    fn rel_of(&self, name: &str) -> String {
        if self.rel.is_empty() {
            name.to_string()
        } else {
            format!("{}/{name}", self.rel)
        }
    }
}

fn scan(place: &Place, report: &mut Report) -> Folder {
    let name = place.rel.rsplit('/').next().unwrap_or_default().to_string();
    let mut folder = Folder {
        name,
        rel: place.rel.clone(),
        index: None,
        documents: Vec::new(),
        folders: Vec::new(),
    };
    let entries = match entries(place.dir) {
        Ok(entries) => entries,
        Err(error) => {
            report.skip(&place.rel, format!("the folder cannot be read: {error}"));
            return folder;
        }
    };
    let mut documents = Vec::new();
    for entry in entries {
        scan_entry(place, &entry, &mut folder.folders, &mut documents, report);
    }
    choose_index(&mut folder, documents, report);
    adopt_documents(&mut folder);
    folder.folders.retain(|inner| {
        inner.index.is_some() || !inner.documents.is_empty() || !inner.folders.is_empty()
    });
    folder
}

fn scan_entry(
    place: &Place,
    entry: &fs::DirEntry,
    folders: &mut Vec<Folder>,
    documents: &mut Vec<Document>,
    report: &mut Report,
) {
    let name = entry.file_name();
    let Some(name) = name.to_str() else {
        report.skip(
            &place.rel_of(&name.to_string_lossy()),
            "the name is not UTF-8",
        );
        return;
    };
    let rel = place.rel_of(name);
    if name.starts_with('.') {
        report.hidden.push(rel);
        return;
    }
    let path = match resolve(place, entry) {
        Ok(path) => path,
        Err(reason) => return report.skip(&rel, reason),
    };
    if path.is_dir() {
        // The folder's own page is one deeper than the folder it stands in.
        if place.depth + 1 >= NODE_DEPTH_MAX {
            return report.skip(&rel, format!("deeper than {NODE_DEPTH_MAX} levels"));
        }
        folders.push(scan(
            &Place {
                root: place.root,
                dir: &path,
                rel,
                depth: place.depth + 1,
            },
            report,
        ));
    } else if let Some(stem) = markdown_stem(name) {
        match read_document(&path, stem, &rel) {
            Ok(document) => documents.push(document),
            Err(reason) => report.skip(&rel, reason),
        }
    } else {
        report.other.entry(extension(name)).or_default().push(rel);
    }
}

/// Sorted by name, because the order of a directory is an accident of the file system.
fn entries(dir: &Path) -> std::io::Result<Vec<fs::DirEntry>> {
    let mut entries = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

fn resolve(place: &Place, entry: &fs::DirEntry) -> Result<PathBuf, String> {
    let kind = entry
        .file_type()
        .map_err(|error| format!("cannot be read: {error}"))?;
    if !kind.is_symlink() {
        return if kind.is_dir() || kind.is_file() {
            Ok(entry.path())
        } else {
            Err("not a regular file".into())
        };
    }
    let target =
        fs::canonicalize(entry.path()).map_err(|_| "a symbolic link that leads nowhere")?;
    if !target.starts_with(place.root) {
        return Err("a symbolic link that leads out of the folder".into());
    }
    if target.is_dir() {
        return Err(
            "a symbolic link to a folder; what it holds is imported where it really is".into(),
        );
    }
    Ok(target)
}

fn markdown_stem(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    let is_markdown =
        extension.eq_ignore_ascii_case("md") || extension.eq_ignore_ascii_case("markdown");
    (is_markdown && !stem.is_empty()).then_some(stem)
}

fn extension(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((_, extension)) => extension.to_ascii_lowercase(),
        None => String::new(),
    }
}

fn read_document(path: &Path, stem: &str, rel: &str) -> Result<Document, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let size = fs::metadata(path).map_err(unreadable)?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("{size} bytes, more than {FILE_BYTES_MAX}"));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        format!(
            "not UTF-8: byte {} is not part of a character",
            error.utf8_error().valid_up_to()
        )
    })?;
    let (front, body) = parse_document(&text)?;
    if front.draft {
        return Err("a draft".into());
    }
    Ok(Document {
        stem: stem.to_string(),
        rel: rel.to_string(),
        front,
        body,
    })
}

/// `_index` is Hugo's section page, `index` its leaf bundle, `README` what a repository shows for a folder.
fn choose_index(folder: &mut Folder, documents: Vec<Document>, report: &mut Report) {
    const NAMES: [&str; 3] = ["_index", "index", "readme"];
    let rank = |document: &Document| {
        NAMES
            .iter()
            .position(|name| document.stem.eq_ignore_ascii_case(name))
    };
    let best = documents.iter().filter_map(rank).min();
    for document in documents {
        match (&folder.index, rank(&document)) {
            (None, Some(found)) if Some(found) == best => folder.index = Some(document),
            // A second README is a page of its own; a second index could only stand at the same path.
            (_, Some(0 | 1)) => report.skip(
                &document.rel,
                "duplicate path: the folder's page comes from another file",
            ),
            _ => folder.documents.push(document),
        }
    }
}

/// `visit.md` beside `visit/` is the page of that folder, if nothing inside claims to be.
fn adopt_documents(folder: &mut Folder) {
    let Folder {
        documents, folders, ..
    } = folder;
    for inner in folders.iter_mut().filter(|inner| inner.index.is_none()) {
        if let Some(at) = documents
            .iter()
            .position(|document| document.stem == inner.name)
        {
            inner.index = Some(documents.remove(at));
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// To the tree

fn place_home(folder: &Folder, nodes: &mut Vec<ImportedNode>) {
    if let Some(index) = &folder.index {
        let title = index
            .front
            .title
            .clone()
            .unwrap_or_else(|| "Home".to_string());
        let mut home = node(
            &index.front,
            index.body.clone(),
            title,
            Vec::new(),
            ImportedKind::Page,
        );
        home.order = index.front.order.unwrap_or(0);
        nodes.push(home);
    }
}

/// One child of a folder while its siblings are still being compared: a file, or a folder with or without a page.
struct Child {
    source_name: String,
    rel: String,
    document: Option<Document>,
    folder: Option<Folder>,
    title: String,
    slug: String,
}

impl Child {
    fn order(&self) -> Option<i64> {
        self.document
            .as_ref()
            .and_then(|document| document.front.order)
    }
}

fn place_children(
    folder: Folder,
    path: &[String],
    nodes: &mut Vec<ImportedNode>,
    report: &mut Report,
) {
    let mut children = children_of(folder);
    assign_slugs(&mut children, report);
    // Titles decide among those without an order; the slug only breaks a tie, so that the result never wavers.
    children.sort_by_cached_key(|child| {
        (
            child.order().is_none(),
            child.order(),
            child.title.to_lowercase(),
            child.slug.clone(),
        )
    });
    let mut next = children
        .iter()
        .filter_map(Child::order)
        .max()
        .unwrap_or(0)
        .max(0);
    for child in children {
        let order = child.order().unwrap_or_else(|| {
            next = (next + ORDER_STEP).min(SAFE_INTEGER_MAX);
            next
        });
        place_child(child, order, path, nodes, report);
    }
}

fn place_child(
    child: Child,
    order: i64,
    path: &[String],
    nodes: &mut Vec<ImportedNode>,
    report: &mut Report,
) {
    let path: Vec<String> = path.iter().cloned().chain([child.slug]).collect();
    let has_children = child
        .folder
        .as_ref()
        .is_some_and(|f| !f.documents.is_empty() || !f.folders.is_empty());
    let kind = if has_children {
        ImportedKind::Collection
    } else {
        ImportedKind::Page
    };
    if child.document.is_none() {
        report.notes.push(format!(
            "{}: a folder without a page of its own, titled “{}”",
            child.rel, child.title
        ));
    }
    let (front, body) = child
        .document
        .map(|document| (document.front, document.body))
        .unwrap_or_default();
    let mut placed = node(&front, body, child.title, path.clone(), kind);
    placed.order = order;
    aliases::remember_file(&mut placed.fields, &child.source_name, &placed.path);
    nodes.push(placed);
    if let Some(folder) = child.folder {
        place_children(folder, &path, nodes, report);
    }
}

fn node(
    front: &FrontMatter,
    body: String,
    title: String,
    path: Vec<String>,
    kind: ImportedKind,
) -> ImportedNode {
    let mut fields = front.fields.clone();
    aliases::remember_url(&mut fields, &path);
    let slug = path.last().cloned().unwrap_or_default();
    ImportedNode {
        path,
        kind,
        slug,
        title,
        order: 0,
        description: front.description.clone(),
        fields,
        body,
    }
}

fn children_of(folder: Folder) -> Vec<Child> {
    let folders = folder.folders.into_iter().map(|mut inner| {
        let document = inner.index.take();
        child(inner.name.clone(), inner.rel.clone(), document, Some(inner))
    });
    let documents = folder
        .documents
        .into_iter()
        .map(|d| child(d.stem.clone(), d.rel.clone(), Some(d), None));
    folders.chain(documents).collect()
}

fn child(
    source_name: String,
    rel: String,
    document: Option<Document>,
    folder: Option<Folder>,
) -> Child {
    let front = document.as_ref().map(|document| &document.front);
    let title = front
        .and_then(|front| front.title.clone())
        .unwrap_or_else(|| title_from(&source_name));
    let wanted = front
        .and_then(|front| front.slug.as_deref())
        .unwrap_or(&source_name);
    let slug = if slug::is_slug(wanted) {
        wanted.to_string()
    } else {
        slug::slugify(wanted)
    };
    Child {
        source_name,
        rel,
        document,
        folder,
        title,
        slug,
    }
}

/// Whoever is called exactly so keeps the slug; the others get a number, and the report says so.
fn assign_slugs(children: &mut [Child], report: &mut Report) {
    children.sort_by_cached_key(|child| {
        (
            child.slug != child.source_name,
            child.folder.is_none(),
            child.rel.clone(),
        )
    });
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for child in children {
        let wanted = child.slug.clone();
        let mut number = 2;
        while !taken.insert(child.slug.clone()) {
            child.slug = slug::numbered(&wanted, number);
            number += 1;
        }
        if child.slug != wanted {
            report.notes.push(format!(
                "{}: slug {} instead of {wanted}, which a sibling has",
                child.rel, child.slug
            ));
        } else if is_surprising(child) {
            report
                .notes
                .push(format!("{}: slug {}", child.rel, child.slug));
        }
    }
}

/// Lower-casing a file's name is what every site generator does; anything beyond it deserves a line.
fn is_surprising(child: &Child) -> bool {
    let asked = child
        .document
        .as_ref()
        .and_then(|document| document.front.slug.as_deref());
    child.slug != asked.unwrap_or(&child.source_name).to_ascii_lowercase()
}

fn title_from(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => limited_title(&format!("{}{}", first.to_uppercase(), chars.as_str())),
        None => "Untitled".to_string(),
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Inside a file

#[derive(Debug, Default)]
struct FrontMatter {
    title: Option<String>,
    slug: Option<String>,
    order: Option<i64>,
    description: Option<String>,
    draft: bool,
    fields: Map<String, Value>,
}

fn parse_document(text: &str) -> Result<(FrontMatter, String), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // One kind of line end inside; and U+0000 is what CommonMark replaces and a database may refuse.
    let text = text
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace('\0', "\u{fffd}");
    let (matter, body) = split_front_matter(&text)?;
    let mut front = match matter {
        Some(Matter::Yaml(yaml)) => sort_fields(parse_yaml(yaml)?),
        Some(Matter::Toml(toml)) => sort_fields(parse_toml(toml)?),
        None => FrontMatter::default(),
    };
    let mut body = body.trim_start_matches('\n');
    if front.title.is_none() {
        // The theme prints the title; a heading that only repeats it would stand there twice.
        if let Some((title, rest)) = leading_heading(body) {
            front.title = Some(title);
            body = rest;
        }
    }
    Ok((front, body.to_string()))
}

enum Matter<'a> {
    Yaml(&'a str),
    Toml(&'a str),
}

fn split_front_matter(text: &str) -> Result<(Option<Matter<'_>>, &str), String> {
    let Some((first, rest)) = text.split_once('\n') else {
        return Ok((None, text));
    };
    let fence = first.trim_end();
    if fence != "---" && fence != "+++" {
        return Ok((None, text));
    }
    let mut start = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == fence {
            let (matter, body) = (&rest[..start], &rest[start + line.len()..]);
            return Ok((
                Some(if fence == "---" {
                    Matter::Yaml(matter)
                } else {
                    Matter::Toml(matter)
                }),
                body,
            ));
        }
        start += line.len();
    }
    Err(format!(
        "broken front matter: the {fence} of line 1 is never closed"
    ))
}

fn parse_yaml(yaml: &str) -> Result<Map<String, Value>, String> {
    if yaml.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("broken front matter: line 2: not a list of `name: value`".into()),
        Err(error) => {
            let line = error.location().map_or(1, |location| location.line());
            Err(broken(line as usize, &error.without_snippet().to_string()))
        }
    }
}

fn parse_toml(text: &str) -> Result<Map<String, Value>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..offset]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        broken(line, error.message())
    })?;
    Ok(table
        .into_iter()
        .map(|(key, value)| (key, toml_to_json(value)))
        .collect())
}

fn toml_to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        // TOML alone has a type for it; everything else in a site keeps dates as text.
        toml::Value::Datetime(date) => Value::String(date.to_string()),
        toml::Value::Array(items) => items.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => table
            .into_iter()
            .map(|(key, value)| (key, toml_to_json(value)))
            .collect(),
    }
}

/// `line` counts inside the front matter; the person who mends it counts from the top of the file.
fn broken(line: usize, what: &str) -> String {
    let what = what.lines().next().unwrap_or_default();
    let what = match what.split_once(": ") {
        Some((place, rest)) if place.starts_with("line ") => rest,
        _ => what,
    };
    // The reader's own line numbers are off by the fence, and one is enough.
    let what = what.split(" at line ").next().unwrap_or_default();
    format!("broken front matter: line {}: {what}", line + 1)
}

fn sort_fields(map: Map<String, Value>) -> FrontMatter {
    let mut front = FrontMatter::default();
    for (key, value) in map {
        match key.as_str() {
            "title" => {
                front.title = scalar_text(&value)
                    .map(|text| limited_title(&text))
                    .filter(|text| !text.is_empty())
            }
            "slug" => {
                front.slug =
                    scalar_text(&value).map(|text| text.trim_matches('/').trim().to_string())
            }
            "description" => front.description = scalar_text(&value).map(|text| one_line(&text)),
            "order" => front.order = whole_number(&value),
            // Hugo takes a weight of zero for none.
            "weight" => {
                front.order = front
                    .order
                    .or(whole_number(&value).filter(|weight| *weight != 0))
            }
            "draft" => front.draft = is_true(&value),
            _ => keep_field(&mut front.fields, key, value),
        }
    }
    front.slug = front.slug.filter(|slug| !slug.is_empty());
    front.description = front.description.filter(|text| !text.is_empty());
    front
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.replace('\0', "\u{fffd}")),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn whole_number(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.as_i64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    Some(number.clamp(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX))
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(text) => ["true", "yes", "on"].contains(&text.to_ascii_lowercase().as_str()),
        _ => false,
    }
}

fn keep_field(fields: &mut Map<String, Value>, key: String, value: Value) {
    if fields.len() >= JSON_KEYS_MAX || key.is_empty() || key.len() > FIELD_BYTES_MAX {
        return;
    }
    let kept = match value {
        Value::Array(items) => {
            let items: Vec<Value> = items
                .into_iter()
                .filter_map(plain)
                .take(FIELD_ITEMS_MAX)
                .collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        scalar => plain(scalar),
    };
    if let Some(value) = kept {
        fields.insert(key.replace('\0', "\u{fffd}"), value);
    }
}

fn plain(value: Value) -> Option<Value> {
    match value {
        Value::String(text) if text.is_empty() || text.len() > FIELD_BYTES_MAX => None,
        Value::String(text) => Some(Value::String(text.replace('\0', "\u{fffd}"))),
        Value::Bool(_) => Some(value),
        Value::Number(ref number) => match number.as_i64() {
            Some(whole) if whole.abs() <= SAFE_INTEGER_MAX => Some(value),
            None if number.is_f64() => Some(value),
            _ => Some(Value::String(number.to_string())),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn leading_heading(body: &str) -> Option<(String, &str)> {
    let (line, rest) = body.split_once('\n').unwrap_or((body, ""));
    let text = line.strip_prefix("# ")?.trim();
    let text = match text.rfind("{#") {
        Some(at) if text.ends_with('}') => &text[..at],
        _ => text,
    };
    let title = limited_title(&text.trim_end_matches('#').replace(['`', '*'], ""));
    (!title.is_empty()).then(|| (title, rest.trim_start_matches('\n')))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn limited_title(text: &str) -> String {
    let text = one_line(text);
    if text.chars().count() <= TITLE_CHARS_MAX {
        return text;
    }
    let mut cut: String = text.chars().take(TITLE_CHARS_MAX - 1).collect();
    cut.push('…');
    cut
}

// ---------------------------------------------------------------------------------------------------------------------
// What to tell the person

#[derive(Default)]
struct Report {
    skipped: Vec<Skipped>,
    notes: Vec<String>,
    hidden: Vec<String>,
    /// Files that are not Markdown, by extension: a site can have thousands of pictures.
    other: BTreeMap<String, Vec<String>>,
}

impl Report {
    fn skip(&mut self, path: &str, reason: impl Into<String>) {
        self.skipped.push(Skipped {
            path: path.to_string(),
            reason: reason.into(),
        });
    }

    fn finish(mut self) -> (Vec<Skipped>, Vec<String>) {
        let hidden = std::mem::take(&mut self.hidden);
        self.summarise(".*", hidden, "hidden");
        for (extension, paths) in std::mem::take(&mut self.other) {
            let pattern = if extension.is_empty() {
                "*".to_string()
            } else {
                format!("*.{extension}")
            };
            self.summarise(&pattern, paths, "not Markdown");
        }
        (self.skipped, self.notes)
    }

    fn summarise(&mut self, pattern: &str, paths: Vec<String>, reason: &str) {
        if paths.len() > NAMED_MAX {
            return self.skip(pattern, format!("{reason} ({} files)", paths.len()));
        }
        for path in paths {
            self.skip(&path, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files. A path that ends in a slash is an empty folder.
    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    fn import(files: &[(&str, &[u8])]) -> Import {
        read_folder(folder(files).path()).unwrap()
    }

    fn paths(import: &Import) -> Vec<String> {
        import
            .nodes
            .iter()
            .map(|node| node.path.join("/"))
            .collect()
    }

    fn reason<'a>(import: &'a Import, path: &str) -> &'a str {
        let found = import.skipped.iter().find(|skipped| skipped.path == path);
        found.map_or_else(
            || panic!("{path} is not among {:?}", import.skipped),
            |skipped| skipped.reason.as_str(),
        )
    }

    #[test]
    fn a_page_is_found_under_its_files_name_as_well() {
        let import = import(&[
            (
                "blog/a.md",
                b"---\ntitle: A\nslug: first\naliases: [/old/]\n---\n",
            ),
            ("blog/Opening Hours.md", b"---\ntitle: B\n---\n"),
        ]);
        let aliases = |path: &str| {
            let node = import.nodes.iter().find(|node| node.path.join("/") == path);
            node.unwrap().fields.get("aliases").cloned()
        };
        assert_eq!(
            aliases("blog/first"),
            Some(serde_json::json!(["/old/", "/blog/a/"]))
        );
        assert_eq!(aliases("blog/opening-hours"), None);
    }

    #[test]
    fn a_folder_becomes_a_tree() {
        let import = import(&[
            ("_index.md", b"---\ntitle: Harbour Street Bakery\ndescription: |\n  Bread since\n  1978\n---\n\nWelcome.\n"),
            ("visit/_index.md", b"---\ntitle: Visit\nweight: 20\n---\nCome in."),
            ("visit/opening-hours.md", b"# Opening `hours`\n\nWe open at 7:00.\n"),
            ("visit/find/index.md", b"+++\ntitle = 'How to find us'\norder = 1\ndate = 2024-05-01\n+++\nTram 4."),
            ("bread/rye/dark.md", b"Dark."),
            ("about.md", b"---\ntitle: About\norder: 10\nslug: about-us\n---\n"),
            ("team/README.md", b"# The team\n"),
        ]);
        assert_eq!(
            paths(&import),
            [
                "",
                "about-us",
                "visit",
                "visit/find",
                "visit/opening-hours",
                "bread",
                "bread/rye",
                "bread/rye/dark",
                "team"
            ]
        );
        let by_path = |path: &str| {
            import
                .nodes
                .iter()
                .find(|node| node.path.join("/") == path)
                .unwrap()
        };
        let home = by_path("");
        assert_eq!(
            (home.kind, home.slug.as_str(), home.body.as_str()),
            (ImportedKind::Page, "", "Welcome.\n")
        );
        assert_eq!(home.description.as_deref(), Some("Bread since 1978"));
        assert_eq!(by_path("visit").kind, ImportedKind::Collection);
        let hours = by_path("visit/opening-hours");
        assert_eq!(
            (hours.title.as_str(), hours.body.as_str()),
            ("Opening hours", "We open at 7:00.\n")
        );
        let find = by_path("visit/find");
        assert_eq!(
            (find.kind, find.order, find.title.as_str()),
            (ImportedKind::Page, 1, "How to find us")
        );
        assert_eq!(find.fields["date"], "2024-05-01");
        assert_eq!(by_path("bread/rye").title, "Rye");
        assert_eq!(by_path("team").title, "The team");
        assert!(import.skipped.is_empty(), "{:?}", import.skipped);
        assert_eq!(
            import.notes.len(),
            2,
            "two folders have no page: {:?}",
            import.notes
        );
    }

    #[test]
    fn siblings_keep_their_order_and_the_rest_follows_by_title() {
        let import = import(&[
            ("z.md", b"---\ntitle: Apple\n---"),
            ("a.md", b"---\ntitle: banana\n---"),
            ("m.md", b"---\ntitle: First\norder: -5\n---"),
            ("n.md", b"---\ntitle: Second\nweight: 30\n---"),
            ("o.md", b"---\ntitle: Cherry\nweight: 0\n---"),
        ]);
        let found: Vec<_> = import
            .nodes
            .iter()
            .map(|node| (node.title.as_str(), node.order))
            .collect();
        assert_eq!(
            found,
            [
                ("First", -5),
                ("Second", 30),
                ("Apple", 40),
                ("banana", 50),
                ("Cherry", 60)
            ]
        );
    }

    #[test]
    fn front_matter_comes_in_many_forms() {
        for (text, title, body) in [
            ("Just text.", "Page", "Just text."),
            ("", "Page", ""),
            ("---\n---\n", "Page", ""),
            ("---\ntitle: T\n---", "T", ""),
            ("---\r\ntitle: T\r\n---\r\na\r\nb", "T", "a\nb"),
            ("\u{feff}---\ntitle: T\n---\nx", "T", "x"),
            ("\u{feff}# T\n\nx", "T", "x"),
            ("+++\ntitle = \"T\"\n+++\nx", "T", "x"),
            ("---  \ntitle: \"T: a\"\n---  \nx", "T: a", "x"),
            ("---\ntitle: 2024\n---\n", "2024", ""),
            ("---\ntitle: ''\n---\n", "Page", ""),
            ("---\ntitle:   \"  a\\n b \"\n---\n", "a b", ""),
            (
                "---\ntitle: \"a\\0b\"\n---\nx\0y",
                "a\u{fffd}b",
                "x\u{fffd}y",
            ),
            (
                "---\n# a comment\ntitle: T\n---\n# Own heading\nx",
                "T",
                "# Own heading\nx",
            ),
            ("----\ntitle: T\n----\nx", "Page", "----\ntitle: T\n----\nx"),
        ] {
            let import = import(&[("page.md", text.as_bytes())]);
            let node = &import.nodes[0];
            assert_eq!(
                (node.title.as_str(), node.body.as_str()),
                (title, body),
                "{text:?}"
            );
        }
    }

    #[test]
    fn plain_fields_are_kept() {
        let text = "---\ntitle: T\nlinkTitle: L\naliases: [/a/, /b/, {x: 1}]\ndate: 2024-05-01\nrating: 4.5\nfeatured: true\nempty: []\nnothing: ~\nhuge: 9007199254740993\nparams:\n  deep: 1\nurl: /other/\ndraft: false\n---\n";
        let import = import(&[("page.md", text.as_bytes())]);
        let expected = serde_json::json!({
            "linkTitle": "L", "aliases": ["/a/", "/b/", "/other/"], "date": "2024-05-01", "rating": 4.5, "featured": true,
            "huge": "9007199254740993",
        });
        assert_eq!(Value::Object(import.nodes[0].fields.clone()), expected);
    }

    #[test]
    fn what_is_left_out_says_why() {
        let large = vec![b'a'; FILE_BYTES_MAX as usize + 1];
        let deep = format!("{}x.md", "d/".repeat(NODE_DEPTH_MAX));
        let bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f]\n---\n";
        let import = import(&[
            ("good.md", b"Good."),
            ("yaml.md", b"---\ntitle: ok\nlist: [a, b\nother: c\n---\nx"),
            ("tabs.md", b"---\ntitle: ok\n\tindent: x\n---\nx"),
            ("twice.md", b"---\ntitle: a\ntitle: b\n---\nx"),
            ("list.md", b"---\n- a\n---\nx"),
            ("open.md", b"---\ntitle: x\n\nNo end."),
            ("toml.md", b"+++\ntitle = \"x\"\norder = \n+++\nx"),
            ("bomb.md", bomb.as_bytes()),
            ("latin.md", b"---\ntitle: x\n---\ncaf\xe9"),
            ("large.md", &large),
            ("draft.md", b"---\ntitle: x\ndraft: true\n---\nx"),
            ("both/_index.md", b"One"),
            ("both/index.md", b"Two"),
            ("a.png", b""),
            ("b.png", b""),
            ("c.PNG", b""),
            ("d/e.png", b""),
            ("notes.txt", b""),
            ("Makefile", b""),
            (".git/HEAD", b""),
            (&deep, b"Deep."),
        ]);
        assert_eq!(paths(&import), ["both", "good"]);
        for (path, expected) in [
            ("yaml.md", "broken front matter: line "),
            ("tabs.md", "broken front matter: line 2: "),
            ("twice.md", "broken front matter: line 3: "),
            ("list.md", "broken front matter: line 2: not a list"),
            ("open.md", "the --- of line 1 is never closed"),
            ("toml.md", "broken front matter: line 3: "),
            ("bomb.md", "broken front matter: line "),
            ("latin.md", "not UTF-8: byte 20"),
            ("large.md", "1048577 bytes, more than 1048576"),
            ("draft.md", "a draft"),
            ("both/index.md", "duplicate path"),
            ("*.png", "not Markdown (4 files)"),
            ("notes.txt", "not Markdown"),
            ("Makefile", "not Markdown"),
            (".git", "hidden"),
            ("d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d", "deeper than 16 levels"),
        ] {
            let reason = reason(&import, path);
            assert!(
                reason.contains(expected) && !reason.contains('\n'),
                "{path}: {reason}"
            );
        }
        assert_eq!(import.skipped.len(), 16, "{:?}", import.skipped);
    }

    #[test]
    fn slugs_are_made_valid_and_unique() {
        let import = import(&[
            ("Opening Hours.md", b""),
            ("opening-hours.md", b""),
            ("opening_hours.md", b"---\nslug: opening-hours\n---"),
            ("\u{c9}clair & Caf\u{e9}.md", b""),
            ("\u{65e5}\u{672c}.md", b""),
            ("rye/_index.md", b"---\ntitle: Folder\n---"),
            ("rye/x.md", b""),
            ("rye.md", b"---\ntitle: File\n---"),
            ("spelt/x.md", b""),
            ("spelt.md", b"---\ntitle: Adopted\n---"),
            ("404.html.md", b""),
            ("Plain.md", b""),
        ]);
        let mut found = paths(&import);
        found.sort();
        let other_script = slug::slugify("\u{65e5}\u{672c}");
        let mut expected = [
            "404-html",
            "eclair-cafe",
            "opening-hours",
            "opening-hours-2",
            "opening-hours-3",
            "plain",
            "rye",
            "rye-2",
            "rye/x",
            "spelt",
            "spelt/x",
            &other_script,
        ];
        expected.sort_unstable();
        assert_eq!(found, expected);
        let title = |path: &str| {
            import
                .nodes
                .iter()
                .find(|n| n.path.join("/") == path)
                .unwrap()
                .title
                .clone()
        };
        assert_eq!(
            (title("rye"), title("rye-2"), title("spelt")),
            ("Folder".into(), "File".into(), "Adopted".into())
        );
        for told in [
            "rye.md: slug rye-2",
            "Opening Hours.md: slug opening-hours-",
            "404.html.md: slug 404-html",
        ] {
            assert!(
                import.notes.iter().any(|note| note.starts_with(told)),
                "{told} is not in {:?}",
                import.notes
            );
        }
        assert!(
            !import.notes.iter().any(|note| note.starts_with("Plain")),
            "lower-casing alone is not worth a line"
        );
    }

    #[test]
    fn a_checkout_is_entered_at_its_content() {
        let project = [
            ("README.md", b"# Project" as &[u8]),
            ("themes/x/readme.md", b""),
            ("content/en/a.md", b""),
        ];
        let found = import(&project);
        assert_eq!(paths(&found), ["a"]);
        assert!(found.notes[0].contains("content/en"), "{:?}", found.notes);
        assert_eq!(paths(&import(&[("content/b.md", b"")])), ["b"]);
        assert_eq!(
            paths(&import(&[("own.md", b""), ("content/b.md", b"")])),
            ["content", "content/b", "own"]
        );
        assert_eq!(paths(&import(&[("README.md", b"# Only")])), [""]);
    }

    #[test]
    fn the_same_folder_gives_the_same_nodes() {
        let files: Vec<(String, Vec<u8>)> = (0..60)
            .map(|n| {
                (
                    format!("s{}/P {}.md", n % 7, n * 37 % 60),
                    format!("---\ntitle: T{}\n---", n % 5).into_bytes(),
                )
            })
            .collect();
        let files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_slice()))
            .collect();
        let reversed: Vec<_> = files.iter().rev().copied().collect();
        assert_eq!(import(&files).nodes, import(&reversed).nodes);
    }

    #[test]
    fn parents_come_before_children() {
        let files: Vec<String> = (1..NODE_DEPTH_MAX)
            .map(|depth| format!("{}x.md", "d/".repeat(depth)))
            .collect();
        let files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|path| (path.as_str(), b"" as &[u8]))
            .collect();
        let import = import(&files);
        let mut known = BTreeSet::from([Vec::new()]);
        for node in &import.nodes {
            assert!(
                known.contains(&node.path[..node.path.len() - 1]),
                "{:?} came before its parent",
                node.path
            );
            assert!(node.path.len() <= NODE_DEPTH_MAX);
            known.insert(node.path.clone());
        }
        assert_eq!(import.nodes.len(), 2 * (NODE_DEPTH_MAX - 1));
    }

    #[test]
    fn a_folder_that_gives_nothing_is_an_error() {
        assert!(matches!(
            read_folder(Path::new("/no/such/folder")),
            Err(ImportError::Unreadable { .. })
        ));
        let dir = folder(&[("a.md", b"---\nx"), ("b.png", b"")]);
        assert!(matches!(
            read_folder(&dir.path().join("a.md")),
            Err(ImportError::NotAFolder(_))
        ));
        match read_folder(dir.path()) {
            Err(ImportError::NoMarkdown { skipped, .. }) => assert_eq!(skipped, 2),
            other => panic!("{other:?}"),
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out() {
        use std::ffi::OsStr;
        use std::os::unix::{ffi::OsStrExt, fs::symlink};
        let outside = folder(&[
            ("secret.md", b"Secret."),
            ("folder/more.md", b"Secret too."),
        ]);
        let dir = folder(&[("real/page.md", b"Here.")]);
        symlink(outside.path().join("secret.md"), dir.path().join("a.md")).unwrap();
        symlink(outside.path().join("folder"), dir.path().join("b")).unwrap();
        symlink(dir.path().join("real"), dir.path().join("c")).unwrap();
        symlink(
            dir.path().join("real/page.md"),
            dir.path().join("inside.md"),
        )
        .unwrap();
        symlink("nowhere.md", dir.path().join("dangling.md")).unwrap();
        symlink(".", dir.path().join("real/loop")).unwrap();
        fs::write(dir.path().join(OsStr::from_bytes(b"caf\xe9.md")), "").unwrap();
        let import = read_folder(dir.path()).unwrap();
        assert_eq!(paths(&import), ["inside", "real", "real/page"]);
        for (path, expected) in [
            ("a.md", "leads out"),
            ("b", "leads out"),
            ("c", "link to a folder"),
            ("real/loop", "link to a folder"),
            ("dangling.md", "leads nowhere"),
            ("caf\u{fffd}.md", "not UTF-8"),
        ] {
            assert!(
                reason(&import, path).contains(expected),
                "{path}: {}",
                reason(&import, path)
            );
        }
    }

    /// A small site as somebody keeps it, all the way to pages.
    #[test]
    fn the_sample_site_imports_and_renders() {
        use crate::content::markdown;
        let import = read_folder(Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/bakery"
        )))
        .unwrap();
        assert_eq!(
            paths(&import),
            [
                "",
                "bread",
                "bread/rye",
                "bread/spelt",
                "visit",
                "visit/opening-hours"
            ]
        );
        assert_eq!(reason(&import, "visit/christmas.md"), "a draft");
        let known: BTreeSet<String> = paths(&import).into_iter().collect();
        let aliases: BTreeMap<String, String> = import
            .nodes
            .iter()
            .flat_map(|node| {
                let path = node.path.join("/");
                markdown::alias_paths(&node.fields, &path)
                    .into_iter()
                    .map(move |alias| (alias, path.clone()))
            })
            .collect();
        for node in &import.nodes {
            let path = node.path.join("/");
            let rendered = markdown::render(
                &node.body,
                &markdown::Links {
                    base: "/live/bakery",
                    page: &path,
                    is_section: node.kind == ImportedKind::Collection,
                    exists: &|path| known.contains(path),
                    alias: Some(&|path| aliases.get(path).cloned()),
                },
            );
            let missing: &[&str] = if path == "bread/rye" {
                &["/bread/sourdough/"]
            } else {
                &[]
            };
            assert_eq!(rendered.unresolved, missing, "{path}");
            assert!(
                !rendered.html.contains("<script")
                    && (rendered.word_count > 5 || node.body.is_empty()),
                "{path}: {}",
                rendered.html
            );
        }
    }
}
