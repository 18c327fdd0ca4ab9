//! `rollback`: another version becomes live; the draft stays as it is. Gated.

use super::{Describe, GatedTool, card_site};
use crate::{
    authority::Authority,
    changes::{self, Differences},
    sites::{self, LockedSite},
    store::{Connection, Fail, Tx, sites::SiteRow},
};
use async_trait::async_trait;
use cloudhal_domain::{
    card::{Asker, Card, CardSite, Fact, Risk, day},
    id::SiteId,
    time::Timestamp,
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct Rollback;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    /// The version to make live, from version_list.
    #[schemars(range(min = 1))]
    version: i64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    live_version: i64,
}

impl Describe for Rollback {
    type Args = Args;
    type Output = Output;
    const ID: &'static str = "rollback";
    const TITLE: &'static str = "Roll a site back";
    const DESCRIPTION: &'static str = "Makes an older (or newer) version of a site live; the draft is not touched. A person must approve it: see publish for how to wait and repeat.";
    const ANNOTATIONS: Annotations = Annotations::CHANGE;
}

#[async_trait]
impl GatedTool for Rollback {
    fn site(args: &Args) -> &SiteId {
        &args.site
    }

    async fn card(
        db: &mut Connection,
        row: &SiteRow,
        asker: Asker,
        args: &Args,
    ) -> Result<Card, Fail> {
        let target = sites::check_rollback(db, row, args.version).await?;
        let live = row.live_version.unwrap_or(0);
        let differences = Self::differences(&mut *db, &card_site(row), args).await?;
        let changes =
            changes::describe(db, &row.id, differences, "compared with what is live").await?;
        Ok(Card {
            sentence: format!("Roll {} back to version {}", row.title, args.version),
            consequence: format!(
                "Version {live} is live now; visitors would see version {} instead. The draft stays as it is.",
                args.version
            ),
            risk: Risk::Reversible,
            site: card_site(row),
            asker,
            facts: vec![Fact {
                label: format!("Version {}", args.version),
                value: format!(
                    "published {} by {}, {} pages",
                    day(Timestamp(target.created_at)),
                    target.author_name,
                    target.node_count
                ),
            }],
            changes: Some(changes),
        })
    }

    async fn differences(
        db: &mut Connection,
        site: &CardSite,
        args: &Args,
    ) -> Result<Differences, Fail> {
        let live = site.live_version.unwrap_or(0);
        Ok(changes::between(db, site.id.as_str(), live, args.version).await?)
    }

    async fn run(
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        args: Args,
    ) -> Result<Value, Fail> {
        let target = sites::rollback(tx, site, authority, args.version).await?;
        Ok(json!(Output {
            live_version: target.version
        }))
    }
}
