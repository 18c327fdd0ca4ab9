//! Pages are rendered on threads of their own, each page on one alone.
//!
//! A page's signals and memos are read by several tasks. On a runtime with many threads two of them can meet in one memo
//! while it computes, and the page ends in a panic (seen under load). On a current-thread runtime a page's tasks take turns.

use axum::{
    body::{Body, to_bytes},
    response::{IntoResponse, Response},
};
use cloudhal_domain::code::{Code, Refusal};
use futures::{FutureExt as _, future::LocalBoxFuture};
use std::{
    panic::AssertUnwindSafe,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::{mpsc, oneshot};

type Job = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

static WORKERS: LazyLock<Vec<mpsc::UnboundedSender<Job>>> = LazyLock::new(|| {
    let count = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .max(2);
    (0..count).filter_map(|_| worker()).collect()
});
static NEXT: AtomicUsize = AtomicUsize::new(0);

fn worker() -> Option<mpsc::UnboundedSender<Job>> {
    let (jobs, mut queue) = mpsc::unbounded_channel::<Job>();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let run = move || {
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async move {
            while let Some(job) = queue.recv().await {
                tokio::task::spawn_local(job());
            }
        });
    };
    std::thread::Builder::new()
        .name("render".into())
        .spawn(run)
        .ok()?;
    Some(jobs)
}

/// Runs one page's rendering to its end, body included.
pub async fn whole<F>(page: impl FnOnce() -> F + Send + 'static) -> Response
where
    F: Future<Output = Response> + 'static,
{
    let (answer, answered) = oneshot::channel();
    let job: Job = Box::new(move || {
        Box::pin(async move {
            let rendered = async move {
                let (parts, body) = page().await.into_parts();
                let bytes = to_bytes(body, usize::MAX).await;
                bytes.map(|bytes| Response::from_parts(parts, Body::from(bytes)))
            };
            let out = AssertUnwindSafe(rendered).catch_unwind().await;
            let _ = answer.send(out.ok().and_then(Result::ok));
        })
    });
    let at = NEXT.fetch_add(1, Ordering::Relaxed);
    let sent = WORKERS
        .get(at % WORKERS.len().max(1))
        .is_some_and(|worker| worker.send(job).is_ok());
    match answered.await {
        Ok(Some(response)) if sent => response,
        _ => crate::reply::No(Refusal::new(
            Code::Internal,
            "The page could not be made. Nothing was changed. Load it again.",
        ))
        .into_response(),
    }
}
