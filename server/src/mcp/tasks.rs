//! Tasks (2026-07-28): a call that waits, for a client that would rather hold a handle than an answer. The task is the
//! approval's record under the approval's id, so it is durable before it is told, and nothing is kept beside it.
//!
//! ```text
//! pending ─► working        approved ─► redeemed by this very tasks/get ─► completed, with the call's answer
//! withdrawn ─► cancelled    denied, expired, voided ─► completed, with an answer that is an error and says why
//! ```

use super::{handler::gone, words};
use cloudhal_domain::{
    answer::{Answer, Pending},
    approval::{ApprovalRecord, Status},
    code::{Code, Refusal},
    id::ApprovalId,
    limits,
};
use cloudhal_engine::{Engine, approvals, callers::Caller, gate::CallRequest};
use rmcp::{
    RoleServer,
    model::{
        CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, JsonObject, ProtocolVersion,
        Task, TaskPayload, TaskStatus,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use std::time::Duration;

/// A call that was being redeemed when the connection to the database broke is asked for once more at once: the record says.
const TRIES: usize = 2;

/// Whether this request may be answered with a task: the client said so in the request itself, and in the era that has them.
pub fn are_wanted(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.meta.client_capabilities();
    is_modern(context) && declared.is_some_and(|declared| declared.supports_tasks())
}

pub fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The task that stands for a call that waits. `None` where its record cannot be read just now: then the waiting answer itself
/// has all that is needed.
pub async fn instead_of(
    engine: &Engine,
    caller: &Caller,
    pending: &Pending,
) -> Option<CreateTaskResult> {
    let record = own(engine, caller, &pending.approval_id).await.ok()?;
    let message = words::task_waits(&record);
    Some(CreateTaskResult::new(
        task(&record, TaskStatus::Working).with_status_message(message),
    ))
}

/// `tasks/get`: how it stands, and where a person approved, the run itself, under the caller and through the gate.
pub async fn get(engine: &Engine, caller: &Caller, id: String) -> Result<GetTaskResult, ErrorData> {
    let id = ApprovalId::new(id);
    let mut record = own(engine, caller, &id).await?;
    for _ in 0..TRIES {
        match record.status {
            Status::Pending => return Ok(working(&record, words::task_waits(&record))),
            Status::Cancelled => return Ok(told(&record, TaskPayload::Cancelled)),
            _ => {}
        }
        let answer = on_approval(engine, caller, "approvals-resume", &id).await;
        record = own(engine, caller, &id)
            .await
            .or_else(|error| match &answer {
                // What ran is told, whatever reading it again came to.
                Answer::Ok { .. } => Ok(record),
                _ => Err(error),
            })?;
        match &answer {
            Answer::Ok { .. } => return Ok(completed(&record, &answer)),
            // Nothing ran, and the record is as it was: this is not what came of the call.
            Answer::Error { error } if record.status.is_open() => {
                return Ok(working(&record, words::task_held_up(error)));
            }
            Answer::Error { error } if !error.retryable && record.status != Status::Cancelled => {
                return Ok(completed(&record, &answer));
            }
            Answer::Error { .. } | Answer::ApprovalPending(_) => {}
        }
    }
    Err(machinery(&Refusal::new(
        Code::Unavailable,
        "How this task stands could not be told just now. Ask again in a moment: its call runs once at most.",
    )))
}

/// `tasks/cancel`: withdraws one's own request. What is over already stays as it is, which the next `tasks/get` tells.
pub async fn cancel(engine: &Engine, caller: &Caller, id: String) -> Result<(), ErrorData> {
    let id = ApprovalId::new(id);
    own(engine, caller, &id).await?;
    match on_approval(engine, caller, "approvals-cancel", &id).await {
        Answer::Error { error } if error.retryable => Err(machinery(&error)),
        _ => Ok(()),
    }
}

/// `tasks/update`: no task of ours asks for input, so whatever is sent answers nothing and is let go, as the protocol wants it.
/// Above all it is no decision.
pub async fn update(engine: &Engine, caller: &Caller, id: String) -> Result<(), ErrorData> {
    own(engine, caller, &ApprovalId::new(id)).await.map(drop)
}

/// The methods of tasks where they are served, ended by a client that hangs up.
pub async fn serve<T>(
    context: &RequestContext<RoleServer>,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    if !is_modern(context) {
        let message = "Tasks are served to clients of 2026-07-28 and later.";
        return Err(ErrorData::new(
            rmcp::model::ErrorCode::METHOD_NOT_FOUND,
            message,
            None,
        ));
    }
    tokio::select! {
        done = work => done,
        () = context.ct.cancelled() => Err(gone()),
    }
}

async fn own(
    engine: &Engine,
    caller: &Caller,
    id: &ApprovalId,
) -> Result<ApprovalRecord, ErrorData> {
    let record = approvals::wait(engine, caller, id, Duration::ZERO).await;
    record.map_err(|refusal| match refusal.code {
        Code::ApprovalNotFound => ErrorData::invalid_params(
            "There is no such task for this caller. Nothing was done. To ask anew, make the call again.",
            Some(json!({"code": Code::ApprovalNotFound})),
        ),
        _ => machinery(&refusal),
    })
}

async fn on_approval(engine: &Engine, caller: &Caller, tool: &str, id: &ApprovalId) -> Answer {
    let request = CallRequest {
        tool: tool.to_owned(),
        arguments: json!({"approvalId": id}),
        approval: None,
        reason: None,
    };
    engine.call(caller, request).await
}

fn machinery(refusal: &Refusal) -> ErrorData {
    ErrorData::internal_error(refusal.to_string(), Some(json!(refusal)))
}

fn task(record: &ApprovalRecord, status: TaskStatus) -> Task {
    let created = record.requested_at;
    let updated = record.changed_at.unwrap_or(created);
    let lives = record.expires_at.ms().saturating_sub(created.ms());
    Task::new(
        record.id.as_str(),
        status,
        created.to_string(),
        updated.to_string(),
    )
    .with_ttl_ms(u64::try_from(lives).unwrap_or(0))
    .with_poll_interval_ms(limits::POLL_AFTER_MS)
}

fn told(record: &ApprovalRecord, payload: TaskPayload) -> GetTaskResult {
    let task = task(record, payload.status());
    GetTaskResult::new(DetailedTask::new(task, payload))
}

fn working(record: &ApprovalRecord, message: String) -> GetTaskResult {
    let task = task(record, TaskStatus::Working).with_status_message(message);
    GetTaskResult::new(DetailedTask::new(task, TaskPayload::Working))
}

fn completed(record: &ApprovalRecord, answer: &Answer) -> GetTaskResult {
    let result = match json!(words::result(answer)) {
        Value::Object(result) => result,
        _ => JsonObject::new(),
    };
    told(record, TaskPayload::Completed { result })
}
