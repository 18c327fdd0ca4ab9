//! Accepts connections and serves HTTP/1.1 on them. `axum::serve` would also ask each whether it speaks HTTP/2, which doubles what
//! its read buffer takes while an agent waits, and sets no end to a header that never ends.

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use std::{io, net::SocketAddr, pin::pin, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;

/// For the whole header of a request, from the end of the one before: longer than clients keep a connection that they do not use,
/// so that it is they who close it.
const HEADER: Duration = Duration::from_secs(120);
/// When the system has no more file descriptors, for instance.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// Serves until `until` is ready, and then until no request is open.
pub async fn serve(listener: TcpListener, router: Router, until: impl Future<Output = ()>) {
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER);
    let mut until = pin!(until);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut until => break,
        };
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request.map(Body::new))
        });
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::trace!(%error, %peer, "a connection ended");
            }
        });
    }
    drop(listener);
    open.shutdown().await;
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and somebody waits for each; without it they are only later.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) if of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted just now");
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
        }
    }
}

fn of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
