//! The forms of the pages that keep people, agents and a site's settings. One that could not be taken comes back with what was
//! typed and what is wrong; a new key or sign-in link is shown in the answer itself, and in no address.

use super::{Fields, back_to, draw, sign_in_first};
use crate::{
    App,
    people::{FromOurPage, InSession, MaybePerson},
    reply::No,
};
use axum::{
    body::Body,
    extract::{Path, Request, State},
    http::{Method, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use cloudhal_domain::{
    canonical::{self, Fault},
    code::{Code, Refusal},
    id::{AgentId, DeliveryId, KeyId, PersonId, SiteId, WebhookId},
    link,
    origin::SameOrigin,
    policy_form::{self, CanWait},
    role::Role,
    seen,
    time::Timestamp,
    view::{Posted, Returned, Shown, ShownKind},
    webhook::{DeliveryStatus, NewSecret},
};
use cloudhal_engine::{
    agents::{self, NewAgent, NewKey},
    authority::Steward,
    members::{self, Members},
    people::{self, NewPerson, Person},
    personal_keys::{self, Session},
    policies, studio, webhooks,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How a form's work ended, where nothing was refused.
enum Done {
    /// Back to the page, which says so.
    Notice(&'static str),
    Secret(Shown),
    /// Whoever took themselves off the site finds its page no more.
    Left,
}

/// A form that was sent, with what is needed to draw its page again.
struct Sent {
    parts: Parts,
    fields: Fields,
}

impl Sent {
    async fn read(request: Request) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let fields = Fields::read(&parts.headers, body).await?;
        parts.method = Method::GET;
        Ok(Self { parts, fields })
    }

    /// The page again, or the way back to it.
    async fn answer(self, app: &App, person: Person, outcome: Result<Done, Refusal>) -> Response {
        let page = self.parts.uri.path().to_owned();
        let (status, posted) = match outcome {
            Ok(Done::Notice(notice)) => return back_to(&page, notice),
            Ok(Done::Left) => return back_to(link::SITES, "member_removed"),
            Ok(Done::Secret(shown)) => {
                let posted = Posted {
                    shown: Some(shown),
                    returned: None,
                };
                (StatusCode::OK, posted)
            }
            Err(refusal) => {
                let status = StatusCode::from_u16(refusal.code.status());
                let posted = Posted {
                    shown: None,
                    returned: Some(self.returned(refusal)),
                };
                (status.unwrap_or(StatusCode::BAD_REQUEST), posted)
            }
        };
        let request = Request::from_parts(self.parts, Body::empty());
        draw(app, Some(person), request, Some((status, posted))).await
    }

    /// What was typed and what is wrong with it; each fault by the field it is about.
    fn returned(&self, refusal: Refusal) -> Returned {
        let listed = refusal.details.get("faults").cloned().unwrap_or_default();
        let faults: Vec<Fault> = serde_json::from_value(listed).unwrap_or_default();
        let field = |pointer: String| match self.fields.get("form") {
            "policy" if pointer.starts_with('/') => policy_form::field_of(&pointer),
            _ => pointer.trim_start_matches('/').to_owned(),
        };
        let mut sent = self.fields.0.clone();
        // What there is by now is said with the problem: whoever sends the form again has seen it.
        if let Some(now) = refusal.details.get("was").and_then(Value::as_str) {
            sent.retain(|(name, _)| name != "was");
            sent.push(("was".to_owned(), now.to_owned()));
        }
        Returned {
            form: self.fields.get("form").to_owned(),
            fields: sent,
            faults: faults
                .into_iter()
                .map(|fault| Fault {
                    pointer: field(fault.pointer),
                    problem: fault.problem,
                })
                .collect(),
            problem: refusal.message,
        }
    }
}

/// The form's name up to its colon: `key:…` is a `key`.
fn kind_of(fields: &Fields) -> &str {
    let form = fields.get("form");
    form.split_once(':').map_or(form, |(kind, _)| kind)
}

fn no_such_form() -> Refusal {
    Refusal::new(
        Code::InvalidArguments,
        "The page sent a form that is not known here. Load it again.",
    )
}

/// `POST /people`
pub async fn people(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    FromOurPage(proof): FromOurPage,
    request: Request,
) -> Response {
    let sent = match Sent::read(request).await {
        Ok(sent) => sent,
        Err(refusal) => return No(refusal).into_response(),
    };
    let Some(person) = person else {
        return sign_in_first(link::PEOPLE);
    };
    let by = Steward::person(&person, proof);
    let outcome = keep_people(&app, &by, &sent.fields).await;
    sent.answer(&app, person, outcome).await
}

async fn keep_people(app: &App, by: &Steward, fields: &Fields) -> Result<Done, Refusal> {
    let engine = &app.engine;
    let who = PersonId::new(fields.get("person"));
    let set = |disabled| people::Change {
        disabled: Some(disabled),
        ..Default::default()
    };
    match kind_of(fields) {
        "add" => {
            let new = NewPerson {
                email: fields.get("email").to_owned(),
                name: fields.get("name").to_owned(),
                workspace_owner: !fields.get("owner").is_empty(),
                password: None,
            };
            let invited = people::invite(engine, by, new).await?;
            Ok(sign_in_link(invited.link))
        }
        "link" => Ok(sign_in_link(people::new_link(engine, by, &who).await?)),
        "change" => {
            let ticked = |field| !fields.get(field).is_empty();
            let name = fields.get("name");
            let change = people::Change {
                // Only what the person moved: a page that went stale must not give back what was taken meanwhile.
                name: Some(name.to_owned()).filter(|now| now != fields.get("wasName")),
                workspace_owner: Some(ticked("owner")).filter(|now| *now != ticked("wasOwner")),
                disabled: None,
            };
            people::change(engine, by, &who, change).await?;
            Ok(Done::Notice("saved"))
        }
        "disable" => {
            people::change(engine, by, &who, set(true)).await?;
            Ok(Done::Notice("disabled"))
        }
        "enable" => {
            people::change(engine, by, &who, set(false)).await?;
            Ok(Done::Notice("enabled"))
        }
        _ => Err(no_such_form()),
    }
}

fn sign_in_link(link: people::Link) -> Done {
    Done::Secret(Shown {
        kind: ShownKind::SignInLink,
        name: link.name,
        secret: link.url,
        expires_at: Some(link.expires_at),
    })
}

/// `POST /agents`
pub async fn agents(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    session: Option<InSession>,
    FromOurPage(proof): FromOurPage,
    request: Request,
) -> Response {
    let sent = match Sent::read(request).await {
        Ok(sent) => sent,
        Err(refusal) => return No(refusal).into_response(),
    };
    let (Some(person), Some(InSession(session))) = (person, session) else {
        return sign_in_first(link::AGENTS);
    };
    let outcome = match kind_of(&sent.fields) {
        "own_key" | "own_end" => keep_own_client(&app, &person, proof, session, &sent.fields).await,
        _ => {
            let by = Steward::person(&person, proof);
            keep_agents(&app, &person, &by, &sent.fields).await
        }
    };
    sent.answer(&app, person, outcome).await
}

async fn keep_own_client(
    app: &App,
    person: &Person,
    proof: SameOrigin,
    session: Session,
    fields: &Fields,
) -> Result<Done, Refusal> {
    let engine = &app.engine;
    if kind_of(fields) == "own_end" {
        let key = KeyId::new(fields.get("key"));
        personal_keys::end(engine, person, proof, &key).await?;
        return Ok(Done::Notice("own_key_ended"));
    }
    let made = personal_keys::make(engine, person, proof, session, fields.get("name")).await?;
    Ok(Done::Secret(Shown {
        kind: ShownKind::PersonalKey,
        name: made.key.name,
        secret: made.secret,
        expires_at: Some(made.key.expires_at),
    }))
}

async fn keep_agents(
    app: &App,
    person: &Person,
    by: &Steward,
    fields: &Fields,
) -> Result<Done, Refusal> {
    let engine = &app.engine;
    let agent = AgentId::new(fields.get("agent"));
    let set = |disabled| agents::Change {
        disabled: Some(disabled),
        ..Default::default()
    };
    match kind_of(fields) {
        "add" => {
            let owner = match fields.get("owner") {
                "" => person.id().clone(),
                named => PersonId::new(named),
            };
            let new = NewAgent {
                name: fields.get("name").to_owned(),
                sites: sites(fields)?,
                tools: tools(fields)?,
                expires_at: end(app, fields)?,
            };
            Ok(key(agents::add_by(engine, by, &owner, new).await?.key))
        }
        "key" => {
            let expires_at = end(app, fields)?;
            Ok(key(agents::new_key(engine, by, &agent, expires_at).await?))
        }
        "revoke" => {
            let key = KeyId::new(fields.get("key"));
            agents::revoke_key(engine, by, &agent, &key).await?;
            Ok(Done::Notice("key_revoked"))
        }
        "scope" => {
            let change = agents::Change {
                sites: Some(fields.all("sites").map(SiteId::new).collect()),
                tools: Some(tools(fields)?),
                disabled: None,
                only_after: Some(fields.get("was").to_owned()),
            };
            agents::change(engine, by, &agent, change).await?;
            Ok(Done::Notice("saved"))
        }
        "disable" => {
            agents::change(engine, by, &agent, set(true)).await?;
            Ok(Done::Notice("disabled"))
        }
        "enable" => {
            agents::change(engine, by, &agent, set(false)).await?;
            Ok(Done::Notice("enabled"))
        }
        _ => Err(no_such_form()),
    }
}

fn key(made: NewKey) -> Done {
    Done::Secret(Shown {
        kind: ShownKind::Key,
        name: made.agent_name,
        secret: made.secret,
        expires_at: made.expires_at,
    })
}

/// A new agent without a site could do nothing; one that has been there may be left with none.
fn sites(fields: &Fields) -> Result<Vec<SiteId>, Refusal> {
    let sites: Vec<SiteId> = fields.all("sites").map(SiteId::new).collect();
    match sites.is_empty() {
        true => Err(wrong("sites", "tick at least one site")),
        false => Ok(sites),
    }
}

/// None means every tool, which has to be said: a box that was forgotten must not give everything.
fn tools(fields: &Fields) -> Result<Vec<String>, Refusal> {
    let ticked: Vec<String> = fields.all("tools").map(str::to_owned).collect();
    match (fields.get("reach"), ticked.is_empty()) {
        ("all", _) => Ok(Vec::new()),
        (_, true) => Err(wrong(
            "tools",
            "tick at least one tool, or choose every tool",
        )),
        (_, false) => Ok(ticked),
    }
}

fn end(app: &App, fields: &Fields) -> Result<Option<Timestamp>, Refusal> {
    const DAYS_MAX: u64 = 3_650;
    let text = fields.get("ends");
    if text.is_empty() {
        return Ok(None);
    }
    let days = text.parse::<u64>().ok().filter(|days| *days <= DAYS_MAX);
    let days = days.ok_or_else(|| wrong("ends", "choose when the key ends"))?;
    let left = Duration::from_secs(days * 24 * 3600);
    Ok(Some(app.engine.now().plus(left)))
}

fn wrong(field: &str, problem: &str) -> Refusal {
    Refusal::new(
        Code::InvalidArguments,
        "Nothing was changed. See below what is missing.",
    )
    .with("faults", json!([{"pointer": field, "problem": problem}]))
}

/// `POST /sites/{slug}/settings`
pub async fn settings(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    FromOurPage(proof): FromOurPage,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    let sent = match Sent::read(request).await {
        Ok(sent) => sent,
        Err(refusal) => return No(refusal).into_response(),
    };
    let Some(person) = person else {
        return sign_in_first(&link::settings(&slug));
    };
    let site = match studio::site_of(&app.engine, &person, &slug).await {
        Ok((site, _)) => SiteId::new(site.id),
        Err(refusal) => return back_to(link::SITES, refusal.code.as_str()),
    };
    let outcome = keep_site(&app, &person, proof, &site, &sent.fields).await;
    sent.answer(&app, person, outcome).await
}

async fn keep_site(
    app: &App,
    person: &Person,
    proof: SameOrigin,
    site: &SiteId,
    fields: &Fields,
) -> Result<Done, Refusal> {
    let engine = &app.engine;
    let who = PersonId::new(fields.get("person"));
    let becomes = |seen: String| -> Result<members::Change, Refusal> {
        Ok(members::Change {
            role: Some(role(fields)?),
            groups: policy_form::words(fields.get("groups")),
            only_after: Some(seen),
        })
    };
    match kind_of(fields) {
        "add" => {
            // Whoever is a member by now keeps what they are.
            let change = becomes(seen::member(None, &[]))?;
            let email = fields.get("email");
            let left = members::add(engine, person, proof, site, email, change).await?;
            Ok(still_there(left, "member_added"))
        }
        "member" => {
            let change = becomes(fields.get("was").to_owned())?;
            let left = members::set(engine, person, proof, site, &who, change).await?;
            Ok(still_there(left, "saved"))
        }
        "remove" => {
            let off = members::Change::default();
            let left = members::set(engine, person, proof, site, &who, off).await?;
            Ok(still_there(left, "member_removed"))
        }
        "put_back" => {
            let by = Steward::person(person, proof);
            let agent = AgentId::new(fields.get("agent"));
            match agents::put_back(engine, &by, site, &agent).await {
                Ok(()) => Ok(Done::Notice("put_back")),
                // Its form went with it.
                Err(refusal) if refusal.code == Code::NotFound => Ok(Done::Notice("not_found")),
                Err(refusal) => Err(refusal),
            }
        }
        "take_off" => {
            let by = Steward::person(person, proof);
            let agent = AgentId::new(fields.get("agent"));
            agents::take_off(engine, &by, site, &agent).await?;
            Ok(Done::Notice("member_removed"))
        }
        "policy" => set_policy(app, person, proof, site, fields).await,
        "webhook" => add_webhook(app, person, proof, site, fields).await,
        "hook" => match keep_webhook(app, person, proof, site, fields).await {
            // The form that would say so went with what it was about.
            Err(refusal) if refusal.code == Code::NotFound => Ok(Done::Notice("not_found")),
            outcome => outcome,
        },
        _ => Err(no_such_form()),
    }
}

fn still_there(members: Option<Members>, notice: &'static str) -> Done {
    members.map_or(Done::Left, |_| Done::Notice(notice))
}

fn role(fields: &Fields) -> Result<Role, Refusal> {
    Role::from_text(fields.get("role")).ok_or_else(|| wrong("role", "choose a role"))
}

async fn set_policy(
    app: &App,
    person: &Person,
    proof: SameOrigin,
    site: &SiteId,
    fields: &Fields,
) -> Result<Done, Refusal> {
    let before = policies::get(&app.engine, person, site).await?;
    if canonical::text(&json!(before)) != fields.get("seen") {
        return Err(moved());
    }
    let (always, may) = (
        policies::gated_tools(&app.engine),
        policies::draft_tools(&app.engine),
    );
    let can_wait = CanWait {
        always: &always,
        may: &may,
    };
    let extra: Vec<String> = fields.all(policy_form::EXTRA).map(str::to_owned).collect();
    let not_saved = |refusal: Refusal| Refusal {
        message: "The policy was not saved: see below what is wrong. Nothing was changed."
            .to_owned(),
        ..refusal
    };
    let read = policy_form::read(&before, can_wait, &extra, |name| {
        fields.get(name).to_owned()
    });
    let policy = read.map_err(|faults| not_saved(wrong("", "").with("faults", json!(faults))))?;
    let only_after = Some(vec![before.digest()]);
    match policies::set(&app.engine, person, proof, site, policy, only_after).await {
        Ok(_) => Ok(Done::Notice("policy_saved")),
        Err(refusal) if refusal.code == Code::InvalidArguments => Err(not_saved(refusal)),
        Err(refusal) if refusal.code == Code::Conflict => Err(moved()),
        Err(refusal) => Err(refusal),
    }
}

fn moved() -> Refusal {
    Refusal::conflict(
        "Somebody changed the policy since this page was opened. What you typed is below; compare it with the rules above, and save again if it still holds.",
    )
}

async fn add_webhook(
    app: &App,
    person: &Person,
    proof: SameOrigin,
    site: &SiteId,
    fields: &Fields,
) -> Result<Done, Refusal> {
    let destination = json!({"url": fields.get("url").trim()});
    match webhooks::create(&app.engine, person, proof, site, destination).await {
        Ok(made) => Ok(webhook_secret(made)),
        Err(refusal) if refusal.code == Code::InvalidArguments => Err(Refusal {
            message: "The destination was not added: see below what is wrong.".to_owned(),
            ..refusal
        }),
        Err(refusal) => Err(refusal),
    }
}

async fn keep_webhook(
    app: &App,
    person: &Person,
    proof: SameOrigin,
    site: &SiteId,
    fields: &Fields,
) -> Result<Done, Refusal> {
    let (engine, act) = (&app.engine, fields.get("do"));
    let (id, delivery) = (fields.get("webhook"), fields.get("delivery"));
    if id.contains('\0') || delivery.contains('\0') {
        return Err(Refusal::not_found("webhook"));
    }
    let (id, delivery) = (WebhookId::new(id), DeliveryId::new(delivery));
    let sent = match act {
        "test" => webhooks::ping(engine, person, proof, site, &id).await?,
        "again" => {
            let again = webhooks::redeliver(engine, person, proof, site, &id, &delivery);
            again.await?.id
        }
        "secret" => {
            let made = webhooks::rotate_secret(engine, person, proof, site, &id).await?;
            return Ok(webhook_secret(made));
        }
        "delete" => {
            webhooks::delete(engine, person, proof, site, &id).await?;
            return Ok(Done::Notice("webhook_deleted"));
        }
        _ => return Err(no_such_form()),
    };
    let went = match webhooks::first_try(engine, person, site, &id, &sent).await {
        Ok(went) => went,
        Err(refusal) if refusal.code == Code::NotFound => return Err(refusal),
        // It was sent; only how it went cannot be read at this moment.
        Err(_) => return Ok(Done::Notice("webhook_on_its_way")),
    };
    Ok(Done::Notice(match (went.status, went.last_error) {
        (DeliveryStatus::Delivered, _) => "webhook_arrived",
        (DeliveryStatus::Waiting, None) => "webhook_on_its_way",
        (DeliveryStatus::Waiting, Some(_)) => "webhook_failed",
        (DeliveryStatus::GaveUp, _) => "webhook_gave_up",
    }))
}

fn webhook_secret(made: NewSecret) -> Done {
    Done::Secret(Shown {
        kind: ShownKind::WebhookSecret,
        name: webhooks::place(&made.webhook.url),
        secret: made.secret,
        expires_at: made.webhook.old_secret_until,
    })
}
