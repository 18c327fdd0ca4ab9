//! `/api/sites/{site}/policy`: what approvals of a site take. Each answer names its policy by an entity tag, and whoever sets
//! another one may say by `If-Match` over which (RFC 9110 §13.1.1).

use crate::{
    App,
    people::{FromOurPage, SignedIn},
    reply::No,
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, header},
};
use cloudhal_domain::{
    code::{Code, Refusal},
    digest::Digest,
    id::SiteId,
    policy::Policy,
};
use cloudhal_engine::policies;

/// A policy and the tag that names it.
pub type Tagged = ([(HeaderName, String); 1], Json<Policy>);

fn tagged(policy: Policy) -> Tagged {
    let tag = format!("\"{}\"", policy.digest());
    ([(header::ETAG, tag)], Json(policy))
}

/// `GET /api/sites/{site}/policy`
pub async fn get(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path(site): Path<String>,
) -> Result<Tagged, No> {
    let policy = policies::get(&app.engine, &person, &SiteId::new(site)).await?;
    Ok(tagged(policy))
}

/// `PUT /api/sites/{site}/policy`: the whole of it, by an owner of the site; with `If-Match`, only over a policy that it names.
pub async fn set(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(site): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Tagged, No> {
    let body = crate::agents::read_body(body).await?;
    let only_after = if_match(&headers)?;
    let site = SiteId::new(site);
    let policy = policies::set(&app.engine, &person, proof, &site, body, only_after).await?;
    Ok(tagged(policy))
}

/// What `If-Match` names; `None` where there is none, and for `*`, since a site always has a policy.
fn if_match(headers: &HeaderMap) -> Result<Option<Vec<Digest>>, Refusal> {
    let mut lines = headers.get_all(header::IF_MATCH).iter().peekable();
    if lines.peek().is_none() {
        return Ok(None);
    }
    let lines: Vec<&str> = lines
        .map(|line| line.to_str().unwrap_or_default())
        .collect();
    match lines.join(",").trim() {
        "*" => Ok(None),
        list => tags(list).map(Some).ok_or_else(|| {
            Refusal::new(
                Code::InvalidArguments,
                "If-Match takes the ETag of an earlier answer as it stood there, in its quotation marks. Nothing was changed.",
            )
        }),
    }
}

/// The strong tags of a list; a weak one names nothing here. `None` where it is no such list, or an empty one.
fn tags(list: &str) -> Option<Vec<Digest>> {
    let mut strong = Vec::new();
    for tag in list.split(',').map(str::trim) {
        let (weak, tag) = match tag.strip_prefix("W/") {
            Some(tag) => (true, tag),
            None => (false, tag),
        };
        let tag = tag.strip_prefix('"')?.strip_suffix('"')?;
        if tag.contains('"') {
            return None;
        }
        if !weak {
            strong.push(Digest::from_text(tag));
        }
    }
    Some(strong)
}
