//! What visitors see: one immutable version of a site as a tree of pages, rendered.
//!
//! A version never changes, so its map of addresses is made once and kept; bodies are read when a page is asked for.

use crate::{
    Engine,
    content::{
        export::{self, ExportPage},
        markdown::{self, Links},
        outline::Outline,
        theme::{self, Crumb, PageView, Style},
    },
    store::{
        nodes::{self as nodes_sql, RevisionRow},
        sites::{self as sites_sql, SiteRow},
        versions::{self as sql, PublishedRow},
    },
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::SiteId,
};
use serde_json::{Map, Value};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

/// Versions whose maps are kept; each costs about 300 bytes a page.
const MAPS_MAX: usize = 32;

/// The addresses of one version.
pub struct SiteMap {
    outline: Outline,
    pages: HashMap<String, PublishedRow>,
    /// In the order of the tree.
    paths: Vec<String>,
    aliases: HashMap<String, String>,
}

type Key = (String, i64);

/// Maps by site and version, and the order they were made in.
type Maps = (HashMap<Key, Arc<SiteMap>>, VecDeque<Key>);

static MAPS: LazyLock<Mutex<Maps>> = LazyLock::new(Mutex::default);

impl SiteMap {
    /// A node whose parent this version does not have cannot be reached, and has no address.
    fn new(rows: Vec<PublishedRow>) -> Self {
        let mut below: HashMap<String, Vec<PublishedRow>> = HashMap::new();
        for row in rows {
            below.entry(row.parent.clone()).or_default().push(row);
        }
        let mut map = Self {
            outline: Outline::new([]),
            pages: HashMap::new(),
            paths: Vec::new(),
            aliases: HashMap::new(),
        };
        map.walk(&mut below, "", "");
        map.outline = Outline::new(
            map.paths
                .iter()
                .map(|path| (path.clone(), map.pages[path].title.clone())),
        );
        map
    }

    fn walk(&mut self, below: &mut HashMap<String, Vec<PublishedRow>>, parent: &str, base: &str) {
        for row in below.remove(parent).unwrap_or_default() {
            let path = if base.is_empty() {
                row.slug.clone()
            } else {
                format!("{base}/{}", row.slug)
            };
            let id = row.node_id.clone();
            self.paths.push(path.clone());
            self.pages.insert(path.clone(), row);
            self.walk(below, &id, &path);
        }
    }

    /// Addresses in the order of the tree.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }
}

/// The map of one version, made on its first use.
pub async fn map(engine: &Engine, site: &str, version: i64) -> Result<Arc<SiteMap>, Refusal> {
    let key = (site.to_owned(), version);
    if let Some(map) = MAPS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .0
        .get(&key)
    {
        return Ok(map.clone());
    }
    let rows = sql::all(engine.store().read(), site, version).await?;
    let mut map = SiteMap::new(rows);
    map.aliases = aliases(engine, site, version, &map).await?;
    let map = Arc::new(map);
    let mut maps = MAPS.lock().unwrap_or_else(PoisonError::into_inner);
    let (known, order) = &mut *maps;
    if known.insert(key.clone(), map.clone()).is_none() {
        order.push_back(key);
    }
    if order.len() > MAPS_MAX
        && let Some(oldest) = order.pop_front()
    {
        known.remove(&oldest);
    }
    Ok(map)
}

/// Old addresses that pages name in their `aliases` field.
async fn aliases(
    engine: &Engine,
    site: &str,
    version: i64,
    map: &SiteMap,
) -> Result<HashMap<String, String>, Refusal> {
    let by_node: HashMap<&str, &String> = map
        .pages
        .iter()
        .map(|(path, row)| (row.node_id.as_str(), path))
        .collect();
    let mut aliases = HashMap::new();
    for (node, fields) in sql::fields_with_aliases(engine.store().read(), site, version).await? {
        let (Some(path), Ok(fields)) = (
            by_node.get(node.as_str()),
            serde_json::from_str::<Map<String, Value>>(&fields),
        ) else {
            continue;
        };
        for alias in markdown::alias_paths(&fields, path) {
            aliases.entry(alias).or_insert_with(|| (*path).clone());
        }
    }
    Ok(aliases)
}

/// What an address answers.
pub enum Answer {
    Page(String),
    /// An old address of a page: its new one.
    Moved(String),
    NotFound(String),
    /// The site was deleted.
    Gone(String),
    /// No such site, or nothing published.
    Nothing,
}

/// One page of the live version; `path` without slashes at its ends.
pub async fn page(
    engine: &Engine,
    slug: &str,
    path: &str,
    style_href: &str,
) -> Result<Answer, Refusal> {
    let style = Style::Link(style_href);
    let db = engine.store().read();
    let Some(site) = sites_sql::by_slug(db, slug).await? else {
        return Ok(if sites_sql::is_gone(db, slug).await? {
            Answer::Gone(theme::gone(style))
        } else {
            Answer::Nothing
        });
    };
    let Some(version) = site.live_version else {
        return Ok(Answer::Nothing);
    };
    let map = map(engine, &site.id, version).await?;
    let base = format!("/live/{slug}");
    if let Some(row) = map.pages.get(path) {
        return Ok(Answer::Page(
            render(engine, &site, version, &map, path, row, &base, style).await?,
        ));
    }
    if path.is_empty() {
        return Ok(Answer::Page(theme::empty(
            &site.title,
            &base,
            &map.outline.children(""),
            style,
        )));
    }
    Ok(match map.aliases.get(path) {
        Some(to) => Answer::Moved(format!("{base}/{to}/")),
        None => Answer::NotFound(theme::not_found(&site.title, Some(&base), style)),
    })
}

#[expect(
    clippy::too_many_arguments,
    reason = "one page's worth of facts, for serving and for export"
)]
async fn render(
    engine: &Engine,
    site: &SiteRow,
    version: i64,
    map: &SiteMap,
    path: &str,
    row: &PublishedRow,
    base: &str,
    style: Style<'_>,
) -> Result<String, Refusal> {
    let revision = nodes_sql::revision(engine.store().read(), &site.id, &row.node_id, row.rev)
        .await?
        .ok_or_else(|| Refusal::not_found("page"))?;
    let exists = |path: &str| map.pages.contains_key(path);
    let alias = |path: &str| map.aliases.get(path).cloned();
    let children = map.outline.children(path);
    let is_section = revision.kind == "collection" || !children.is_empty();
    let rendered = markdown::render(
        &revision.body,
        &Links {
            base,
            page: path,
            is_section,
            exists: &exists,
            alias: Some(&alias),
        },
    );
    let (prev, next) = map.outline.neighbours(path);
    let description = description(&revision);
    let view = PageView {
        lang: "en",
        site_title: &site.title,
        base,
        version: Some(version),
        style,
        robots_noindex: false,
        notice: None,
        title: &revision.title,
        description: description.as_deref(),
        path,
        breadcrumbs: map.outline.breadcrumbs(path),
        nav: map.outline.nav(path),
        children,
        prev,
        next,
        headings: &rendered.headings,
        html: &rendered.html,
    };
    Ok(theme::page(&view))
}

fn description(revision: &RevisionRow) -> Option<String> {
    let fields: Value = serde_json::from_str(&revision.fields).ok()?;
    fields.get("description")?.as_str().map(str::to_owned)
}

/// One revision of one node, rendered alone for a sandboxed frame: its style inside, nothing to fetch.
pub fn preview(site: &SiteRow, path: &str, revision: &RevisionRow) -> String {
    // Where a link leads does not matter in a frame that cannot navigate; that it is one does.
    let exists = |_: &str| true;
    let base = format!("/live/{}", site.slug);
    let rendered = markdown::render(
        &revision.body,
        &Links {
            base: &base,
            page: path,
            is_section: revision.kind == "collection",
            exists: &exists,
            alias: None,
        },
    );
    theme::page(&PageView {
        lang: "en",
        site_title: &site.title,
        base: &base,
        version: None,
        style: Style::Inline(theme::CSS),
        robots_noindex: true,
        notice: None,
        title: &revision.title,
        description: description(revision).as_deref(),
        path,
        breadcrumbs: Vec::new(),
        nav: Vec::new(),
        children: Vec::new(),
        prev: None,
        next: None,
        headings: &[],
        html: &rendered.html,
    })
}

/// Every page of a version for export; links are relative, so that any folder of any server will do.
pub async fn export(engine: &Engine, slug: &str, version: Option<i64>) -> Result<Export, Refusal> {
    let site = sites_sql::by_slug(engine.store().read(), slug)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let version = version.or(site.live_version).ok_or_else(|| {
        Refusal::new(
            Code::Conflict,
            "The site was never published; there is nothing to export.",
        )
    })?;
    if sql::get(engine.store().read(), &site.id, version)
        .await?
        .is_none()
    {
        return Err(Refusal::not_found("version"));
    }
    let map = map(engine, &site.id, version).await?;
    let mut pages = Vec::new();
    for path in map.paths() {
        let (base, style) = (export::relative_base(path), export::relative_style(path));
        let html = render(
            engine,
            &site,
            version,
            &map,
            path,
            &map.pages[path],
            &base,
            Style::Link(&style),
        )
        .await?;
        pages.push(ExportPage {
            path: path.clone(),
            html,
        });
    }
    if !map.pages.contains_key("") {
        let children: Vec<Crumb> = map.outline.children("");
        let html = theme::empty(&site.title, ".", &children, Style::Link("./style.css"));
        pages.push(ExportPage {
            path: String::new(),
            html,
        });
    }
    Ok(Export {
        title: site.title,
        pages,
    })
}

/// A version, rendered for another web server.
pub struct Export {
    pub title: String,
    pub pages: Vec<ExportPage>,
}

/// For commands, which name sites by their slugs.
/// A site by slug or id, also one that was deleted: its records and its journal are kept. A living site comes first, then the
/// one that was deleted last.
pub async fn site_ever(engine: &Engine, name: &str) -> Result<Option<SiteId>, Refusal> {
    if let Some(living) = site_by_slug(engine, name).await? {
        return Ok(Some(living));
    }
    let mut all = sites_sql::all_ever(engine.store().read()).await?;
    all.retain(|site| site.id == name || site.slug == name);
    all.sort_by_key(|site| site.deleted_at);
    Ok(all.pop().map(|site| SiteId::new(site.id)))
}

pub async fn site_by_slug(engine: &Engine, slug: &str) -> Result<Option<SiteId>, Refusal> {
    Ok(sites_sql::by_slug(engine.store().read(), slug)
        .await?
        .map(|site| SiteId::new(site.id)))
}
