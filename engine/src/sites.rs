//! Sites and their drafts. Whoever changes one holds a [`LockedSite`]: the row is locked by the unit's first statement, every
//! change goes into the state's running sum, and [`LockedSite::finish`] moves the state and voids what was bound to the older
//! one, all in the same transaction (DESIGN §4, rule 5).

mod expiring;
mod making;

pub use crate::content::slug::is_slug;
pub(crate) use expiring::{expire_early, expire_overdue};
pub(crate) use making::settings_hash;
pub use making::{NewNode, add_member, create_site, fill};

use crate::{
    authority::{Author, Authority},
    clock::fresh_id,
    journal,
    live::Event,
    search,
    state::{self, Element, Kind, Lanes},
    store::{
        Connection, Fail, StoreError, Tx, approvals as approvals_sql, events,
        nodes::{self as sql, NodeRow, RevisionRow},
        sites::{self as sites_sql, SiteRow},
        versions as versions_sql,
    },
    webhooks,
};
use cloudhal_domain::{
    approval::VoidCause,
    code::{Code, Refusal},
    digest::Framed,
    id::{ApprovalId, NodeId, SiteId},
    limits,
    time::Timestamp,
    view::LiveHint,
};
use serde_json::{Map, Value, json};

/// A site under its lock, inside one unit of work.
#[derive(Clone)]
pub struct LockedSite {
    row: SiteRow,
    /// Read when the first change needs it.
    lanes: Option<Lanes>,
    now: Timestamp,
    changed: bool,
}

impl LockedSite {
    /// The first statement of a unit that writes to a site. `None` where there is none, or only a tombstone.
    pub async fn lock(tx: &mut Tx, site: &SiteId) -> Result<Option<Self>, Fail> {
        let row = sites_sql::lock(tx, site).await?;
        Ok(row.map(|(row, now)| Self {
            row,
            lanes: None,
            now,
            changed: false,
        }))
    }

    /// The same, where the absence is the caller's answer.
    pub async fn expect(tx: &mut Tx, site: &SiteId) -> Result<Self, Fail> {
        Self::lock(tx, site)
            .await?
            .ok_or_else(|| Refusal::not_found("site").into())
    }

    pub fn row(&self) -> &SiteRow {
        &self.row
    }

    pub fn id(&self) -> SiteId {
        SiteId::new(&self.row.id)
    }

    /// When the lock was taken: the time of the whole unit.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The counter that nodes changed under this lock remember.
    fn next_state_rev(&self) -> i64 {
        self.row.state_rev + 1
    }

    /// Swaps one element of the state for another; either side may be absent.
    async fn swap(
        &mut self,
        tx: &mut Tx,
        old: Option<Element<'_>>,
        new: Option<Element<'_>>,
    ) -> Result<(), Fail> {
        let mut lanes = match self.lanes.take() {
            Some(lanes) => lanes,
            None => load_lanes(tx, &self.row.id).await?,
        };
        if let Some(old) = old {
            lanes.remove(old);
        }
        if let Some(new) = new {
            lanes.add(new);
        }
        self.lanes = Some(lanes);
        self.changed = true;
        Ok(())
    }

    /// Ends the unit's work on the site: moves its state and voids every open request bound to the older one.
    pub async fn finish(mut self, tx: &mut Tx, by: &Author) -> Result<SiteRow, Fail> {
        if !self.changed {
            return Ok(self.row);
        }
        let lanes = match self.lanes.take() {
            Some(lanes) => {
                sites_sql::set_lanes(tx, &self.row.id, &lanes.to_text()).await?;
                lanes
            }
            None => load_lanes(tx, &self.row.id).await?,
        };
        self.row.state_rev = self.next_state_rev();
        self.row.state_hash = state::digest(
            &self.row.id,
            &lanes,
            self.row.live_version,
            self.row.node_count,
            self.row.state_rev,
        )
        .as_str()
        .to_owned();
        sites_sql::settle(tx, &self.row).await?;
        expire_overdue(tx, &self.row.id, self.now).await?;
        for id in
            approvals_sql::void_open(tx, &self.row.id, VoidCause::StateChanged, self.now).await?
        {
            let id = ApprovalId::new(id);
            let body =
                json!({"cause": VoidCause::StateChanged.as_str(), "stateRev": self.row.state_rev});
            journal::site(
                tx,
                &self.row.id,
                self.now,
                journal::Entry {
                    kind: "approval.voided",
                    actor: by,
                    approval: Some(&id),
                    body,
                },
            )
            .await?;
            announce(tx, "approval.voided", &self.row.id, Some(&id), self.now).await?;
        }
        announce(tx, "site.changed", &self.row.id, None, self.now).await?;
        Ok(self.row)
    }
}

/// A hint for everybody who waits or looks, and a row of the outbox for each receiver outside, written with what they tell.
pub(crate) async fn announce(
    tx: &mut Tx,
    kind: &str,
    site: &str,
    approval: Option<&ApprovalId>,
    now: Timestamp,
) -> Result<(), Fail> {
    let hint = LiveHint {
        kind: kind.to_owned(),
        site: SiteId::new(site),
        approval: approval.cloned(),
    };
    let event = Event {
        id: fresh_id(),
        hint,
    };
    events::insert(tx, &event, now.ms()).await?;
    tx.hint(event);
    match approval {
        Some(approval) => webhooks::tell(tx, kind, site, approval, now).await,
        None => Ok(()),
    }
}

async fn load_lanes(tx: &mut Tx, site: &str) -> Result<Lanes, Fail> {
    let text = sites_sql::lanes(tx, site).await?;
    text.as_deref().and_then(Lanes::from_text).ok_or_else(|| {
        StoreError::Inconsistent {
            table: "site_states",
            column: "lanes",
            id: site.to_owned(),
        }
        .into()
    })
}

/// What a node holds, apart from who it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Empty at the top.
    pub parent: String,
    /// Empty for the home page.
    pub slug: String,
    pub kind: String,
    pub position: i64,
    pub title: String,
    pub body: String,
    pub fields: Map<String, Value>,
}

impl Content {
    /// Covers everything that a visitor could notice.
    pub(crate) fn hash(&self) -> String {
        Framed::new("cloudhal/node/v1")
            .part(&self.parent)
            .part(&self.slug)
            .part(&self.kind)
            .number(self.position)
            .part(&self.title)
            .part(&self.body)
            .part(self.fields_text())
            .finish()
            .as_str()
            .to_owned()
    }

    fn fields_text(&self) -> String {
        cloudhal_domain::canonical::text(&Value::Object(self.fields.clone()))
    }

    pub(crate) fn from_revision(row: RevisionRow) -> Result<Self, StoreError> {
        let fields = serde_json::from_str(&row.fields).map_err(|_| StoreError::Inconsistent {
            table: "node_revisions",
            column: "fields",
            id: row.node_id.clone(),
        })?;
        Ok(Self {
            parent: row.parent,
            slug: row.slug,
            kind: row.kind,
            position: row.position,
            title: row.title,
            body: row.body,
            fields,
        })
    }

    /// The revision that a node would get, for looking at before there is one.
    pub(crate) fn as_revision(&self, site: &SiteId, node: &NodeId, rev: i64) -> RevisionRow {
        RevisionRow {
            node_id: node.as_str().to_owned(),
            rev,
            site_id: site.as_str().to_owned(),
            parent: self.parent.clone(),
            slug: self.slug.clone(),
            kind: self.kind.clone(),
            position: self.position,
            title: self.title.clone(),
            body: self.body.clone(),
            fields: self.fields_text(),
            hash: self.hash(),
            removed: 0,
            state_rev: 0,
            created_at: 0,
            author: String::new(),
            author_name: String::new(),
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        check_title(&self.title)?;
        if !(is_slug(&self.slug) || (self.slug.is_empty() && self.parent.is_empty())) {
            return Err(invalid(
                "/slug",
                "a slug is lower-case letters, digits, '-', '_' and '.', at most 120 bytes; only the home page at the top has none",
            ));
        }
        if self.fields_text().len() > 64 * 1024 {
            return Err(invalid("/fields", "the fields are larger than 64 KiB"));
        }
        Ok(())
    }
}

pub(crate) fn invalid(pointer: &str, problem: &str) -> Refusal {
    Refusal::new(
        Code::InvalidArguments,
        format!("The arguments are not valid: {problem} (at {pointer})."),
    )
    .with("faults", json!([{"pointer": pointer, "problem": problem}]))
}

fn check_title(title: &str) -> Result<(), Refusal> {
    if title.trim().is_empty()
        || title.chars().count() > limits::TITLE_CHARS_MAX
        || title.chars().any(char::is_control)
    {
        return Err(invalid(
            "/title",
            "a title is 1 to 200 characters on one line",
        ));
    }
    Ok(())
}

/// Adds a node to the draft.
pub async fn create_node(
    tx: &mut Tx,
    site: &mut LockedSite,
    by: &Author,
    content: Content,
) -> Result<NodeRow, Fail> {
    content.check()?;
    if !content.parent.is_empty() {
        lineage_for(tx, site, &content.parent, 1).await?;
    }
    let row = NodeRow {
        id: fresh_id(),
        site_id: site.row.id.clone(),
        rev: 1,
        hash: content.hash(),
        state_rev: site.next_state_rev(),
        updated_at: site.now.ms(),
        deleted_at: None,
        parent: content.parent.clone(),
        slug: content.slug.clone(),
        kind: content.kind.clone(),
        position: content.position,
        title: content.title.clone(),
    };
    if !sql::insert(tx, &row).await? {
        return Err(slug_taken(&content.slug));
    }
    keep_revision(tx, site, by, &row, &content, false).await?;
    site.swap(tx, None, Some(element(&row))).await?;
    site.row.node_count += 1;
    Ok(row)
}

/// A place after the last sibling, leaving room between.
pub async fn next_position(tx: &mut Tx, site: &LockedSite, parent: &str) -> Result<i64, Fail> {
    Ok(sql::position_max(tx.sql(), &site.row.id, parent).await? + 10)
}

/// The node and its content as the draft has it.
pub async fn read_node(
    tx: &mut Tx,
    site: &LockedSite,
    node: &NodeId,
) -> Result<(NodeRow, Content), Fail> {
    let row = sql::get(tx.sql(), &site.row.id, node.as_str())
        .await?
        .ok_or_else(|| Fail::from(Refusal::not_found("node")))?;
    let revision = sql::revision(tx.sql(), &site.row.id, &row.id, row.rev).await?;
    let revision = revision.ok_or_else(|| StoreError::Inconsistent {
        table: "node_revisions",
        column: "rev",
        id: row.id.clone(),
    })?;
    Ok((row, Content::from_revision(revision)?))
}

/// Refuses when the caller looked at an older revision.
pub fn check_rev(row: &NodeRow, expected: Option<i64>) -> Result<(), Refusal> {
    match expected {
        Some(expected) if expected != row.rev => Err(Refusal::conflict(format!(
            "The node is at revision {}, not {expected}: somebody changed it. Read it again, then repeat your change on top.",
            row.rev
        ))
        .with("currentRev", row.rev)),
        _ => Ok(()),
    }
}

/// Gives a node new content. The same content is no change: the state stays and nothing is voided.
pub async fn change_node(
    tx: &mut Tx,
    site: &mut LockedSite,
    by: &Author,
    old: NodeRow,
    old_content: &Content,
    content: Content,
) -> Result<NodeRow, Fail> {
    if *old_content == content {
        return Ok(old);
    }
    content.check()?;
    if old.parent != content.parent {
        check_move(tx, site, &old, &content.parent).await?;
    }
    if content.slug.is_empty()
        && !old.slug.is_empty()
        && sql::child_count(tx.sql(), &site.row.id, &old.id).await? > 0
    {
        return Err(invalid(
            "/slug",
            "a node with others under it cannot become the home page",
        )
        .into());
    }
    let row = NodeRow {
        rev: old.rev + 1,
        hash: content.hash(),
        state_rev: site.next_state_rev(),
        updated_at: site.now.ms(),
        parent: content.parent.clone(),
        slug: content.slug.clone(),
        kind: content.kind.clone(),
        position: content.position,
        title: content.title.clone(),
        ..old.clone()
    };
    if (old.parent != row.parent || old.slug != row.slug)
        && sql::child_by_slug(tx.sql(), &site.row.id, &row.parent, &row.slug)
            .await?
            .is_some_and(|other| other.id != row.id)
    {
        return Err(slug_taken(&row.slug));
    }
    if !sql::update(tx, &row, old.rev).await? {
        return Err(StoreError::Inconsistent {
            table: "nodes",
            column: "rev",
            id: row.id,
        }
        .into());
    }
    keep_revision(tx, site, by, &row, &content, false).await?;
    site.swap(tx, Some(element(&old)), Some(element(&row)))
        .await?;
    Ok(row)
}

async fn check_move(
    tx: &mut Tx,
    site: &LockedSite,
    node: &NodeRow,
    parent: &str,
) -> Result<(), Fail> {
    if parent.is_empty() {
        return Ok(());
    }
    let levels = sql::levels(tx.sql(), &site.row.id, &node.id).await?;
    let above = lineage_for(tx, site, parent, levels).await?;
    if above.iter().any(|n| n.id == node.id) {
        return Err(invalid("/parent", "a node cannot stand under itself").into());
    }
    Ok(())
}

/// The nodes from the top down to a new parent, if `levels` more fit under it.
async fn lineage_for(
    tx: &mut Tx,
    site: &LockedSite,
    parent: &str,
    levels: usize,
) -> Result<Vec<NodeRow>, Fail> {
    let above = sql::lineage(tx.sql(), &site.row.id, parent).await?;
    if above.is_empty() || above.iter().any(|n| n.deleted_at.is_some()) {
        return Err(Refusal::not_found("parent node").into());
    }
    if above.len() + levels > limits::NODE_DEPTH_MAX {
        return Err(invalid("/parent", "nodes are at most 16 levels deep").into());
    }
    // The home page has no part in an address: a node under it would share one with a node at the top.
    if above.iter().any(|n| n.slug.is_empty()) {
        return Err(invalid(
            "/parent",
            "nothing stands under the home page; leave the parent out for the top level",
        )
        .into());
    }
    Ok(above)
}

/// Takes a node with everything under it out of the draft. What is live stays until the next publish.
pub async fn remove_subtree(
    tx: &mut Tx,
    site: &mut LockedSite,
    authority: &Authority,
    node: &NodeId,
) -> Result<Vec<NodeRow>, Fail> {
    let rows = sql::subtree(tx.sql(), &site.row.id, node.as_str()).await?;
    if rows.is_empty() {
        return Err(Refusal::not_found("node").into());
    }
    for old in &rows {
        let revision = sql::revision(tx.sql(), &site.row.id, &old.id, old.rev).await?;
        let revision = revision.ok_or_else(|| StoreError::Inconsistent {
            table: "node_revisions",
            column: "rev",
            id: old.id.clone(),
        })?;
        let gone = NodeRow {
            rev: old.rev + 1,
            state_rev: site.next_state_rev(),
            updated_at: site.now.ms(),
            deleted_at: Some(site.now.ms()),
            ..old.clone()
        };
        sql::update(tx, &gone, old.rev).await?;
        keep_revision(
            tx,
            site,
            authority.author(),
            &gone,
            &Content::from_revision(revision)?,
            true,
        )
        .await?;
        site.swap(tx, Some(element(old)), None).await?;
    }
    site.row.node_count -= rows.len() as i64;
    Ok(rows)
}

async fn keep_revision(
    tx: &mut Tx,
    site: &LockedSite,
    by: &Author,
    row: &NodeRow,
    content: &Content,
    removed: bool,
) -> Result<(), Fail> {
    let revision = RevisionRow {
        node_id: row.id.clone(),
        rev: row.rev,
        site_id: site.row.id.clone(),
        parent: content.parent.clone(),
        slug: content.slug.clone(),
        kind: content.kind.clone(),
        position: content.position,
        title: content.title.clone(),
        body: content.body.clone(),
        fields: content.fields_text(),
        hash: row.hash.clone(),
        removed: i64::from(removed),
        state_rev: row.state_rev,
        created_at: site.now.ms(),
        author: by.key.clone(),
        author_name: by.name.clone(),
    };
    sql::insert_revision(tx, &revision).await?;
    search::keep(tx, &revision).await
}

fn element(row: &NodeRow) -> Element<'_> {
    Element {
        kind: Kind::Node,
        id: &row.id,
        rev: row.rev,
        hash: &row.hash,
    }
}

fn slug_taken(slug: &str) -> Fail {
    Refusal::conflict(format!(
        "There is a node with the slug “{slug}” at that place already."
    ))
    .into()
}

/// Makes the draft the newest version and the live one.
pub async fn publish(
    tx: &mut Tx,
    site: &mut LockedSite,
    authority: &Authority,
) -> Result<versions_sql::VersionRow, Fail> {
    check_publishable(&site.row)?;
    let newest = newest_version(tx.sql(), &site.row).await?;
    let (number, since) = newest.as_ref().map_or((0, 0), |v| (v.version, v.state_rev));
    // Against what is live, as the card has it: after a rollback that is not the newest.
    let differences = versions_sql::draft_differences(
        tx.sql(),
        &site.row.id,
        site.row.live_version.unwrap_or(0),
        number,
        since,
        site.row.state_rev,
    )
    .await?;
    let version = versions_sql::VersionRow {
        site_id: site.row.id.clone(),
        version: site.row.next_version,
        title: site.row.title.clone(),
        description: site.row.description.clone(),
        node_count: site.row.node_count,
        added: differences
            .iter()
            .filter(|d| d.before_rev.is_none())
            .count() as i64,
        edited: differences
            .iter()
            .filter(|d| d.before_rev.is_some() && d.after_rev.is_some())
            .count() as i64,
        removed: differences.iter().filter(|d| d.after_rev.is_none()).count() as i64,
        // The counter that this unit's end will reach: later edits stand above it.
        state_rev: site.next_state_rev(),
        created_at: site.now.ms(),
        author: authority.author().key.clone(),
        author_name: authority.author().name.clone(),
        approval_id: authority.approval().map(|id| id.as_str().to_owned()),
    };
    versions_sql::insert(tx, &version).await?;
    versions_sql::publish(tx, &site.row.id, version.version, since).await?;
    site.row.live_version = Some(version.version);
    site.row.next_version += 1;
    site.changed = true;
    Ok(version)
}

/// An empty site has nothing to show.
pub fn check_publishable(site: &SiteRow) -> Result<(), Refusal> {
    if site.node_count == 0 {
        return Err(Refusal::conflict(
            "The site has no pages yet: there is nothing to publish.",
        ));
    }
    Ok(())
}

/// The newest version, which after a rollback is not the live one.
pub async fn newest_version(
    db: &mut Connection,
    site: &SiteRow,
) -> Result<Option<versions_sql::VersionRow>, Fail> {
    if site.next_version == 1 {
        return Ok(None);
    }
    Ok(versions_sql::get(db, &site.id, site.next_version - 1).await?)
}

/// Moves the live pointer to an older or newer version; the draft never notices.
pub async fn rollback(
    tx: &mut Tx,
    site: &mut LockedSite,
    _authority: &Authority,
    version: i64,
) -> Result<versions_sql::VersionRow, Fail> {
    let target = check_rollback(tx.sql(), &site.row, version).await?;
    site.row.live_version = Some(version);
    site.changed = true;
    Ok(target)
}

pub async fn check_rollback(
    db: &mut Connection,
    site: &SiteRow,
    version: i64,
) -> Result<versions_sql::VersionRow, Fail> {
    let target = versions_sql::get(db, &site.id, version)
        .await?
        .ok_or_else(|| Fail::from(Refusal::not_found("version")))?;
    if site.live_version == Some(version) {
        return Err(Refusal::conflict(format!("Version {version} is live already.")).into());
    }
    Ok(target)
}

/// Leaves a tombstone: the slug is free again, the published site answers 410, records and journal stay.
pub async fn delete_site(
    tx: &mut Tx,
    site: &mut LockedSite,
    authority: &Authority,
) -> Result<(), Fail> {
    if !authority.may_delete_site() {
        return Err(
            Refusal::new(Code::Forbidden, "Only an owner of the site can delete it.").into(),
        );
    }
    let body =
        json!({"slug": site.row.slug, "title": site.row.title, "nodes": site.row.node_count});
    let entry = journal::Entry {
        kind: "site.deleted",
        actor: authority.author(),
        approval: authority.approval(),
        body,
    };
    journal::site(tx, &site.row.id, site.now, entry).await?;
    site.row.deleted_at = Some(site.now.ms());
    site.changed = true;
    Ok(())
}
