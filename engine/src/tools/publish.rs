//! `publish`: the draft becomes the newest version, and live. Gated.

use super::{Describe, GatedTool, card_site, counted};
use crate::{
    authority::Authority,
    changes::{self, Differences},
    sites::{self, LockedSite},
    store::{Connection, Fail, Tx, nodes as nodes_sql, sites::SiteRow},
};
use async_trait::async_trait;
use cloudhal_domain::{
    card::{Asker, Card, CardSite, Changes, Fact, Risk},
    id::SiteId,
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct Publish;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    version: i64,
    added: i64,
    edited: i64,
    removed: i64,
}

impl Describe for Publish {
    type Args = Args;
    type Output = Output;
    const ID: &'static str = "publish";
    const TITLE: &'static str = "Publish a site";
    const DESCRIPTION: &'static str = "Makes the whole draft of a site live. A person must approve it: the answer is approval_pending with a link; wait with approvals_get, then repeat this call with the same arguments and approvalId. It runs once, and only if nothing on the site changed since.";
    const ANNOTATIONS: Annotations = Annotations::CHANGE;
}

#[async_trait]
impl GatedTool for Publish {
    fn site(args: &Args) -> &SiteId {
        &args.site
    }

    async fn card(
        db: &mut Connection,
        row: &SiteRow,
        asker: Asker,
        args: &Args,
    ) -> Result<Card, Fail> {
        sites::check_publishable(row)?;
        let (newest, live) = (row.next_version - 1, row.live_version.unwrap_or(0));
        let differences = Self::differences(&mut *db, &card_site(row), args).await?;
        let changes =
            changes::describe(db, &row.id, differences, "compared with what is live").await?;
        let mut facts = Vec::new();
        if row.live_version.is_some() && live != newest {
            facts.push(Fact { label: "Rolled back".into(), value: format!("Version {live} is live, but version {newest} is newer. The changes below are against what is live.") });
        }
        for node in changes.nodes.iter() {
            let Some(was) = &node.path_before else {
                continue;
            };
            if nodes_sql::has_children(&mut *db, &row.id, node.node.as_str()).await? {
                facts.push(Fact {
                    label: "Moves along".into(),
                    value: format!(
                        "Every page under /{was}/ is found under /{}/ then.",
                        node.path
                    ),
                });
            }
        }
        Ok(Card {
            sentence: sentence(&row.title, row.live_version, &changes),
            consequence: match row.live_version {
                Some(live) => format!(
                    "Version {live} is live now; this would become version {}.",
                    row.next_version
                ),
                None => "Nothing is live yet; this would become version 1.".into(),
            },
            risk: Risk::Reversible,
            site: card_site(row),
            asker,
            facts,
            changes: Some(changes),
        })
    }

    async fn differences(
        db: &mut Connection,
        site: &CardSite,
        _: &Args,
    ) -> Result<Differences, Fail> {
        let live = site.live_version.unwrap_or(0);
        Ok(changes::draft_against(db, site, live).await?)
    }

    async fn run(
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        _: Args,
    ) -> Result<Value, Fail> {
        let version = sites::publish(tx, site, authority).await?;
        Ok(json!(Output {
            version: version.version,
            added: version.added,
            edited: version.edited,
            removed: version.removed
        }))
    }
}

fn sentence(title: &str, live: Option<i64>, changes: &Changes) -> String {
    match (live, changes.total) {
        (None, n) => format!(
            "Publish {title} for the first time, with {}",
            counted(n, "page", "pages")
        ),
        (Some(_), 0) => format!("Publish {title} again, with nothing changed"),
        (Some(_), n) => format!(
            "Publish {} of {title}",
            counted(n, "changed page", "changed pages")
        ),
    }
}
