//! Completion: what a person may mean who has begun to write a site or a node.

use super::{
    prompts,
    reading::{self, Node, Site},
    resources,
};
use cloudhal_domain::{
    code::{Code, Refusal},
    limits,
};
use cloudhal_engine::{Engine, callers::Caller};
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};
use serde_json::json;

/// Pages of a site's nodes that are looked through; beyond them a person has to write more themselves.
const PAGES_MAX: usize = 5;

pub async fn complete(
    engine: &Engine,
    caller: &Caller,
    asked: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let begun = asked.argument.value.trim().to_lowercase();
    let found = match (&asked.r#ref, asked.argument.name.as_str()) {
        // A prompt takes the word that people know; an address takes the id.
        (Reference::Prompt(prompt), "site") if prompt.name == prompts::PROPOSE_CHANGE => {
            sites(engine, caller, &begun, |site| site.slug).await
        }
        (Reference::Prompt(prompt), _)
            if [prompts::PROPOSE_CHANGE, prompts::EXPLAIN_DENIAL].contains(&&*prompt.name) =>
        {
            Ok(Found::default())
        }
        (Reference::Resource(template), "site") if resources::is_template(&template.uri) => {
            sites(engine, caller, &begun, |site| site.id).await
        }
        (Reference::Resource(template), "node") if resources::is_template(&template.uri) => {
            let context = asked.context.and_then(|context| context.arguments);
            match context.as_ref().and_then(|known| known.get("site")) {
                Some(site) => nodes(engine, caller, site, &begun).await,
                None => Ok(Found::default()),
            }
        }
        (Reference::Resource(template), _) if resources::is_template(&template.uri) => {
            Ok(Found::default())
        }
        _ => {
            return Err(ErrorData::invalid_params(
                "There is no such prompt or template. prompts/list and resources/templates/list name those there are.",
                Some(json!({"code": Code::NotFound})),
            ));
        }
    };
    match found {
        Ok(found) => Ok(CompleteResult::new(found.told())),
        // What the key may not see, or is not there, completes to nothing.
        Err(refusal) if !refusal.retryable && refusal.code != Code::Internal => {
            Ok(CompleteResult::new(Found::default().told()))
        }
        Err(refusal) => Err(reading::error(&refusal)),
    }
}

#[derive(Default)]
struct Found {
    values: Vec<String>,
    /// Whether there may be more than was looked at.
    more: bool,
}

impl Found {
    fn told(mut self) -> CompletionInfo {
        let all = self.values.len();
        self.values.truncate(CompletionInfo::MAX_VALUES);
        let total = (!self.more).then(|| u32::try_from(all).unwrap_or(u32::MAX));
        let more = self.more || all > CompletionInfo::MAX_VALUES;
        // It fails for too many values alone, and there are no more than may be.
        CompletionInfo::with_pagination(self.values, total, more).unwrap_or_default()
    }
}

async fn sites(
    engine: &Engine,
    caller: &Caller,
    begun: &str,
    value: impl Fn(Site) -> String,
) -> Result<Found, Refusal> {
    let all = reading::sites(engine, caller).await?;
    let meant = all
        .into_iter()
        .filter(|site| is_meant(begun, &site.id, &site.slug, &site.title));
    Ok(Found {
        values: meant.map(value).collect(),
        more: false,
    })
}

async fn nodes(
    engine: &Engine,
    caller: &Caller,
    site: &str,
    begun: &str,
) -> Result<Found, Refusal> {
    let mut found = Found::default();
    let mut cursor: Option<String> = None;
    let limit = usize::try_from(limits::PAGE_ITEMS_MAX).unwrap_or(1);
    for _ in 0..PAGES_MAX {
        let page = reading::nodes(engine, caller, site, cursor.as_deref(), limit).await?;
        let meant = |node: &Node| is_meant(begun, &node.id, &node.path, &node.title);
        let meant = page.items.into_iter().filter(meant);
        found.values.extend(meant.map(|node| node.id));
        cursor = page.next_cursor;
        found.more = cursor.is_some();
        if !found.more || found.values.len() > CompletionInfo::MAX_VALUES {
            break;
        }
    }
    Ok(found)
}

/// An id by its beginning; an address or a title by any part.
fn is_meant(begun: &str, id: &str, address: &str, title: &str) -> bool {
    id.starts_with(begun)
        || address.to_lowercase().contains(begun)
        || title.to_lowercase().contains(begun)
}
