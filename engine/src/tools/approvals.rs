//! `approvals-get`, `approvals-resume`, `approvals-cancel`: the caller's own waiting calls. None of them decides anything.

use super::{Describe, ReadTool};
use crate::{Engine, approvals, callers::Caller, gate};
use async_trait::async_trait;
use cloudhal_domain::{answer::Answer, code::Refusal, id::ApprovalId, limits, tool::Annotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

pub struct Get;
pub struct Resume;
pub struct Cancel;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetArgs {
    /// The id from an approval_pending answer.
    #[schemars(with = "String")]
    approval_id: ApprovalId,
    /// Wait up to this many seconds for a decision before answering.
    #[serde(default)]
    #[schemars(range(min = 0, max = 45))]
    wait_seconds: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct IdArgs {
    /// The id from an approval_pending answer.
    #[schemars(with = "String")]
    approval_id: ApprovalId,
}

/// The record, as CONTRACT §2 describes it.
#[derive(Serialize, JsonSchema)]
pub struct Record {
    id: String,
    /// `pending`, `approved`, `denied`, `expired`, `voided`, `cancelled` or `redeemed`.
    status: String,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

/// Whatever the stored call returns.
#[derive(Serialize, JsonSchema)]
pub struct Anything {
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

impl Describe for Get {
    type Args = GetArgs;
    type Output = Record;
    const ID: &'static str = "approvals-get";
    const TITLE: &'static str = "Look at an approval";
    const DESCRIPTION: &'static str = "Reads one of your own approvals in any status; with waitSeconds (up to 45) it answers as soon as a person decides. It never runs anything: once approved, repeat your call with approvalId, or use approvals_resume.";
    const ANNOTATIONS: Annotations = Annotations::READ;
}

#[async_trait]
impl ReadTool for Get {
    async fn run(engine: &Engine, caller: &Caller, args: GetArgs) -> Result<Value, Refusal> {
        let wait = Duration::from_secs(args.wait_seconds.min(limits::WAIT_SECONDS_MAX));
        let record = approvals::wait(engine, caller, &args.approval_id, wait).await?;
        Ok(json!(record))
    }
}

impl Describe for Resume {
    type Args = IdArgs;
    type Output = Anything;
    const ID: &'static str = "approvals-resume";
    const TITLE: &'static str = "Run an approved call";
    const DESCRIPTION: &'static str = "Runs the stored call of one of your own approvals once a person approved it, exactly as it was asked, exactly once. Answers approval_pending while it waits; repeating it after it ran returns the stored result.";
    const ANNOTATIONS: Annotations = Annotations {
        read_only_hint: false,
        destructive_hint: true,
        idempotent_hint: true,
        open_world_hint: false,
    };
}

/// The stored call's own answer.
pub(crate) async fn resume(
    engine: &Engine,
    caller: &Caller,
    args: Value,
) -> Result<Answer, Refusal> {
    let args: IdArgs = super::typed(args)?;
    gate::resume(engine, caller, &args.approval_id).await
}

impl Describe for Cancel {
    type Args = IdArgs;
    type Output = Record;
    const ID: &'static str = "approvals-cancel";
    const TITLE: &'static str = "Withdraw an approval request";
    const DESCRIPTION: &'static str = "Withdraws one of your own requests that waits or was approved and not yet run. Nothing will run for it any more.";
    const ANNOTATIONS: Annotations = Annotations {
        read_only_hint: false,
        destructive_hint: false,
        idempotent_hint: true,
        open_world_hint: false,
    };
}

#[async_trait]
impl ReadTool for Cancel {
    async fn run(engine: &Engine, caller: &Caller, args: IdArgs) -> Result<Value, Refusal> {
        let record = approvals::cancel(engine, caller, &args.approval_id).await?;
        Ok(json!(record))
    }
}
