//! How every door reads a body: within the limit, in time, and so that whoever sends too much gets to see our answer.

use axum::body::Body;
use cloudhal_domain::{
    code::{Code, Refusal},
    limits,
};
use futures::StreamExt as _;
use std::time::Duration;

/// A body of 256 KiB that takes longer is held open on purpose.
const WAIT: Duration = Duration::from_secs(30);
/// How much of a body that is too large is read and thrown away, and for how long: a connection that closes while its peer
/// still sends shows the peer a broken pipe and not our answer.
const DRAIN_BYTES_MAX: usize = 8 * 1024 * 1024;
const DRAIN_WAIT: Duration = Duration::from_millis(500);

/// The whole body, or why not.
pub async fn whole(body: Body) -> Result<Vec<u8>, Refusal> {
    let malformed =
        |words: &str| Refusal::new(Code::Malformed, format!("{words} Nothing was done."));
    match tokio::time::timeout(WAIT, read(body)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err(Refusal::new(
            Code::PayloadTooLarge,
            format!(
                "The body is larger than {} bytes. Nothing was done.",
                limits::BODY_BYTES_MAX
            ),
        )),
        Ok(Err(_)) => Err(malformed("The body ended early.")),
        Err(_) => Err(malformed("The body took too long.")),
    }
}

/// `None` where it is too large.
async fn read(body: Body) -> Result<Option<Vec<u8>>, axum::Error> {
    let mut chunks = body.into_data_stream();
    let mut kept = Vec::new();
    while let Some(chunk) = chunks.next().await {
        kept.extend_from_slice(&chunk?);
        if kept.len() > limits::BODY_BYTES_MAX {
            let drain = async {
                let mut drained = 0;
                while let Some(Ok(chunk)) = chunks.next().await {
                    drained += chunk.len();
                    if drained > DRAIN_BYTES_MAX {
                        break;
                    }
                }
            };
            let _ = tokio::time::timeout(DRAIN_WAIT, drain).await;
            return Ok(None);
        }
    }
    Ok(Some(kept))
}
