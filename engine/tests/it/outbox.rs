//! What is told outside: written with what causes it, claimed by one node at a time, tried again, given up where people see it.

use crate::support::*;
use async_trait::async_trait;
use cloudhal_domain::{
    id::{DeliveryId, WebhookId},
    webhook::{Delivery, DeliveryStatus, Message},
};
use cloudhal_engine::{
    outbox::{Failure, deliver_due},
    webhooks::{self, Courier, Signed},
};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

on_both! {
    every_event_of_an_approval_is_told,
    a_failed_effect_is_told_as_failed,
    what_did_not_happen_is_not_told,
    two_nodes_never_take_the_same_row,
    a_dead_nodes_lease_runs_out,
    whoever_was_overtaken_changes_nothing,
    a_slow_receiver_holds_up_nobody_else,
    tries_come_later_each_time_and_end,
    a_receiver_that_is_gone_is_given_up_at_once,
    nothing_waits_for_ever_where_webhooks_are_off,
    a_restored_copy_delivers_nothing_of_before,
    a_deleted_destination_is_told_nothing_more,
    a_deleted_site_is_told_of_and_then_forgotten,
    old_rows_and_old_secrets_go,
    a_rotated_secret_signs_beside_the_old_one_for_a_day,
    only_an_owner_looks_after_destinations,
    destinations_are_few_and_their_secrets_are_in_no_journal,
}

const URL: &str = "https://hooks.example/in?token=of-the-receiver";

/// Of a receiver that answers at once where others are waited for.
const QUICK: &str = "https://quick.example/";

/// A courier that keeps what it was given and answers as it is told.
#[derive(Debug, Default)]
struct Post {
    got: Mutex<Vec<Signed>>,
    answers: Mutex<Vec<Result<(), Failure>>>,
    /// Where there is one, a try takes a permit before it goes on; a quick receiver needs none.
    gate: Option<Semaphore>,
}

impl Post {
    fn answering(answers: &[Result<(), Failure>]) -> Arc<Self> {
        let mut answers = answers.to_vec();
        answers.reverse();
        Arc::new(Self {
            answers: Mutex::new(answers),
            ..Self::default()
        })
    }

    fn gated() -> Arc<Self> {
        Arc::new(Self {
            gate: Some(Semaphore::new(0)),
            ..Self::default()
        })
    }

    fn ids(&self) -> Vec<String> {
        let got = self.got.lock().unwrap();
        got.iter().map(|one| one.headers[0].1.clone()).collect()
    }

    fn messages(&self) -> Vec<Message> {
        let got = self.got.lock().unwrap();
        let read = |one: &Signed| serde_json::from_str(&one.body).unwrap();
        got.iter().map(read).collect()
    }
}

#[async_trait]
impl Courier for Post {
    async fn check(&self, url: &str) -> Result<(), String> {
        match url.starts_with("https://") {
            true => Ok(()),
            false => Err("it is not https".into()),
        }
    }

    async fn carry(&self, url: &str, message: &Signed) -> Result<(), Failure> {
        self.got.lock().unwrap().push(message.clone());
        if let Some(gate) = self.gate.as_ref().filter(|_| url != QUICK) {
            gate.acquire().await.unwrap().forget();
        }
        let answer = self.answers.lock().unwrap().pop();
        answer.unwrap_or(Ok(()))
    }
}

fn broken() -> Result<(), Failure> {
    Err(Failure::new("the receiver answered 500"))
}

/// A node whose webhooks go to `post`.
async fn node(world: &World, post: &Arc<Post>) -> Engine {
    let settings = Settings {
        courier: Some(post.clone()),
        ..Settings::for_url(PUBLIC_URL)
    };
    world.engine_with(settings, [7; 32]).await.unwrap()
}

/// Delivers until nothing is due; how many there were.
async fn drain(node: &Engine) -> usize {
    let mut count = 0;
    while let some @ 1.. = deliver_due(node).await.unwrap() {
        count += some;
    }
    count
}

struct Told {
    scene: Scene,
    node: Engine,
    post: Arc<Post>,
    hook: WebhookId,
    secret: String,
}

impl Told {
    async fn set(world: &World, post: Arc<Post>) -> Self {
        let (scene, node) = (world.scene().await, node(world, &post).await);
        let ada = scene.ada.person();
        let made = webhooks::create(&node, ada, own_page(), &scene.site, json!({"url": URL}))
            .await
            .unwrap();
        Self {
            scene,
            node,
            post,
            hook: made.webhook.id,
            secret: made.secret,
        }
    }

    async fn deliveries(&self) -> Vec<Delivery> {
        let (ada, site) = (self.scene.ada.person(), &self.scene.site);
        webhooks::deliveries(&self.node, ada, site, &self.hook)
            .await
            .unwrap()
    }

    /// The only one there is.
    async fn delivery(&self) -> Delivery {
        let mut all = self.deliveries().await;
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    async fn ping(&self) -> DeliveryId {
        let (ada, site) = (self.scene.ada.person(), &self.scene.site);
        webhooks::ping(&self.node, ada, own_page(), site, &self.hook)
            .await
            .unwrap()
    }

    async fn journal_of(&self, kind: &str) -> Vec<Value> {
        let sql = format!("select body from journal where kind = '{kind}' order by at, seq");
        let bodies = self.scene.world.texts(&sql).await;
        bodies
            .iter()
            .map(|body| serde_json::from_str(body).unwrap())
            .collect()
    }
}

async fn every_event_of_an_approval_is_told(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let scene = &told.scene;
    let id = scene.approved().await;
    scene.redeem(&id).await.ok();
    scene.edit("One.").await;
    let voided = scene.asked().await;
    scene.edit("Two.").await;
    let expired = scene.asked().await;
    world.advance(24 * HOUR);
    background::sweep(world.engine()).await.unwrap();
    let denied = scene.asked().await;
    scene.ada.deny(&denied, "Not today.").await.unwrap();
    drain(&told.node).await;
    let said: Vec<(String, String, String)> = told
        .post
        .messages()
        .into_iter()
        .map(|m| (m.event, m.data.id, m.data.status.unwrap()))
        .collect();
    let one = |event: &str, id: &ApprovalId, status: &str| {
        (
            format!("approval.{event}"),
            id.to_string(),
            status.to_owned(),
        )
    };
    let mut expect = vec![
        one("requested", &id, "pending"),
        one("decided", &id, "approved"),
        one("executed", &id, "redeemed"),
        one("requested", &voided, "pending"),
        one("voided", &voided, "voided"),
        one("requested", &expired, "pending"),
        one("expired", &expired, "expired"),
        one("requested", &denied, "pending"),
        one("decided", &denied, "denied"),
    ];
    let mut got = said;
    got.sort();
    expect.sort();
    assert_eq!(got, expect);
    let first = told.post.messages().remove(0);
    assert_eq!(
        first.data.url,
        Some(format!("{PUBLIC_URL}/approvals/{}", first.data.id))
    );
    assert_eq!(first.data.site_title, "The bakery");
    assert!(first.data.summary.contains("The bakery"), "{first:?}");
    let all: Vec<DeliveryStatus> = told.deliveries().await.iter().map(|d| d.status).collect();
    assert_eq!(all, [DeliveryStatus::Delivered; 9]);
    assert_eq!(deliver_due(&told.node).await.unwrap(), 0, "told once");
}

async fn a_failed_effect_is_told_as_failed(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let scene = &told.scene;
    let version = scene.publish().await;
    scene.publish().await;
    let back = json!({"site": scene.site, "version": version});
    let id = scene
        .bot
        .call("rollback", back.clone())
        .await
        .pending()
        .approval_id;
    scene.ada.approve(&id).await.unwrap();
    // The version vanishes by hand: the effect refuses, and the approval is spent all the same.
    world.tampers();
    world
        .sql("delete from published where from_version = 1; delete from versions where version = 1")
        .await;
    let seen = scene.bot.call_with(&id, "rollback", back).await;
    assert!(matches!(seen, Answer::Error { .. }), "{seen:?}");
    deliver_due(&told.node).await.unwrap();
    let messages = told.post.messages();
    let executed = messages.iter().find(|m| m.event == "approval.executed");
    let outcome = executed.unwrap().data.outcome.as_deref();
    assert_eq!(outcome, Some("failed"));
}

async fn what_did_not_happen_is_not_told(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let scene = &told.scene;
    // A trigger that breaks the last statement of the unit: nothing of it may stay.
    let id = scene.approved().await;
    let rows = "select count(*) from outbox";
    let before = world.number(rows).await;
    scene.world.tampers();
    let broken = match world.database().kind() {
        Kind::Sqlite => "create trigger broken before update of state_hash on sites begin select raise(abort, 'broken'); end",
        Kind::Postgres => "create function broken() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$;
            create trigger broken before update on sites for each row when (old.state_hash <> new.state_hash) execute function broken()",
    };
    world.sql(broken).await;
    scene.redeem(&id).await.refused(Code::Unavailable);
    assert_eq!(world.number(rows).await, before);
    assert_eq!(scene.stored_status(&id).await, "approved");
    let mended = match world.database().kind() {
        Kind::Sqlite => "drop trigger broken",
        Kind::Postgres => "drop trigger broken on sites",
    };
    world.sql(mended).await;
    scene.redeem(&id).await.ok();
    assert_eq!(world.number(rows).await, before + 1);
}

async fn two_nodes_never_take_the_same_row(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let other = node(&world, &told.post).await;
    for _ in 0..rounds(3) {
        let mut asked = Vec::new();
        for _ in 0..40 {
            asked.push(told.ping().await.to_string());
        }
        let (one, two) = (told.node.clone(), other.clone());
        // Whoever finds everything held by the others is done.
        let tasks = [&one, &two, &one, &two].map(|node| {
            let node = node.clone();
            tokio::spawn(async move { drain(&node).await })
        });
        let mut claimed = 0;
        for task in tasks {
            claimed += task.await.unwrap();
        }
        let mut got = told.post.ids();
        told.post.got.lock().unwrap().clear();
        got.sort();
        asked.sort();
        assert_eq!((got, claimed), (asked, 40));
    }
}

async fn a_dead_nodes_lease_runs_out(world: World) {
    let told = Told::set(&world, Post::gated()).await;
    let id = told.ping().await.to_string();
    let dying = told.node.clone();
    let claim = tokio::spawn(async move { deliver_due(&dying).await });
    while told.post.ids().is_empty() {
        tokio::task::yield_now().await;
    }
    claim.abort();
    let _ = claim.await;
    let heir_post = Post::answering(&[]);
    let heir = node(&world, &heir_post).await;
    world.advance(Duration::from_millis(29_999));
    assert_eq!(
        deliver_due(&heir).await.unwrap(),
        0,
        "the lease still holds"
    );
    world.advance(Duration::from_millis(1));
    assert_eq!(deliver_due(&heir).await.unwrap(), 1);
    assert_eq!(heir_post.ids(), [id.as_str()]);
    let delivery = told.delivery().await;
    assert_eq!(
        (delivery.status, delivery.tries),
        (DeliveryStatus::Delivered, 2)
    );
}

async fn whoever_was_overtaken_changes_nothing(world: World) {
    let slow = Arc::new(Post {
        gate: Some(Semaphore::new(0)),
        answers: Mutex::new(vec![broken()]),
        ..Post::default()
    });
    let told = Told::set(&world, slow.clone()).await;
    told.ping().await;
    let node_one = told.node.clone();
    let first = tokio::spawn(async move { deliver_due(&node_one).await.unwrap() });
    while slow.ids().is_empty() {
        tokio::task::yield_now().await;
    }
    world.advance(Duration::from_secs(31));
    let heir_post = Post::gated();
    let heir = node(&world, &heir_post).await;
    let second = tokio::spawn(async move { deliver_due(&heir).await.unwrap() });
    while heir_post.ids().is_empty() {
        tokio::task::yield_now().await;
    }
    // The first one comes back and says that it failed: the row is not its any more.
    slow.gate.as_ref().unwrap().add_permits(1);
    assert_eq!(first.await.unwrap(), 1);
    let held = told.delivery().await;
    assert_eq!(
        (held.status, held.tries, held.last_error),
        (DeliveryStatus::Waiting, 2, None)
    );
    assert_eq!(
        deliver_due(&told.node).await.unwrap(),
        0,
        "the second one still holds it"
    );
    heir_post.gate.as_ref().unwrap().add_permits(1);
    assert_eq!(second.await.unwrap(), 1);
    assert_eq!(told.delivery().await.status, DeliveryStatus::Delivered);
}

async fn a_slow_receiver_holds_up_nobody_else(world: World) {
    let told = Told::set(&world, Post::gated()).await;
    for _ in 0..20 {
        told.ping().await;
        world.advance(Duration::from_millis(1));
    }
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    let quick = webhooks::create(&told.node, ada, own_page(), site, json!({"url": QUICK}))
        .await
        .unwrap();
    let last = webhooks::ping(&told.node, ada, own_page(), site, &quick.webhook.id)
        .await
        .unwrap();
    let node = told.node.clone();
    let serving = tokio::spawn(async move { deliver_due(&node).await.unwrap() });
    let delivered =
        format!("select count(*) from outbox where id = '{last}' and status = 'delivered'");
    while world.number(&delivered).await == 0 {
        assert!(!serving.is_finished());
    }
    told.post.gate.as_ref().unwrap().add_permits(20);
    assert_eq!(
        serving.await.unwrap(),
        9,
        "eight of the slow one's at a time"
    );
}

async fn tries_come_later_each_time_and_end(world: World) {
    let told = Told::set(&world, Post::answering(&vec![broken(); 11])).await;
    let id = told.ping().await;
    let steps = [5, 20, 80, 320, 1280, 5120, 20480, 21600, 21600];
    for (n, step) in steps.into_iter().enumerate() {
        assert_eq!(deliver_due(&told.node).await.unwrap(), 1);
        let delivery = told.delivery().await;
        assert_eq!(
            (delivery.status, delivery.tries),
            (DeliveryStatus::Waiting, n as i64 + 1)
        );
        assert_eq!(
            delivery.last_error.as_deref(),
            Some("the receiver answered 500")
        );
        let wait = delivery.next_try_at.unwrap().ms() - told.node.now().ms();
        assert!(
            (step * 500..=step * 1000).contains(&wait),
            "try {n}: {wait} ms"
        );
        world.advance(Duration::from_millis(wait as u64 - 1));
        assert_eq!(
            deliver_due(&told.node).await.unwrap(),
            0,
            "a millisecond early"
        );
        world.advance(Duration::from_millis(1));
    }
    assert_eq!(deliver_due(&told.node).await.unwrap(), 1);
    let over = told.delivery().await;
    assert_eq!(
        (over.status, over.tries, over.next_try_at),
        (DeliveryStatus::GaveUp, 10, None)
    );
    world.advance(48 * HOUR);
    assert_eq!(deliver_due(&told.node).await.unwrap(), 0);
    let entries = told.journal_of("webhook.gave_up").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["delivery"], &entries[0]["tries"]),
        (&json!(id), &json!(10))
    );
    // A person may have it told once more, under the same id.
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    let again = webhooks::redeliver(&told.node, ada, own_page(), site, &told.hook, &id).await;
    assert_eq!(again.unwrap().tries, 0);
    deliver_due(&told.node).await.unwrap();
    assert_eq!(told.delivery().await.tries, 1);
    assert!(told.post.ids().iter().all(|sent| *sent == id.to_string()));
    assert_eq!(told.post.ids().len(), 11);
}

async fn a_receiver_that_is_gone_is_given_up_at_once(world: World) {
    let told = Told::set(
        &world,
        Post::answering(&[Err(Failure::last("it answered 410"))]),
    )
    .await;
    told.ping().await;
    deliver_due(&told.node).await.unwrap();
    assert_eq!(told.delivery().await.status, DeliveryStatus::GaveUp);
    assert_eq!(told.journal_of("webhook.gave_up").await[0]["tries"], 1);
}

async fn nothing_waits_for_ever_where_webhooks_are_off(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    told.scene.asked().await;
    // The node of the scene has no courier: it writes what is to be told, and tells nothing.
    assert_eq!(deliver_due(world.engine()).await.unwrap(), 0);
    world.advance(24 * HOUR);
    background::sweep(world.engine()).await.unwrap();
    assert!(
        told.deliveries()
            .await
            .iter()
            .any(|d| d.status == DeliveryStatus::Waiting)
    );
    world.advance(Duration::from_millis(1));
    background::sweep(world.engine()).await.unwrap();
    let requested = |d: &&Delivery| d.event == "approval.requested";
    let all = told.deliveries().await;
    assert_eq!(
        all.iter().find(requested).unwrap().status,
        DeliveryStatus::GaveUp
    );
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    let off = webhooks::ping(world.engine(), ada, own_page(), site, &told.hook).await;
    assert!(
        refused(off, Code::Conflict)
            .message
            .contains("CLOUDHAL_WEBHOOKS")
    );
}

/// R16, outside the database.
async fn a_restored_copy_delivers_nothing_of_before(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let asked = told.scene.asked().await;
    background::start_epoch(world.engine()).await.unwrap();
    assert_eq!(told.scene.stored_status(&asked).await, "voided");
    assert_eq!(deliver_due(&told.node).await.unwrap(), 0);
    let old = told.delivery().await;
    assert_eq!(
        (old.event.as_str(), old.status),
        ("approval.requested", DeliveryStatus::GaveUp)
    );
    assert!(old.last_error.unwrap().contains("restored"));
    assert_eq!(
        told.journal_of("instance.restored").await[0]["undelivered"],
        1
    );
    // A row that was claimed when the copy was made is of the older epoch as well.
    let id = told.ping().await;
    world
        .sql(&format!("update outbox set epoch = 1 where id = '{id}'"))
        .await;
    world.advance(HOUR);
    assert_eq!(deliver_due(&told.node).await.unwrap(), 0);
    // What happens from now on is told.
    told.scene.asked().await;
    assert_eq!(deliver_due(&told.node).await.unwrap(), 1);
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    webhooks::redeliver(&told.node, ada, own_page(), site, &told.hook, &old.id)
        .await
        .unwrap();
    assert_eq!(
        deliver_due(&told.node).await.unwrap(),
        1,
        "a person may ask for it"
    );
}

async fn a_deleted_destination_is_told_nothing_more(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    told.ping().await;
    webhooks::delete(&told.node, ada, own_page(), site, &told.hook)
        .await
        .unwrap();
    told.scene.asked().await;
    assert_eq!(deliver_due(&told.node).await.unwrap(), 0);
    assert!(told.post.ids().is_empty());
    assert_eq!(world.number("select count(*) from webhooks").await, 0);
    assert_eq!(world.texts("select status from outbox").await, ["gave_up"]);
    let again = webhooks::delete(&told.node, ada, own_page(), site, &told.hook).await;
    refused(again, Code::NotFound);
}

async fn a_deleted_site_is_told_of_and_then_forgotten(world: World) {
    let told = Told::set(&world, Post::answering(&[Ok(()), Ok(()), broken()])).await;
    let scene = &told.scene;
    let whole = scene.publish_args();
    let id = scene.bot.call("delete", whole.clone()).await.pending();
    let id = id.approval_id;
    scene.ada.approve(&id).await.unwrap();
    scene.bot.call_with(&id, "delete", whole).await.ok();
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(drain(&told.node).await, 3, "its destination is still there");
    assert_eq!(world.number("select count(*) from webhooks").await, 1);
    // The one that failed is given up after all, although the site has no journal of its own any more.
    world.advance(48 * HOUR);
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(told.journal_of("webhook.gave_up").await.len(), 1);
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(world.number("select count(*) from webhooks").await, 0);
}

async fn old_rows_and_old_secrets_go(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    webhooks::rotate_secret(&told.node, ada, own_page(), site, &told.hook)
        .await
        .unwrap();
    told.ping().await;
    deliver_due(&told.node).await.unwrap();
    world.advance(24 * HOUR);
    background::sweep(world.engine()).await.unwrap();
    let old = "select count(*) from webhooks where old_secret is not null";
    assert_eq!(world.number(old).await, 0);
    assert_eq!(told.deliveries().await.len(), 1);
    world.advance(30 * 24 * HOUR);
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(told.deliveries().await.len(), 0);
}

async fn a_rotated_secret_signs_beside_the_old_one_for_a_day(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    let rotated = webhooks::rotate_secret(&told.node, ada, own_page(), site, &told.hook)
        .await
        .unwrap();
    assert_ne!(rotated.secret, told.secret);
    let mut signatures = Vec::new();
    for wait in [Duration::ZERO, 24 * HOUR] {
        world.advance(wait);
        told.ping().await;
        deliver_due(&told.node).await.unwrap();
        let last = told.post.got.lock().unwrap().pop().unwrap();
        signatures.push(last.headers[2].1.split(' ').count());
    }
    assert_eq!(signatures, [2, 1]);
}

async fn only_an_owner_looks_after_destinations(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let (site, hook) = (&told.scene.site, &told.hook);
    let stranger = world.person("eve").await;
    for (role, code) in [
        (Some(Role::Viewer), Code::Forbidden),
        (Some(Role::Editor), Code::Forbidden),
        (Some(Role::Approver), Code::Forbidden),
        (None, Code::NotFound),
    ] {
        told.scene
            .ada
            .set_member(site, &stranger, role, &[])
            .await
            .unwrap();
        let (who, node) = (stranger.person(), &told.node);
        refused(webhooks::list(node, who, site).await, code);
        refused(
            webhooks::create(node, who, own_page(), site, json!({"url": URL}))
                .await
                .map(drop),
            code,
        );
        refused(webhooks::deliveries(node, who, site, hook).await, code);
        refused(
            webhooks::rotate_secret(node, who, own_page(), site, hook)
                .await
                .map(drop),
            code,
        );
        refused(
            webhooks::ping(node, who, own_page(), site, hook).await,
            code,
        );
        let none = DeliveryId::new("x");
        refused(
            webhooks::redeliver(node, who, own_page(), site, hook, &none).await,
            code,
        );
        refused(
            webhooks::delete(node, who, own_page(), site, hook).await,
            code,
        );
    }
    // An owner of another site does not reach it through their own.
    let florist = world.site("florist", &stranger).await;
    let (who, node) = (stranger.person(), &told.node);
    refused(
        webhooks::deliveries(node, who, &florist, hook).await,
        Code::NotFound,
    );
    refused(
        webhooks::ping(node, who, own_page(), &florist, hook).await,
        Code::NotFound,
    );
    refused(
        webhooks::delete(node, who, own_page(), &florist, hook).await,
        Code::NotFound,
    );
    assert_eq!(
        webhooks::list(node, told.scene.ada.person(), site)
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn destinations_are_few_and_their_secrets_are_in_no_journal(world: World) {
    let told = Told::set(&world, Post::answering(&[])).await;
    let (ada, site) = (told.scene.ada.person(), &told.scene.site);
    for _ in 1..10 {
        webhooks::create(&told.node, ada, own_page(), site, json!({"url": URL}))
            .await
            .unwrap();
    }
    let more = webhooks::create(&told.node, ada, own_page(), site, json!({"url": URL})).await;
    refused(more.map(drop), Code::Conflict);
    let plain = webhooks::create(
        &told.node,
        ada,
        own_page(),
        site,
        json!({"url": "http://x.example"}),
    )
    .await;
    refused(plain.map(drop), Code::InvalidArguments);
    let bodies = world.texts("select body from journal").await.concat();
    assert!(bodies.contains("hooks.example"), "{bodies}");
    assert!(
        !bodies.contains("whsec_") && !bodies.contains("of-the-receiver"),
        "{bodies}"
    );
    let shown = json!(webhooks::list(&told.node, ada, site).await.unwrap()).to_string();
    assert!(!shown.contains("whsec_"), "{shown}");
}
