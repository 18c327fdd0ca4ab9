//! `/api/agents`: agents, their scopes and their keys, for the people who keep them.

use super::{
    people::{Unkept, unkept},
    read,
};
use crate::{
    App,
    people::{FromOurPage, SignedIn},
    reply::No,
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
};
use cloudhal_domain::{
    id::{AgentId, KeyId, PersonId, SiteId},
    time::Timestamp,
    view::AgentRow,
};
use cloudhal_engine::{
    agents::{self, Change, NewAgent, NewKey},
    authority::Steward,
    studio,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// `GET /api/agents`: one's own, or all of them for an owner of the workspace.
pub async fn list(State(app): State<App>, SignedIn(person): SignedIn) -> Result<Json<Value>, No> {
    let items = studio::agents_kept(&app.engine, &person).await?;
    Ok(Json(json!({"items": items, "nextCursor": null})))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct New {
    name: String,
    sites: Vec<SiteId>,
    #[serde(default)]
    tools: Vec<String>,
    owner: Option<PersonId>,
    expires_at: Option<Timestamp>,
}

/// `POST /api/agents`: an agent and its first key, told this once.
pub async fn add(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    body: Body,
) -> Result<Unkept, No> {
    let body = crate::agents::read_body(body).await?;
    let shape = r#"{"name": "…", "sites": […], "tools": […], "owner": "…", "expiresAt": "…"}, of which name and sites must be there"#;
    let new: New = read(body, shape)?;
    let owner = new.owner.unwrap_or_else(|| person.id().clone());
    let made = agents::add_by(
        &app.engine,
        &Steward::person(&person, proof),
        &owner,
        NewAgent {
            name: new.name,
            sites: new.sites,
            tools: new.tools,
            expires_at: new.expires_at,
        },
    )
    .await?;
    let mut answer = key(made.key);
    answer["agent"] = json!(made.agent);
    Ok(unkept(answer))
}

fn key(made: NewKey) -> Value {
    json!({"id": made.id, "key": made.secret, "expiresAt": made.expires_at})
}

/// `GET /api/agents/{agent}`
pub async fn get(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path(agent): Path<String>,
) -> Result<Json<AgentRow>, No> {
    let agent = AgentId::new(agent);
    Ok(Json(studio::agent(&app.engine, &person, &agent).await?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Changes {
    sites: Option<Vec<SiteId>>,
    tools: Option<Vec<String>>,
    disabled: Option<bool>,
}

/// `PATCH /api/agents/{agent}`: what is not named stays; no tools named means every tool.
pub async fn change(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(agent): Path<String>,
    body: Body,
) -> Result<Json<AgentRow>, No> {
    let body = crate::agents::read_body(body).await?;
    let agent = AgentId::new(agent);
    studio::agent(&app.engine, &person, &agent).await?;
    let shape = r#"{"sites": […], "tools": […], "disabled": true | false}, each optional"#;
    let changes: Changes = read(body, shape)?;
    let change = Change {
        sites: changes.sites,
        tools: changes.tools,
        disabled: changes.disabled,
        only_after: None,
    };
    let by = Steward::person(&person, proof);
    Ok(Json(
        agents::change(&app.engine, &by, &agent, change).await?,
    ))
}

/// `GET /api/agents/{agent}/keys`
pub async fn keys(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path(agent): Path<String>,
) -> Result<Json<Value>, No> {
    let row = studio::agent(&app.engine, &person, &AgentId::new(agent)).await?;
    Ok(Json(json!({"items": row.keys, "nextCursor": null})))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewEnd {
    expires_at: Option<Timestamp>,
}

/// `POST /api/agents/{agent}/keys`: a further key, told this once.
pub async fn new_key(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(agent): Path<String>,
    body: Body,
) -> Result<Unkept, No> {
    let body = crate::agents::read_body(body).await?;
    let agent = AgentId::new(agent);
    studio::agent(&app.engine, &person, &agent).await?;
    let NewEnd { expires_at } = read(
        body,
        r#"{"expiresAt": "…"}, or {} for a key without an end"#,
    )?;
    let by = Steward::person(&person, proof);
    let made = agents::new_key(&app.engine, &by, &agent, expires_at).await?;
    Ok(unkept(key(made)))
}

/// `DELETE /api/agents/{agent}/keys/{key}`: its next call is refused.
pub async fn revoke_key(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((agent, key)): Path<(String, String)>,
) -> Result<Json<Value>, No> {
    let by = Steward::person(&person, proof);
    let agent = AgentId::new(agent);
    let row = agents::revoke_key(&app.engine, &by, &agent, &KeyId::new(key)).await?;
    Ok(Json(json!({"items": row.keys, "nextCursor": null})))
}

/// `GET /api/sites/{site}/agents`: who works on a site, for its members.
pub async fn of_site(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path(site): Path<String>,
) -> Result<Json<Value>, No> {
    let items = studio::site_agents(&app.engine, &person, &SiteId::new(site)).await?;
    Ok(Json(json!({"items": items, "nextCursor": null})))
}

/// `DELETE /api/sites/{site}/agents/{agent}`: takes it off the site, by an owner of the site or of the agent.
pub async fn take_off(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((site, agent)): Path<(String, String)>,
) -> Result<Json<Value>, No> {
    let by = Steward::person(&person, proof);
    let site = SiteId::new(site);
    let items = agents::take_off(&app.engine, &by, &site, &AgentId::new(agent)).await?;
    Ok(Json(json!({"items": items, "nextCursor": null})))
}
