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
        let unit = engine
            .store()
            .write(move |tx| Box::pin(async move { Ok(sql::mark_used(tx, &due).await?) }));
        Ok(unit.await?)
    }

    fn due(&self) -> Vec<(String, Timestamp)> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        for (key, one) in used.iter_mut() {
            let is_due = one
                .kept
                .is_none_or(|kept| one.last >= kept.plus(KEEP_EVERY));
            if is_due {
                one.kept = Some(one.last);
                due.push((key.clone(), one.last));
            }
        }
        due.sort();
        due
    }
}
