//! `/api/people`: accounts, for owners of the workspace.

use super::read;
use crate::{
    App,
    people::{FromOurPage, SignedIn},
    reply::No,
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::{HeaderName, HeaderValue, header},
};
use cloudhal_domain::{code::Refusal, id::PersonId, view::Account};
use cloudhal_engine::{
    authority::Steward,
    people::{self, Change, Link, NewPerson},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// An answer with a secret in it: no cache on the way keeps it.
pub type Unkept = ([(HeaderName, HeaderValue); 1], Json<Value>);

pub fn unkept(answer: Value) -> Unkept {
    let never = HeaderValue::from_static("no-store");
    ([(header::CACHE_CONTROL, never)], Json(answer))
}

/// `GET /api/people`
pub async fn list(State(app): State<App>, SignedIn(person): SignedIn) -> Result<Json<Value>, No> {
    let items = people::list(&app.engine, &person).await?;
    Ok(Json(json!({"items": items, "nextCursor": null})))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct New {
    email: String,
    name: String,
    #[serde(default)]
    workspace_owner: bool,
}

/// `POST /api/people`: an account and a link that signs in once, told this once.
pub async fn add(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    body: Body,
) -> Result<Unkept, No> {
    let body = crate::agents::read_body(body).await?;
    expect_owner(&person)?;
    let shape = r#"{"email": "…", "name": "…", "workspaceOwner": true | false}"#;
    let new: New = read(body, shape)?;
    let new = NewPerson {
        email: new.email,
        name: new.name,
        workspace_owner: new.workspace_owner,
        password: None,
    };
    let invited = people::invite(&app.engine, &Steward::person(&person, proof), new).await?;
    let mut answer = link(invited.link);
    answer["person"] = json!(invited.account);
    Ok(unkept(answer))
}

/// Before a body is looked at, so that whoever may not is told that alone. The unit that changes something asks again.
fn expect_owner(person: &people::Person) -> Result<(), Refusal> {
    match person.is_workspace_owner() {
        true => Ok(()),
        false => Err(people::owners_only()),
    }
}

fn link(link: Link) -> Value {
    json!({"signInLink": link.url, "expiresAt": link.expires_at})
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Changes {
    name: Option<String>,
    workspace_owner: Option<bool>,
    disabled: Option<bool>,
}

/// `PATCH /api/people/{person}`: what is not named stays.
pub async fn change(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(who): Path<String>,
    body: Body,
) -> Result<Json<Account>, No> {
    let body = crate::agents::read_body(body).await?;
    expect_owner(&person)?;
    let shape =
        r#"{"name": "…", "workspaceOwner": true | false, "disabled": true | false}, each optional"#;
    let changes: Changes = read(body, shape)?;
    let change = Change {
        name: changes.name,
        workspace_owner: changes.workspace_owner,
        disabled: changes.disabled,
    };
    let by = Steward::person(&person, proof);
    let account = people::change(&app.engine, &by, &PersonId::new(who), change).await?;
    Ok(Json(account))
}

/// `POST /api/people/{person}/sign-in-link`: a further one, told this once; the one before ends.
pub async fn new_link(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(who): Path<String>,
) -> Result<Unkept, No> {
    let by = Steward::person(&person, proof);
    let made = people::new_link(&app.engine, &by, &PersonId::new(who)).await?;
    Ok(unkept(link(made)))
}
