//! A person's own click: the same gated effects, run at once and journaled (DESIGN §4, rule 2).

use crate::{
    Engine,
    approvals::run_effect,
    authority::{Author, Authority, Direct},
    journal::{self, Entry},
    people::{self, Person},
    sites::LockedSite,
    store::Fail,
    tools::Run,
};
use cloudhal_domain::{
    code::{Code, Refusal},
    digest,
    origin::SameOrigin,
    tool::Surface,
};
use serde_json::{Value, json};

/// Runs a gated tool by hand. `seen_state` is the site's state as the page showed it; another one decides nothing.
pub async fn act(
    engine: &Engine,
    person: &Person,
    proof: SameOrigin,
    tool: &str,
    arguments: Value,
    seen_state: &str,
) -> Result<Value, Refusal> {
    let tool = engine.tools().get(tool)?;
    let Run::Gated(gated) = &tool.run else {
        return Err(Refusal::new(
            Code::UnknownTool,
            "Only gated tools are run by hand this way.",
        ));
    };
    let arguments = tool.parse(arguments)?;
    let (gated, site_id, id) = (gated.clone(), gated.site(&arguments)?, tool.spec.id);
    let (person, seen_state) = (person.clone(), seen_state.to_owned());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let mut site = LockedSite::expect(tx, &site_id).await?;
            let now = site.now();
            let role = people::role_now(tx, person.id(), site_id.as_str()).await?.ok_or_else(|| Fail::from(Refusal::not_found("site")))?;
            let authority = Authority::Direct(Direct::new(&person, role, proof)?);
            if site.row().state_hash != seen_state {
                return Err(Refusal::new(Code::StaleView, "The site changed since the page was loaded. Nothing was done. Look again.").into());
            }
            let args_hash = digest::of_arguments(&arguments);
            let receipt = run_effect(tx, &mut site, &*gated, &authority, arguments, now).await?;
            if let Some(refusal) = receipt.error {
                return Err(refusal.into());
            }
            let by = Author::person(&person);
            let body = json!({"tool": id, "surface": Surface::Direct.as_str(), "argsHash": args_hash, "stateHash": seen_state});
            journal::site(tx, site_id.as_str(), now, Entry { kind: "tool.ran", actor: &by, approval: None, body }).await?;
            site.finish(tx, &by).await?;
            Ok(receipt.result.unwrap_or(Value::Null))
        })
    });
    Ok(unit.await?)
}
