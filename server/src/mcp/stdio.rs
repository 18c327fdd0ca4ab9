//! `cloudhal mcp`: the same protocol over standard input and output, for the person at whose machine it runs.
//!
//! A message is a line. Each is read as a body of `/mcp` is, by [`message`]; what is no message gets an answer and ends nothing
//! (guide to cases: C66). When the input ends, what was asked is still answered.

use super::{
    handler::Handler,
    message::{self, Answers, Unreadable},
};
use cloudhal_domain::limits;
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{collections::HashSet, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::{Mutex, mpsc, watch},
    time::timeout,
};

/// Lines that wait to be written; a client that reads none of them is not read from either.
const UNWRITTEN_MAX: usize = 64;

/// How long what was asked has to be answered once the input has ended: the longest wait that there is, and a little.
const LAST_WAIT: Duration = Duration::from_secs(limits::WAIT_SECONDS_MAX + 5);

/// Serves until the input ends and every request has its answer.
pub async fn serve<R, W>(handler: Handler, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (out, lines) = mpsc::channel(UNWRITTEN_MAX);
    let writing = tokio::spawn(write(lines, output));
    let wire = Wire {
        input: Arc::new(Mutex::new(Input::new(input))),
        out,
        traffic: Arc::new(watch::Sender::default()),
        over: Arc::new(watch::Sender::new(false)),
    };
    // A stream that is open ends with the input, and holds up nothing.
    let handler = handler.ending_with(wire.over.subscribe());
    // A client that begins with something else than a beginning is told so, and may begin again.
    while !*wire.over.borrow() && !wire.out.is_closed() {
        match handler.clone().serve(wire.clone()).await {
            Ok(running) => {
                let _ = running.waiting().await;
                break;
            }
            Err(error) => {
                tracing::debug!(%error, "the client did not begin as the protocol has it")
            }
        }
    }
    drop(wire);
    writing.await.map_err(io::Error::other)?
}

async fn write<W>(mut lines: mpsc::Receiver<Vec<u8>>, mut output: W) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        output.write_all(&line).await?;
        output.flush().await?;
    }
    Ok(())
}

/// Both directions, as `rmcp` wants them.
struct Wire<R> {
    input: Arc<Mutex<Input<R>>>,
    out: mpsc::Sender<Vec<u8>>,
    traffic: Arc<watch::Sender<Traffic>>,
    /// The input has ended.
    over: Arc<watch::Sender<bool>>,
}

impl<R> Clone for Wire<R> {
    fn clone(&self) -> Self {
        Self {
            input: self.input.clone(),
            out: self.out.clone(),
            traffic: self.traffic.clone(),
            over: self.over.clone(),
        }
    }
}

/// What is under way in both directions.
#[derive(Default)]
struct Traffic {
    /// Requests of the client's that will have an answer.
    open: HashSet<RequestId>,
    /// What the client was asked and has not answered.
    asked: HashSet<RequestId>,
}

impl Traffic {
    /// A request that the client cancels has no answer any more.
    fn heard(&mut self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.open.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                }
            }
            answer => take(&mut self.asked, answered(answer)),
        }
    }

    fn said(&mut self, message: &TxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.asked.insert(request.id.clone());
            }
            answer => take(&mut self.open, answered(answer)),
        }
    }
}

fn answered<Q, A, N>(message: &JsonRpcMessage<Q, A, N>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(answer) => Some(&answer.id),
        JsonRpcMessage::Error(answer) => answer.id.as_ref(),
        _ => None,
    }
}

fn take(from: &mut HashSet<RequestId>, id: Option<&RequestId>) {
    if let Some(id) = id {
        from.remove(id);
    }
}

impl<R> Wire<R> {
    /// After the end of the input: whoever was asked never answers, and what was asked of us is answered first.
    async fn last_words(&self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.over.send_replace(true);
        let mut traffic = self.traffic.subscribe();
        let done = |traffic: &Traffic| traffic.open.is_empty() || !traffic.asked.is_empty();
        let _ = timeout(LAST_WAIT, traffic.wait_for(done)).await;
        let mut unanswered = None;
        self.traffic.send_if_modified(|traffic| {
            unanswered = traffic.asked.iter().next().cloned();
            unanswered
                .as_ref()
                .is_some_and(|id| traffic.asked.remove(id))
        });
        let nobody = ErrorData::internal_error("The input has ended: nobody answers.", None);
        unanswered.map(|id| JsonRpcMessage::error(nobody, Some(id)))
    }
}

impl<R> Transport<RoleServer> for Wire<R>
where
    R: AsyncRead + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (out, traffic) = (self.out.clone(), self.traffic.clone());
        async move {
            let line = serde_json::to_vec(&message)?;
            let sent = out.send(line).await;
            traffic.send_modify(|traffic| traffic.said(&message));
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
        }
    }

    /// May be dropped at any await: a line half read stays where it is, and an answer is sent in one step.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let room = self.out.reserve().await.ok()?;
            let mut input = self.input.lock().await;
            let read = match input.line().await {
                Line::Whole(line) => message::read(&line, Answers::Taken),
                Line::TooLong => Err(Unreadable::too_long()),
                Line::Over => {
                    drop((room, input));
                    return self.last_words().await;
                }
            };
            let message = read.and_then(|value| {
                serde_json::from_value(value).map_err(|_| Unreadable::of_no_known_shape())
            });
            match message {
                Ok(message) => {
                    self.traffic.send_modify(|traffic| traffic.heard(&message));
                    return Some(message);
                }
                Err(unreadable) => room.send(unreadable.to_json().to_string().into_bytes()),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
    Over,
}

/// Lines of at most the size of a body.
struct Input<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Input<R> {
    fn new(reader: R) -> Self {
        Self {
            reader: BufReader::new(reader),
            line: Vec::new(),
            too_long: false,
        }
    }

    /// The next line that holds anything, without its end. What stands after the last end of line is a line as well.
    async fn line(&mut self) -> Line {
        loop {
            let Ok(some) = self.reader.fill_buf().await else {
                return Line::Over;
            };
            let end = some.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(some.len(), |at| at + 1);
            if !self.too_long {
                self.line.extend_from_slice(&some[..taken]);
            }
            let (ended, over) = (end.is_some(), some.is_empty());
            self.reader.consume(taken);
            if self.line.len() > limits::BODY_BYTES_MAX {
                self.line = Vec::new();
                self.too_long = true;
            }
            if !ended && !over {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.too_long) {
                return Line::TooLong;
            }
            if !line.trim_ascii().is_empty() {
                return Line::Whole(line.trim_ascii().to_vec());
            }
            if over {
                return Line::Over;
            }
        }
    }
}
