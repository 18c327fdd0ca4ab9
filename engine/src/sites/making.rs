//! How a site begins: its row and settings, its first members, and content brought in at once.

use super::{Content, LockedSite, check_title, create_node, invalid, is_slug};
use crate::{
    Engine,
    authority::Author,
    clock::fresh_id,
    journal,
    people::Person,
    state::{self, Element, Kind, Lanes},
    store::{
        Fail,
        sites::{self as sites_sql, SiteRow},
    },
};
use cloudhal_domain::{code::Refusal, digest::Framed, id::SiteId, role::Role};
use serde_json::{Map, Value, json};

/// A new, empty site with its first members.
pub async fn create_site(
    engine: &Engine,
    slug: &str,
    title: &str,
    owner: Option<&Person>,
) -> Result<SiteId, Refusal> {
    if !is_slug(slug) {
        return Err(invalid(
            "/slug",
            "a slug is lower-case letters, digits, '-', '_' and '.', at most 120 bytes",
        ));
    }
    check_title(title)?;
    let lanes = {
        let mut lanes = Lanes::default();
        let hash = settings_hash(slug, title, "");
        lanes.add(Element {
            kind: Kind::Settings,
            id: "settings",
            rev: 1,
            hash: &hash,
        });
        lanes
    };
    let id = fresh_id();
    let row = SiteRow {
        slug: slug.to_owned(),
        title: title.to_owned(),
        description: String::new(),
        settings_rev: 1,
        live_version: None,
        next_version: 1,
        state_rev: 1,
        node_count: 0,
        state_hash: state::digest(&id, &lanes, None, 0, 1).as_str().to_owned(),
        created_at: engine.now().ms(),
        deleted_at: None,
        policy: String::new(),
        id: id.clone(),
    };
    let (owner, now) = (owner.cloned(), engine.now());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            if !sites_sql::insert(tx, &row, &lanes.to_text(), state::DIGEST_VERSION).await? {
                return Err(Refusal::conflict(format!(
                    "There is a site with the slug “{}” already.",
                    row.slug
                ))
                .into());
            }
            if let Some(owner) = &owner {
                sites_sql::add_member(tx, &row.id, owner.id(), Role::Owner.as_str()).await?;
            }
            let by = owner.as_ref().map_or_else(Author::system, Author::person);
            let body = json!({"slug": row.slug, "title": row.title});
            journal::site(
                tx,
                &row.id,
                now,
                journal::Entry {
                    kind: "site.created",
                    actor: &by,
                    approval: None,
                    body,
                },
            )
            .await
        })
    });
    unit.await?;
    Ok(SiteId::new(id))
}

/// Gives a person a role on a site.
pub async fn add_member(
    engine: &Engine,
    site: &SiteId,
    person: &Person,
    role: Role,
) -> Result<(), Refusal> {
    let (site, person) = (site.clone(), person.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let locked = LockedSite::expect(tx, &site).await?;
            let now = locked.now();
            sites_sql::add_member(tx, site.as_str(), person.id(), role.as_str()).await?;
            let body = json!({"person": person.id(), "role": role.as_str()});
            journal::site(
                tx,
                &locked.row.id,
                now,
                journal::Entry {
                    kind: "member.added",
                    actor: &Author::system(),
                    approval: None,
                    body,
                },
            )
            .await
        })
    });
    Ok(unit.await?)
}

/// The settings of a site are one element of its state.
pub(crate) fn settings_hash(slug: &str, title: &str, description: &str) -> String {
    Framed::new("cloudhal/settings/v1")
        .part(slug)
        .part(title)
        .part(description)
        .finish()
        .as_str()
        .to_owned()
}

/// One node to bring in, addressed by its path of slugs.
pub struct NewNode {
    pub path: Vec<String>,
    pub kind: String,
    pub title: String,
    pub position: i64,
    pub body: String,
    pub fields: Map<String, Value>,
}

/// Fills a site with nodes, parents before children, in one unit; for import and the demo.
pub async fn fill(
    engine: &Engine,
    site: &SiteId,
    by: Author,
    nodes: Vec<NewNode>,
) -> Result<usize, Refusal> {
    let site = site.clone();
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let mut locked = LockedSite::expect(tx, &site).await?;
            let now = locked.now();
            let mut ids: std::collections::HashMap<Vec<String>, String> = Default::default();
            let count = nodes.len();
            for node in nodes {
                let parent = match node.path.split_last() {
                    None | Some((_, [])) => String::new(),
                    Some((_, above)) => ids
                        .get(above)
                        .cloned()
                        .ok_or_else(|| Fail::from(Refusal::not_found("parent node")))?,
                };
                let slug = node.path.last().cloned().unwrap_or_default();
                let content = Content {
                    parent,
                    slug,
                    kind: node.kind,
                    position: node.position,
                    title: node.title,
                    body: node.body,
                    fields: node.fields,
                };
                let row = create_node(tx, &mut locked, &by, content).await?;
                ids.insert(node.path, row.id);
            }
            let body = json!({"nodes": count});
            journal::site(
                tx,
                site.as_str(),
                now,
                journal::Entry {
                    kind: "site.imported",
                    actor: &by,
                    approval: None,
                    body,
                },
            )
            .await?;
            locked.finish(tx, &by).await?;
            Ok(count)
        })
    });
    Ok(unit.await?)
}
