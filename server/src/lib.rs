//! The doors of Cloudhal. `routes` has the whole map on one screen; each door is a module; `command` is the command line.

pub mod command;
pub mod config;

mod listening;
pub mod routes;

pub mod agents;
pub mod mcp;

pub mod api;
pub mod people;
mod render;
pub mod studio;

pub mod live_site;

pub mod assets;
mod body;
pub mod health;
pub mod openapi;
pub mod reply;
pub mod webhooks;

use anyhow::{Context as _, Result};
use cloudhal_engine::{Engine, Settings, background, clock::Clock};
use std::sync::Arc;
use tokio::sync::watch;

/// What every door holds.
#[derive(Clone)]
pub struct App {
    pub engine: Engine,
    pub origins: Arc<config::Origins>,
    /// Turns true when the server is to stop: open streams end then.
    pub stopping: watch::Receiver<bool>,
}

/// A server that is ready to listen; the same for `main` and for every test.
pub struct Server {
    pub app: App,
    stop: watch::Sender<bool>,
}

impl Server {
    pub async fn build(config: &config::Config) -> Result<Self> {
        Self::build_with(config, clock()).await
    }

    pub async fn build_with(config: &config::Config, clock: Arc<dyn Clock>) -> Result<Self> {
        let settings = Settings {
            live_url: config.live_url.clone(),
            approval_ttl: config.approval_ttl,
            courier: webhooks::Post::allowed(&config.webhooks),
            ..Settings::for_url(&config.public_url)
        };
        let secret = config.secret()?;
        let engine = Engine::open_with(&config.database_url, settings, secret, clock)
            .await
            .context("DATABASE_URL: the database could not be opened")?;
        let (stop, stopping) = watch::channel(false);
        let origins = Arc::new(config::Origins::new(
            &config.public_url,
            config.live_url.as_deref(),
        )?);
        Ok(Self {
            app: App {
                engine,
                origins,
                stopping,
            },
            stop,
        })
    }

    /// Serves until `until` is ready, then lets open requests finish for a moment and returns.
    pub async fn serve(
        self,
        listener: tokio::net::TcpListener,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let router = routes::router(self.app.clone());
        let beside = tokio::spawn(background::run(self.app.engine.clone()));
        let stop = self.stop;
        let mut stopping = self.app.stopping.clone();
        let serving = listening::serve(listener, router, async move {
            until.await;
            let _ = stop.send(true);
        });
        let grace = async move {
            let _ = stopping.wait_for(|stopping| *stopping).await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = serving => {}
            () = grace => tracing::info!("some requests were still open at the end"),
        }
        beside.abort();
        Ok(())
    }
}

/// Long polls may be open for 45 s; a restart does not wait for them, and an agent simply asks again.
const GRACE: std::time::Duration = std::time::Duration::from_secs(2);

#[cfg(not(feature = "test-hooks"))]
fn clock() -> Arc<dyn Clock> {
    Arc::new(cloudhal_engine::clock::SystemClock)
}

#[cfg(feature = "test-hooks")]
fn clock() -> Arc<dyn Clock> {
    Arc::new(moved::FileClock)
}

/// A clock that a browser test can move: the file named by `CLOUDHAL_TEST_CLOCK` holds milliseconds to add.
#[cfg(feature = "test-hooks")]
mod moved {
    use cloudhal_domain::time::Timestamp;
    use cloudhal_engine::clock::{Clock, SystemClock};

    pub struct FileClock;

    impl Clock for FileClock {
        fn now(&self) -> Timestamp {
            self.with_shared(SystemClock.now())
        }

        fn with_shared(&self, shared: Timestamp) -> Timestamp {
            let text = std::env::var("CLOUDHAL_TEST_CLOCK")
                .ok()
                .and_then(|file| std::fs::read_to_string(file).ok());
            let moved: i64 = text.and_then(|t| t.trim().parse().ok()).unwrap_or(0);
            Timestamp(shared.ms() + moved)
        }
    }
}
