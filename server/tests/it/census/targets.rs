//! What the census sends: for each people's route, by its method, what a person who may would send, with ids of what is there.
//! So whoever is refused is refused for who they are; that an owner is not, a test says ([`super`]).

use crate::{reach, support::*};
use reqwest::{Method, RequestBuilder};

/// A people's route with real ids in it, and what a caller of it would send.
pub struct Target {
    pub method: Method,
    pub path: String,
    /// Which of the forms of a page, or which of two answers.
    pub form: &'static str,
    pub body: Body,
}

#[derive(Clone)]
pub enum Body {
    None,
    Json(Value),
    Form(Vec<(&'static str, String)>),
}

impl Target {
    pub fn on(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.body {
            Body::None => request,
            Body::Json(value) => request.json(value),
            Body::Form(fields) => request.form(fields),
        }
    }

    pub fn name(&self) -> String {
        format!("{} {} {}", self.method, self.path, self.form)
    }

    pub fn is_json(&self) -> bool {
        self.path.starts_with("/api") || self.path.starts_with("/_fn")
    }

    pub fn is_nowhere(&self) -> bool {
        self.path == "/api" || self.path.ends_with("/anything")
    }

    /// Pages for those who are not signed in yet, and two forms that anybody may post.
    pub fn is_for_everybody(&self) -> bool {
        ["/login", "/setup/", "/logout", "/theme"]
            .iter()
            .any(|start| self.path.starts_with(start))
    }

    /// What everybody has of their own.
    pub fn is_ones_own(&self) -> bool {
        let makes_a_key = self.path == "/api/personal-keys" || self.form == "own_key";
        self.method == Method::POST && makes_a_key
    }

    pub fn changes_something(&self) -> bool {
        let reads = self.method == Method::GET || self.path.starts_with("/_fn");
        !reads && !self.is_nowhere() && !self.is_for_everybody()
    }
}

/// What is there, by id.
pub struct Known {
    pub site: SiteId,
    pub state: String,
    /// A request that waits, and what its page shows.
    pub approval: String,
    pub digest: String,
    pub node: String,
    /// The owner of the site.
    pub ada: String,
    /// An editor of it, and an account that is disabled.
    pub ben: String,
    pub zed: String,
    /// Agents of the site's owner: at work, with its key, and disabled; and one that was taken off the site.
    pub bot: String,
    pub key: String,
    pub resting: String,
    /// A key of the workspace's owner's own client.
    pub personal: String,
    pub parked: String,
    /// What the first of them reaches, and the policy, as their forms carry it.
    pub scope: String,
    pub policy: String,
    pub url: String,
    pub webhook: String,
    pub delivery: String,
    pub token: String,
}

impl Known {
    fn fill(&self, route: &str) -> String {
        route
            .replace(
                "personal-keys/{key}",
                &format!("personal-keys/{}", self.personal),
            )
            .replace("{site}", self.site.as_str())
            .replace("{id}", &self.approval)
            .replace("{slug}", SLUG)
            .replace("{node}", &self.node)
            .replace("{side}", "after")
            .replace("{person}", &self.ben)
            .replace("{agent}", &self.bot)
            .replace("{key}", &self.key)
            .replace("{webhook}", &self.webhook)
            .replace("{delivery}", &self.delivery)
            .replace("{token}", &self.token)
            .replace("{*rest}", "sites/anything")
    }

    pub fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for route in reach::routes().iter().filter(|route| route.for_people) {
            for method in &route.methods {
                match (*method, route.path.as_str()) {
                    (_, "/_fn/{*name}") => targets.extend(self.functions()),
                    ("get", route) => targets.push(get(&self.fill(route))),
                    ("post", route) if !route.starts_with("/api") => {
                        targets.extend(self.forms(route));
                    }
                    (method, route) => targets.push(self.json(method, route)),
                }
            }
        }
        // What the router sends to its fallback: the Studio's other pages.
        let pages = [
            "/",
            "/approvals",
            "/sites",
            "/sites/bakery",
            "/sites/bakery/versions",
            "/journal",
            "/nothing",
        ];
        targets.extend(pages.map(get));
        targets
    }

    fn functions(&self) -> Vec<Target> {
        let all = reach::server_functions();
        let target = |function: &String| Target {
            method: Method::POST,
            path: function.strip_prefix("POST ").unwrap().to_owned(),
            form: "",
            body: Body::Json(json!({
                "query": {}, "id": self.approval, "slug": SLUG, "node": self.node, "site": null, "cursor": null, "from": 0,
            })),
        };
        all.iter().map(target).collect()
    }

    fn json(&self, method: &str, route: &str) -> Target {
        let body = match (method, route) {
            ("delete", _) => Body::None,
            ("any", _) => Body::Json(json!({})),
            _ => Body::Json(self.body(method, route)),
        };
        let method = match method {
            "any" => Method::POST,
            other => other.to_uppercase().parse().unwrap(),
        };
        Target {
            method,
            path: self.fill(route),
            form: "",
            body,
        }
    }

    fn body(&self, method: &str, route: &str) -> Value {
        let rest = route.strip_prefix("/api/").unwrap();
        match (method, rest.strip_prefix("sites/{site}/").unwrap_or(rest)) {
            ("post", "approvals/{id}/approve" | "approvals/{id}/deny") => {
                json!({"seenDigest": self.digest})
            }
            ("put", "policy") => json!({"default": {"approvers": 1}}),
            ("post", "members") => json!({"email": "eve@example.com", "role": "viewer"}),
            ("put", "members/{person}") => json!({"role": "approver", "groups": ["legal"]}),
            ("post", "webhooks") => json!({"url": self.url}),
            ("post", "webhooks/{webhook}/secret" | "webhooks/{webhook}/ping") => json!({}),
            ("post", "webhooks/{webhook}/deliveries/{delivery}/redeliver") => json!({}),
            ("post", "people") => {
                json!({"email": "new@example.com", "name": "New", "workspaceOwner": true})
            }
            ("patch", "people/{person}") => json!({"workspaceOwner": true}),
            ("post", "people/{person}/sign-in-link") => json!({}),
            ("post", "agents") => {
                json!({"name": "new", "sites": [self.site], "owner": self.ada})
            }
            ("patch", "agents/{agent}") => json!({"disabled": true}),
            ("post", "agents/{agent}/keys") => json!({}),
            ("post", "personal-keys") => json!({"name": "desk"}),
            other => panic!("say here what a caller of {other:?} sends"),
        }
    }

    /// One of each kind that the page of a route has.
    fn forms(&self, route: &str) -> Vec<Target> {
        let kinds = match route {
            "/people" => self.of_people(),
            "/agents" => self.of_agents(),
            "/sites/{slug}/settings" => self.of_settings(),
            "/approvals/{id}" => ["approve", "deny"]
                .map(|verdict| {
                    (
                        verdict,
                        vec![("seenDigest", &*self.digest), ("decision", verdict)],
                    )
                })
                .into(),
            "/approvals/deny" => vec![("", vec![("ids", &*self.approval)])],
            "/sites/{slug}/publish" => vec![("", vec![("stateHash", &*self.state)])],
            "/sites/{slug}/rollback" => {
                vec![("", vec![("stateHash", &*self.state), ("version", "1")])]
            }
            "/sites/{slug}/delete" | "/sites/{slug}/nodes/{node}/delete" => {
                vec![("", vec![("stateHash", &*self.state), ("confirm", SLUG)])]
            }
            "/login" | "/login/link/{token}" | "/setup/{token}" | "/logout" | "/theme" => {
                vec![("", vec![("next", "")])]
            }
            other => panic!("say here which forms {other} takes"),
        };
        let target = |(form, fields): (&'static str, Vec<(&'static str, &str)>)| {
            let fields = fields.into_iter().map(|(name, value)| (name, value.into()));
            Target {
                method: Method::POST,
                path: self.fill(route),
                form,
                body: Body::Form(fields.collect()),
            }
        };
        kinds.into_iter().map(target).collect()
    }

    fn of_people(&self) -> Forms<'_> {
        let (ben, zed) = (("person", &*self.ben), ("person", &*self.zed));
        vec![
            named(
                "add",
                [
                    ("name", "New"),
                    ("email", "new@example.com"),
                    ("owner", "on"),
                ],
            ),
            named("link", [ben]),
            named(
                "change",
                [
                    ben,
                    ("wasName", "ben"),
                    ("name", "Benedict"),
                    ("owner", "on"),
                ],
            ),
            named("disable", [ben]),
            named("enable", [zed]),
        ]
    }

    fn of_agents(&self) -> Forms<'_> {
        let (bot, site) = (("agent", &*self.bot), ("sites", self.site.as_str()));
        let was = ("was", &*self.scope);
        vec![
            named(
                "add",
                [
                    ("name", "new"),
                    ("owner", &*self.ada),
                    site,
                    ("reach", "all"),
                    ("ends", "30"),
                ],
            ),
            named("key", [bot, ("ends", "")]),
            named("revoke", [bot, ("key", &*self.key)]),
            named(
                "scope",
                [bot, was, site, ("reach", "some"), ("tools", "site-get")],
            ),
            named("disable", [bot]),
            named("enable", [("agent", &*self.resting)]),
            named("own_key", [("name", "laptop")]),
            named("own_end", [("key", &*self.personal)]),
        ]
    }

    fn of_settings(&self) -> Forms<'_> {
        let (ben, hook) = (("person", &*self.ben), ("webhook", &*self.webhook));
        let does = |what| named("hook", [hook, ("delivery", &*self.delivery), ("do", what)]);
        vec![
            named(
                "add",
                [
                    ("email", "eve@example.com"),
                    ("role", "viewer"),
                    ("groups", "legal"),
                ],
            ),
            named(
                "member",
                [
                    ben,
                    ("was", "editor "),
                    ("role", "approver"),
                    ("groups", "legal"),
                ],
            ),
            named("remove", [ben]),
            named("take_off", [("agent", &*self.bot)]),
            named("put_back", [("agent", &*self.parked)]),
            named(
                "policy",
                [
                    ("seen", &*self.policy),
                    ("default.approvers", "1"),
                    ("publish.own", "on"),
                    ("publish.approvers", "2"),
                ],
            ),
            named("webhook", [("url", &*self.url)]),
            does("test"),
            does("again"),
            does("secret"),
            does("delete"),
        ]
    }
}

type Forms<'k> = Vec<(&'static str, Vec<(&'static str, &'k str)>)>;

fn named<'k, const N: usize>(
    form: &'static str,
    fields: [(&'static str, &'k str); N],
) -> (&'static str, Vec<(&'static str, &'k str)>) {
    let name = [("form", form)].into_iter();
    (form, name.chain(fields).collect())
}

fn get(path: &str) -> Target {
    Target {
        method: Method::GET,
        path: path.to_owned(),
        form: "",
        body: Body::None,
    }
}
