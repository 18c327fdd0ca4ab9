//! `notifications/progress` while a call waits, for a client that gave a token: it learns that the wait goes on, and sets its
//! own timer back. A call that is answered sooner has none, and its answer stays plain JSON.

use super::handler::gone;
use rmcp::{
    RoleServer,
    model::{ErrorData, ProgressNotificationParam},
    service::RequestContext,
};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Waits for `answer`, which a client that hangs up or cancels ends; `expected` is how long it may take at most, where known.
pub async fn told<T>(
    context: &RequestContext<RoleServer>,
    every: Duration,
    expected: Option<Duration>,
    answer: impl Future<Output = T>,
) -> Result<T, ErrorData> {
    let token = context.meta.get_progress_token();
    let mut answer = std::pin::pin!(answer);
    let mut tick = interval_at(Instant::now() + every, every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = Duration::ZERO;
    loop {
        tokio::select! {
            answer = &mut answer => {
                if let (Some(token), false) = (token.clone(), told.is_zero()) {
                    let all = expected.filter(|expected| *expected > told).unwrap_or(told + every);
                    let all = all.as_secs_f64();
                    let last = ProgressNotificationParam::new(token, all).with_total(all);
                    // Whoever does not hear it hears the answer, or nothing more.
                    let _ = context.peer.notify_progress(last.with_message("Done.")).await;
                }
                return Ok(answer);
            }
            () = context.ct.cancelled() => return Err(gone()),
            _ = tick.tick(), if token.is_some() => {}
        }
        let Some(token) = token.clone() else { continue };
        told += every;
        let mut note = ProgressNotificationParam::new(token, told.as_secs_f64())
            .with_message("Still waiting.");
        if let Some(expected) = expected.filter(|expected| *expected > told) {
            note = note.with_total(expected.as_secs_f64());
        }
        tokio::select! {
            _ = context.peer.notify_progress(note) => {}
            () = context.ct.cancelled() => return Err(gone()),
        }
    }
}
