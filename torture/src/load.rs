//! Agents that edit, ask, wait, redeem and repeat, and people who decide, against nodes that come and go. They never give up:
//! what gets no answer is repeated, as an agent is told to.

use crate::{
    clients::{Agent, Door, Person, word},
    context::Context,
    report::Report,
    trace::Got,
    world::World,
};
use anyhow::{Result, bail};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
    time::sleep,
};

const AFTER_NO_ANSWER: Duration = Duration::from_millis(5);
/// One decision in this many is a denial.
const DENIED_ONE_IN: u32 = 10;

pub struct Load {
    stop: Arc<AtomicBool>,
    clients: JoinSet<Result<()>>,
}

/// A request that waits for a decision: site and approval.
type Asked = (String, String);

impl Load {
    /// Every agent of the world, each at a door of its own, and every person. The people sign in at once, so a node must serve.
    pub async fn start(context: &Context, world: &World) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        let (ask, asked) = mpsc::unbounded_channel();
        let asked = Arc::new(Mutex::new(asked));
        for which in 0..world.links.len() {
            let person = Person::sign_in(world, which).await?.traced(world)?;
            let rng = context.rng(1_000 + which as u64);
            clients.spawn(decide(person, asked.clone(), rng, stop.clone()));
        }
        for (at, key) in world.agents.iter().enumerate() {
            let door = Door::ALL[at % Door::ALL.len()];
            let agent = Agent::new(world, key, door).traced(world)?;
            clients.spawn(work(
                agent,
                ask.clone(),
                context.rng(at as u64),
                stop.clone(),
            ));
        }
        Ok(Self { stop, clients })
    }

    /// Lets every client finish what it is at, and reports whoever was told what nobody should be. A node must serve.
    pub async fn stop(mut self, report: &mut Report) -> Result<()> {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.clients.join_next().await {
            if let Err(error) = ended? {
                report.fault(format!("a client stopped: {error:#}"));
            }
        }
        Ok(())
    }
}

async fn work(
    mut agent: Agent,
    ask: mpsc::UnboundedSender<Asked>,
    mut rng: fastrand::Rng,
    stop: Arc<AtomicBool>,
) -> Result<()> {
    let mut round = 0u64;
    while !stop.load(Ordering::SeqCst) {
        round += 1;
        if rng.f32() < 0.5 {
            let text = format!("{} {round} {}", agent.key.name, rng.u32(..));
            let _ = agent.edit(&text).await;
        }
        let Ok(asked) = agent.ask().await else {
            sleep(AFTER_NO_ANSWER).await;
            continue;
        };
        let Some(id) = asked.body["approvalId"].as_str().map(str::to_owned) else {
            check_typed(&asked, &["unavailable", "too_many_pending"])?;
            sleep(AFTER_NO_ANSWER).await;
            continue;
        };
        let _ = ask.send((agent.key.site.clone(), id.clone()));
        if !until_decided(&mut agent, &id, &stop).await? {
            continue;
        }
        redeem(&mut agent, &id, &stop).await?;
        if rng.bool() {
            let _ = agent.redeem(&id).await;
        }
    }
    Ok(())
}

/// Whether it was approved; false as well when the run ends before.
async fn until_decided(agent: &mut Agent, id: &str, stop: &AtomicBool) -> Result<bool> {
    while !stop.load(Ordering::SeqCst) {
        let Ok(got) = agent.wait(id, 1).await else {
            sleep(AFTER_NO_ANSWER).await;
            continue;
        };
        match got.body["data"]["status"].as_str() {
            Some("pending") => {}
            Some(status) => return Ok(status == "approved"),
            None => {
                check_typed(&got, &["unavailable"])?;
                sleep(AFTER_NO_ANSWER).await;
            }
        }
    }
    Ok(false)
}

/// Repeats until there is an answer that stands, also when the run is to end: what is under way is brought to its end.
async fn redeem(agent: &mut Agent, id: &str, stop: &AtomicBool) -> Result<()> {
    let mut after_stop = 0;
    loop {
        match agent.redeem(id).await {
            Ok(got) if word(&got) != "unavailable" => {
                return check_typed(&got, &["ok", "replayed", "approval_voided"]);
            }
            _ => sleep(AFTER_NO_ANSWER).await,
        }
        if stop.load(Ordering::SeqCst) {
            after_stop += 1;
            if after_stop > 2_000 {
                bail!("{id} got no answer that stands, with a node serving");
            }
        }
    }
}

fn check_typed(got: &Got, expected: &[&str]) -> Result<()> {
    if !expected.contains(&word(got)) {
        bail!(
            "expected one of {expected:?}, got {}: {}",
            got.status,
            got.body
        );
    }
    Ok(())
}

async fn decide(
    mut person: Person,
    asked: Arc<Mutex<mpsc::UnboundedReceiver<Asked>>>,
    mut rng: fastrand::Rng,
    stop: Arc<AtomicBool>,
) -> Result<()> {
    while !stop.load(Ordering::SeqCst) {
        let next = async { asked.lock().await.recv().await };
        let Ok(next) = tokio::time::timeout(Duration::from_millis(200), next).await else {
            continue;
        };
        let Some((site, id)) = next else {
            return Ok(());
        };
        let approve = rng.u32(..DENIED_ONE_IN) != 0;
        while !stop.load(Ordering::SeqCst) {
            match person.decide(&site, &id, approve).await {
                Ok(got) if got.status == 503 => sleep(AFTER_NO_ANSWER).await,
                Ok(got) => {
                    let codes = ["already_decided", "approval_voided", "?"];
                    if got.status != 200 {
                        check_typed(&got, &codes)?;
                    }
                    break;
                }
                Err(_) => sleep(AFTER_NO_ANSWER).await,
            }
        }
    }
    Ok(())
}
