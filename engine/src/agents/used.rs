//! When keys were last used: remembered as they are, kept now and then, so that a call writes nothing for it.

use crate::{Engine, store::agents as sql};
use cloudhal_domain::{code::Refusal, time::Timestamp};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// A key in use is written at most this often.
const KEEP_EVERY: Duration = Duration::from_secs(600);

#[derive(Default)]
pub struct Used(Mutex<HashMap<String, Use>>);

#[derive(Clone, Copy)]
struct Use {
    last: Timestamp,
    kept: Option<Timestamp>,
}

impl Used {
    pub fn mark(&self, key: &str, now: Timestamp) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match used.get_mut(key) {
            Some(one) => one.last = now,
            None => {
                let fresh = Use {
                    last: now,
                    kept: None,
                };
                used.insert(key.to_owned(), fresh);
            }
        }
    }

    /// Writes down what is due.
    pub async fn keep(&self, engine: &Engine) -> Result<(), Refusal> {
        let due = self.due();
        if due.is_empty() {
            return Ok(());
        }
        let written = due.clone();
        let unit = engine
            .store()
            .write(move |tx| Box::pin(async move { Ok(sql::mark_used(tx, &due).await?) }));
        unit.await?;
        self.kept(written);
        Ok(())
    }

    fn due(&self) -> Vec<(String, Timestamp)> {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |one: &Use| {
            one.kept
                .is_none_or(|kept| one.last >= kept.plus(KEEP_EVERY))
        };
        let due = used.iter().filter(|(_, one)| is_due(one));
        let mut due: Vec<_> = due.map(|(key, one)| (key.clone(), one.last)).collect();
        due.sort();
        due
    }

    /// Only what is written counts as kept: after a failure it stays due.
    fn kept(&self, written: Vec<(String, Timestamp)>) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, at) in written {
            if let Some(one) = used.get_mut(&key) {
                one.kept = Some(at);
            }
        }
    }
}
