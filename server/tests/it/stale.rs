//! A page that was opened before somebody else changed what it shows: its forms give nothing back unseen, say what there is by
//! now, and keep what was typed. And what a page shows of people to whom.

use crate::support::*;
use reqwest::Method;

const SETTINGS: &str = "/sites/bakery/settings";

/// A hidden field of one form among the many of a page.
#[track_caller]
fn field_of(page: &Seen, form: &str, field: &str) -> String {
    let start = page.text.find(&format!("value=\"{form}\""));
    let rest = &page.text[start.unwrap_or_else(|| panic!("no form {form} in {}", page.text))..];
    let rest = rest
        .split_once(&format!("name=\"{field}\" value=\""))
        .unwrap()
        .1;
    rest.split_once('"').unwrap().0.to_owned()
}

/// The part of a page between the beginning of a form and its end.
fn form_of<'p>(page: &'p Seen, form: &str) -> &'p str {
    let at = page.text.find(&format!("value=\"{form}\"")).unwrap();
    let rest = &page.text[page.text[..at].rfind("<form").unwrap()..];
    &rest[..rest.find("</form>").unwrap()]
}

struct Scene {
    server: TestServer,
    ada: PersonClient,
    ben: String,
}

impl Scene {
    async fn set() -> Self {
        let server = TestServer::start().await;
        let ada = server.as_person("ada").await;
        server.as_member("ben", Role::Viewer).await;
        let ben = server.account("ben").await.id().as_str().to_owned();
        Self { server, ada, ben }
    }

    /// What somebody else does meanwhile, who is not asked what they saw.
    async fn meanwhile(&self, member: Value) {
        let path = format!("/api/sites/{}/members/{}", self.server.site, self.ben);
        self.ada.ok(Method::PUT, &path, member).await;
    }

    async fn save(&self, seen: &str, role: &str, groups: &str) -> Seen {
        let form = format!("member:{}", self.ben);
        let fields = [
            ("form", form.as_str()),
            ("person", &self.ben),
            ("was", seen),
            ("role", role),
            ("groups", groups),
        ];
        self.ada.post_form(SETTINGS, &fields).await
    }

    async fn is(&self) -> Vec<String> {
        let sql = format!(
            "select role from memberships where person_id = '{0}' union all
             select name from group_members where person_id = '{0}'",
            self.ben
        );
        self.server.database.texts(&sql).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_members_form_changes_only_what_it_showed() {
    let scene = Scene::set().await;
    let form = format!("member:{}", scene.ben);
    let old = field_of(&scene.ada.get(SETTINGS).await, &form, "was");
    let becomes = json!({"role": "editor", "groups": ["legal"]});
    scene.meanwhile(becomes).await;
    let page = scene.save(&old, "owner", "brand").await;
    assert_eq!(page.status, 409, "{}", page.text);
    let shown = form_of(&page, &form);
    assert!(
        shown.contains("ben is an editor of this site by now, in legal"),
        "{shown}"
    );
    assert!(shown.contains("value=\"brand\""), "what was typed: {shown}");
    assert_eq!(scene.is().await, ["editor", "legal"]);
    // Whoever sends what came back has read it; but not twice.
    let now = field_of(&page, &form, "was");
    let saved = scene.save(&now, "approver", "brand").await;
    assert_eq!(saved.location(), format!("{SETTINGS}?notice=saved"));
    assert_eq!(scene.is().await, ["approver", "brand"]);
    for older in [old.as_str(), &now, ""] {
        assert_eq!(scene.save(older, "viewer", "").await.status, 409);
    }
    // A form that is wrong comes back with what its page had shown, and not with what there is.
    let now = field_of(&scene.ada.get(SETTINGS).await, &form, "was");
    scene.meanwhile(json!({"role": "owner"})).await;
    let page = scene.save(&now, "viewer", "No Group").await;
    assert_eq!(page.status, 422);
    let page = scene
        .save(&field_of(&page, &form, "was"), "viewer", "")
        .await;
    assert!(form_of(&page, &form).contains("ben is an owner of this site by now, in no group"));

    // Whoever left is not brought back by it; and the page says so where the form no more is.
    scene.meanwhile(json!({"role": null})).await;
    let page = scene.save(&now, "owner", "").await;
    assert_eq!(page.status, 409);
    assert!(
        page.text
            .contains("Somebody took ben off this site since this page was opened.")
    );
    assert_eq!(scene.is().await, [""; 0]);
    // And whoever was added meanwhile is not added over.
    let add = [
        ("form", "add"),
        ("email", "ben@example.com"),
        ("role", "viewer"),
        ("groups", ""),
    ];
    scene.meanwhile(json!({"role": "approver"})).await;
    let page = scene.ada.post_form(SETTINGS, &add).await;
    assert!(
        page.status == 409
            && page
                .text
                .contains("ben belongs to this site already, as an approver")
    );
    assert_eq!(scene.is().await, ["approver"]);
    scene.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_form_changes_only_what_it_showed() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    let account = server.account("ada").await;
    let cinema = server.add_site("cinema", &account).await;
    let bot = server.as_agent("bot").await;
    let agent = server.agent_id("bot").await;
    let form = format!("scope:{agent}");
    let save = async |seen: &str| {
        let fields = [
            ("form", form.as_str()),
            ("agent", &agent),
            ("was", seen),
            ("sites", server.site.as_str()),
            ("reach", "some"),
            ("tools", "site-get"),
        ];
        ada.post_form("/agents", &fields).await
    };
    let change = async |body: Value| {
        ada.ok(Method::PATCH, &format!("/api/agents/{agent}"), body)
            .await;
    };
    let old = field_of(&ada.get("/agents").await, &form, "was");
    change(json!({"sites": [server.site, cinema], "tools": ["site-list", "node-get"]})).await;
    let before = server.everything().await;
    let page = save(&old).await;
    assert_eq!(page.status, 409, "{}", page.text);
    let shown = form_of(&page, &form);
    assert!(
        shown.contains("bot works on The bakery, The cinema by now, with node-get, site-list"),
        "{shown}"
    );
    assert_eq!(server.everything().await, before);
    let saved = save(&field_of(&page, &form, "was")).await;
    assert_eq!(saved.location(), "/agents?notice=saved");
    assert_eq!(
        bot.call("site-list", json!({})).await.code(),
        "insufficient_scope"
    );
    // Taken off the site meanwhile by an owner of it, it is not put on again.
    let old = field_of(&ada.get("/agents").await, &form, "was");
    let path = format!("/api/sites/{}/agents/{agent}", server.site);
    ada.ok(Method::DELETE, &path, json!({})).await;
    let page = save(&old).await;
    assert!(page.status == 409 && form_of(&page, &form).contains("bot works on no site by now"));
    // Its form is gone with the disabled agent: the page says it all the same.
    change(json!({"disabled": true})).await;
    let page = save(&old).await;
    assert!(page.status == 409 && page.text.contains("bot works on no site by now"));
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_name_does_not_come_back() {
    let server = TestServer::start().await;
    let root = server.as_owner("root").await;
    let dee = server.account("dee").await.id().as_str().to_owned();
    let form = format!("change:{dee}");
    let old = field_of(&root.get("/people").await, &form, "wasName");
    root.ok(
        Method::PATCH,
        &format!("/api/people/{dee}"),
        json!({"name": "Dee Park"}),
    )
    .await;
    let fields = [
        ("form", form.as_str()),
        ("person", &dee),
        ("wasName", &old),
        ("name", &old),
        ("owner", "on"),
    ];
    root.post_form("/people", &fields).await;
    let names = "select name from people where workspace_owner = 1 order by name";
    assert_eq!(server.database.texts(names).await, ["Dee Park", "root"]);
    server.done().await;
}

/// What an owner of the site took off, they put back on its page; the agent's owner does not.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_taken_off_is_put_back_by_the_sites_owner() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    let ben = server.as_member("ben", Role::Approver).await;
    let helper = server
        .agent_for("helper", "ben", &[&server.site], &[])
        .await;
    let agent = server.agent_id("helper").await;
    let post = async |who: &PersonClient, form: &str| {
        let fields = [("form", form), ("agent", agent.as_str())];
        who.post_form(SETTINGS, &fields).await
    };
    let args = json!({"site": server.site});
    post(&ada, "take_off").await;
    let off = helper.call("site-get", args.clone()).await;
    assert_refused(&off, Code::NotFound, "taken off");

    let scope = format!("scope:{agent}");
    let seen = field_of(&ben.get("/agents").await, &scope, "was");
    let fields = [
        ("form", scope.as_str()),
        ("agent", &agent),
        ("was", &seen),
        ("sites", server.site.as_str()),
        ("reach", "all"),
    ];
    let page = ben.post_form("/agents", &fields).await;
    assert_eq!(page.status, 403);
    assert!(
        page.text
            .contains("An owner of The bakery took helper off.")
    );
    assert_eq!(post(&ben, "put_back").await.status, 403);
    assert!(!ben.get(SETTINGS).await.text.contains("Taken off"));

    let page = ada.get(SETTINGS).await;
    assert!(page.text.contains("Taken off") && page.text.contains("value=\"put_back\""));
    assert_eq!(
        post(&ada, "put_back").await.location(),
        format!("{SETTINGS}?notice=put_back")
    );
    helper.ok("site-get", args).await;
    assert!(!ada.get(SETTINGS).await.text.contains("Taken off"));
    assert_eq!(
        post(&ada, "put_back").await.location(),
        format!("{SETTINGS}?notice=not_found")
    );
    server.done().await;
}

/// E-mail addresses are for whoever keeps the people: owners of the site, and of the workspace.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_shown_to_owners_alone() {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    bot.edit(&server.site, "visit", "New.").await;
    let id = bot.ask("publish", json!({"site": server.site})).await;
    server
        .as_person("ada")
        .await
        .approve(&server.site, &id)
        .await;
    server.account("secretly").await;
    server.as_owner("root").await;
    let site = &server.site;
    let api = format!("/api/sites/{site}");
    let everywhere = [
        SETTINGS.to_owned(),
        "/".into(),
        "/agents".into(),
        "/people".into(),
        "/journal".into(),
        "/journal?site=bakery".into(),
        "/approvals".into(),
        format!("/approvals/{id}"),
        "/sites".into(),
        "/sites/bakery".into(),
        "/sites/bakery/versions".into(),
        "/api/sites".into(),
        "/api/people".into(),
        "/api/agents".into(),
        format!("{api}/members"),
        format!("{api}/agents"),
        format!("{api}/policy"),
        format!("{api}/approvals"),
        format!("{api}/approvals/{id}"),
    ];
    for role in [Role::Viewer, Role::Editor, Role::Approver] {
        let somebody = server.as_member(role.as_str(), role).await;
        let own = format!("{}@example.com", role.as_str());
        for path in &everywhere {
            let seen = somebody.get(path).await;
            let text = seen.text.replace(&own, "");
            assert!(!text.contains("@example.com"), "{role:?} at {path}: {text}");
        }
        for function in crate::reach::server_functions() {
            let path = function.strip_prefix("POST ").unwrap();
            let body = json!({"query": {}, "id": id, "slug": SLUG, "node": "x", "site": SLUG, "cursor": null, "from": 0});
            let seen = somebody.post_json(path, body).await;
            let text = seen.text.replace(&own, "");
            assert!(!text.contains("@example.com"), "{role:?} at {path}: {text}");
        }
        let listed = somebody.get(&format!("{api}/members")).await.body;
        assert!(listed["items"][0].get("email").is_none(), "{listed}");
    }
    for owner in ["ada", "root"] {
        let owner = server.as_person(owner).await;
        for path in [SETTINGS, &format!("{api}/members")] {
            let seen = owner.get(path).await;
            assert!(seen.text.contains("viewer@example.com"), "{path}");
        }
    }
    server.done().await;
}
