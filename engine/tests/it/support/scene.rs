//! What most tests begin with: a bakery's site, Ada who owns it, and a bot that works on it.

use super::{
    AgentClient, Answer, ApprovalId, Expect as _, NodeId, PersonClient, SiteId, Value, World, json,
};
use cloudhal_engine::people::{self, NewPerson};

#[derive(Clone)]
pub struct Scene {
    pub world: World,
    pub site: SiteId,
    pub ada: PersonClient,
    pub bot: AgentClient,
    pub rye: NodeId,
}

impl Scene {
    pub(super) async fn set(world: World) -> Self {
        let new = NewPerson {
            email: "ada@example.com".into(),
            name: "Ada".into(),
            workspace_owner: false,
            password: None,
        };
        let ada = PersonClient::new(
            world.engine(),
            people::add(world.engine(), new).await.unwrap(),
        );
        let site = world.site("bakery", &ada).await;
        let bot = world.agent("bot", &ada, &[&site]).await;
        let rye = world.node(&site, "rye").await;
        Self {
            world,
            site,
            ada,
            bot,
            rye,
        }
    }

    pub fn publish_args(&self) -> Value {
        json!({"site": self.site})
    }

    /// The bot asks for a publish.
    pub async fn asked(&self) -> ApprovalId {
        self.bot
            .call("publish", self.publish_args())
            .await
            .pending()
            .approval_id
    }

    /// The bot asks for a publish and Ada approves.
    pub async fn approved(&self) -> ApprovalId {
        let id = self.asked().await;
        self.ada.approve(&id).await.unwrap();
        id
    }

    /// The bot repeats its publish with an id.
    pub async fn redeem(&self, id: &ApprovalId) -> Answer {
        self.bot.call_with(id, "publish", self.publish_args()).await
    }

    /// Ada publishes by hand.
    pub async fn publish(&self) -> i64 {
        let out = self.ada.act("publish", self.publish_args()).await.unwrap();
        out["version"].as_i64().unwrap()
    }

    /// The bot writes a new text for the rye.
    pub async fn edit(&self, body: &str) -> Value {
        self.bot
            .call(
                "node-update",
                json!({"site": self.site, "node": self.rye, "body": body}),
            )
            .await
            .ok()
    }

    pub async fn live_version(&self) -> Option<i64> {
        let sql = format!(
            "select coalesce(live_version, 0) from sites where id = '{}'",
            self.site
        );
        Some(self.world.number(&sql).await).filter(|version| *version > 0)
    }

    /// How many versions there are: what a double execution would show in.
    pub async fn versions(&self) -> i64 {
        let sql = format!(
            "select count(*) from versions where site_id = '{}'",
            self.site
        );
        self.world.number(&sql).await
    }

    /// The status as stored, not as computed.
    pub async fn stored_status(&self, id: &ApprovalId) -> String {
        self.world
            .text(&format!("select status from approvals where id = '{id}'"))
            .await
    }

    /// The kinds of the journal entries that name an approval, in their order.
    pub async fn journal(&self, id: &ApprovalId) -> Vec<String> {
        let sql = format!("select kind from journal where approval_id = '{id}' order by seq");
        self.world.texts(&sql).await
    }

    /// The body that visitors of a version get for the rye.
    pub async fn published_rye(&self, version: i64) -> String {
        let sql = format!(
            "select r.body from published p join node_revisions r on r.node_id = p.node_id and r.rev = p.rev
             where p.node_id = '{}' and p.from_version <= {version} and (p.to_version is null or p.to_version > {version})",
            self.rye
        );
        self.world.text(&sql).await
    }
}
