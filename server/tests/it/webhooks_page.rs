//! Webhooks on the settings page of a site, with no script at all: who is offered them, what their forms take, and that a
//! secret stands in one answer and in no other.

use crate::{
    support::*,
    webhooks::{Receiver, allowing},
};
use reqwest::Method;

const SETTINGS: &str = "/sites/bakery/settings";

/// The secret that an answer shows; nothing else may keep it.
fn shown(answer: &Seen) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("cache-control"), "no-store");
    let (_, rest) = answer.text.split_once("<code>whsec_").unwrap();
    let secret = rest.split('<').next().unwrap();
    assert!(secret.len() >= 32);
    format!("whsec_{secret}")
}

struct Page {
    server: TestServer,
    ada: PersonClient,
    receiver: Receiver,
}

impl Page {
    async fn open(kind: Kind) -> Option<Self> {
        let receiver = Receiver::start().await;
        let setup = Setup {
            kind,
            ..allowing(&[receiver.addr])
        };
        let server = TestServer::start_as(setup).await?;
        let ada = server.as_person("ada").await;
        Some(Self {
            server,
            ada,
            receiver,
        })
    }

    async fn add(&self, url: &str) -> Seen {
        let fields = [("form", "webhook"), ("url", url)];
        self.ada.post_form(SETTINGS, &fields).await
    }

    /// A destination, and its secret.
    async fn with_destination(&self) -> (String, String) {
        let added = self.add(&self.receiver.url()).await;
        (PersonClient::field(&added, "webhook"), shown(&added))
    }

    async fn act(&self, hook: &str, act: &str, delivery: &str) -> Seen {
        let form = format!("hook:{hook}");
        let fields = [
            ("form", form.as_str()),
            ("webhook", hook),
            ("do", act),
            ("delivery", delivery),
        ];
        self.ada.post_form(SETTINGS, &fields).await
    }

    async fn text(&self) -> String {
        self.ada.get(SETTINGS).await.text
    }
}

/// Runs a test on SQLite, and on PostgreSQL where one is at hand.
async fn on_each<F: Future<Output = ()>>(test: impl Fn(Page) -> F) {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        match Page::open(kind).await {
            Some(page) => test(page).await,
            None => eprintln!("skipped: TEST_POSTGRES_URL is not set"),
        }
    }
}

fn back(notice: &str) -> String {
    format!("{SETTINGS}?notice={notice}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_from_its_form_to_its_end() {
    on_each(from_its_form_to_its_end).await;
}

async fn from_its_form_to_its_end(mut page: Page) {
    let (hook, first) = page.with_destination().await;
    assert!(page.text().await.contains(&page.receiver.addr.to_string()));
    assert!(
        page.text()
            .await
            .contains("Nothing has been sent there yet.")
    );

    let tested = page.act(&hook, "test", "").await;
    assert_eq!(tested.location(), back("webhook_arrived"));
    let got = page.receiver.next().await;
    assert!(got.is_signed_with(&first));
    let text = page.text().await;
    assert!(text.contains("A test") && text.contains("Delivered") && text.contains("1 try"));

    let second = shown(&page.act(&hook, "secret", "").await);
    assert_ne!(first, second);
    let delivery = PersonClient::field(&page.ada.get(SETTINGS).await, "delivery");
    let again = page.act(&hook, "again", &delivery).await;
    assert_eq!(again.location(), back("webhook_arrived"));
    let got = page.receiver.next().await;
    assert!(got.is_signed_with(&first) && got.is_signed_with(&second));
    assert!(page.text().await.contains("signs as well until"));

    // What the agent does is told and listed, with the way to the request.
    let bot = page.server.as_agent("bot").await;
    bot.edit(&page.server.site, "visit", "We moved.").await;
    let id = bot.ask("publish", json!({"site": page.server.site})).await;
    page.receiver.next().await;
    let text = page.text().await;
    assert!(text.contains("A request waits") && text.contains(&format!("/approvals/{id}\"")));

    page.receiver.answers(410);
    let gone = page.act(&hook, "test", "").await;
    assert_eq!(gone.location(), back("webhook_gave_up"));
    assert!(page.text().await.contains("Given up"));
    page.receiver.answers(500);
    let failed = page.act(&hook, "test", "").await;
    assert_eq!(failed.location(), back("webhook_failed"));
    assert!(page.text().await.contains("It answered 500."));

    for secret in [&first, &second] {
        for path in [SETTINGS, "/journal", &back("webhook_failed")] {
            let seen = page.ada.get(path).await;
            assert!(!seen.text.contains(&secret[6..]), "{path} holds a secret");
        }
    }
    let deleted = page.act(&hook, "delete", "").await;
    assert_eq!(deleted.location(), back("webhook_deleted"));
    assert!(!page.text().await.contains(&page.receiver.addr.to_string()));
    // Sent again by a page that is older than that.
    for act in ["test", "secret", "delete", "again"] {
        let seen = page.act(&hook, act, &delivery).await;
        assert_eq!(seen.location(), back("not_found"), "{act}");
    }
    for odd in ["", "no-such", "\0", "ä"] {
        let seen = page.act(odd, "test", odd).await;
        assert_eq!(seen.location(), back("not_found"), "{odd:?}");
    }
    page.server.done().await;
}

/// What cannot be taken stands in its field again, with what is wrong beside it, and nothing is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_address_is_said_beside_it_and_stays_typed() {
    on_each(wrong_addresses).await;
}

async fn wrong_addresses(page: Page) {
    let before = page.server.effects().await;
    for url in [
        "",
        "hooks",
        "https://elsewhere.invalid/hook",
        "https://127.0.0.1/hook",
        "javascript:alert(1)",
    ] {
        let answer = page.add(url).await;
        assert_eq!(answer.status, 422, "{url}");
        assert!(answer.text.contains("id=\"webhook.url-wrong\""), "{url}");
        assert!(answer.text.contains("Nothing can be told there"), "{url}");
        assert!(answer.text.contains(&format!("value=\"{url}\"")), "{url}");
        assert!(!answer.text.contains("whsec_"), "{url}");
    }
    assert_eq!(page.server.effects().await, before);
    let pasted = page.add(&format!(" {} \n", page.receiver.url())).await;
    shown(&pasted);
    let unknown = [("form", "hook:x"), ("webhook", "x"), ("do", "everything")];
    let seen = page.ada.post_form(SETTINGS, &unknown).await;
    assert_eq!(seen.status, 422);
    page.server.done().await;
}

/// [C36] Whoever does not own the site neither sees the part nor changes anything by its forms; nor does an agent, nor a page
/// of somebody else's.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_owner_on_our_own_page_keeps_webhooks() {
    on_each(owners_alone).await;
}

async fn owners_alone(page: Page) {
    let (hook, _) = page.with_destination().await;
    page.act(&hook, "test", "").await;
    let delivery = PersonClient::field(&page.ada.get(SETTINGS).await, "delivery");
    let state = async || {
        let kept = "select id || url || secret || coalesce(old_secret, '') from webhooks union all select id || tries from outbox order by 1";
        page.server.database.texts(kept).await
    };
    let before = state().await;
    let (form, url) = (format!("hook:{hook}"), page.receiver.url());
    let mut forms = vec![vec![("form", "webhook"), ("url", url.as_str())]];
    for act in ["test", "again", "secret", "delete"] {
        forms.push(vec![
            ("form", form.as_str()),
            ("webhook", &hook),
            ("delivery", &delivery),
            ("do", act),
        ]);
    }
    for role in [Role::Viewer, Role::Editor, Role::Approver] {
        let somebody = page.server.as_member(role.as_str(), role).await;
        let seen = somebody.get(SETTINGS).await.text;
        assert!(
            !seen.contains("Webhooks") && !seen.contains(&hook),
            "{role:?}"
        );
        assert!(!seen.contains(&page.receiver.addr.to_string()), "{role:?}");
        for fields in &forms {
            let seen = somebody.post_form(SETTINGS, fields).await;
            assert_eq!(seen.status, 403, "{role:?} {fields:?}");
            assert!(!seen.text.contains("whsec_"), "{role:?} {fields:?}");
            assert!(seen.text.contains("Only an owner of the site"));
        }
    }
    let stranger = page.server.as_person("stranger").await;
    let bot = page.server.as_agent("bot").await;
    for fields in &forms {
        let seen = stranger.post_form(SETTINGS, fields).await;
        assert_eq!(seen.location(), "/sites?notice=not_found", "{fields:?}");
        let by_key = page.ada.request(Method::POST, SETTINGS);
        let seen = Seen::of(by_key.bearer_auth(&bot.key).form(fields)).await;
        assert_eq!(seen.status, 403, "an agent: {fields:?}");
        let elsewhere = page.ada.bare(Method::POST, SETTINGS);
        let elsewhere = elsewhere.header("origin", "https://evil.example");
        let seen = Seen::of(elsewhere.form(fields)).await;
        assert_eq!(seen.status, 403, "cross-site: {fields:?}");
        let nobody = PersonClient::new(&page.server);
        let seen = nobody.post_form(SETTINGS, fields).await;
        assert!(seen.location().starts_with("/login"), "{fields:?}");
    }
    assert_eq!(state().await, before);
    page.server.done().await;
}

/// The page says whom to ask for what, and a form that is sent all the same changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn off_means_that_nothing_is_offered() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    let text = ada.get(SETTINGS).await.text;
    assert!(text.contains("CLOUDHAL_WEBHOOKS") && text.contains("switched off"));
    assert!(!text.contains("webhook.url"));
    let fields = [("form", "webhook"), ("url", "https://hooks.example/")];
    let seen = ada.post_form(SETTINGS, &fields).await;
    assert_eq!(seen.status, 409);
    assert!(
        seen.text
            .contains("Outgoing webhooks are switched off here.")
    );
    server.done().await;
}
