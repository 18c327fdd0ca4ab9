//! What a scenario found: figures to print, and faults, any of which fails the run.

use std::{fmt::Display, time::Duration};

/// Faults printed in full; the rest is counted.
const FAULTS_SHOWN: usize = 10;

#[derive(Debug, Default)]
pub struct Report {
    facts: Vec<(String, String)>,
    faults: Vec<String>,
    fault_count: usize,
}

impl Report {
    pub fn fact(&mut self, name: &str, value: impl Display) {
        self.facts.push((name.to_owned(), value.to_string()));
    }

    pub fn fault(&mut self, what: impl Into<String>) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_SHOWN {
            self.faults.push(what.into());
        }
    }

    pub fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.fault(otherwise());
        }
    }

    pub fn passed(&self) -> bool {
        self.fault_count == 0
    }

    /// One line for a table, then the faults.
    pub fn text(&self, id: &str, engine: &str, took: Duration, figure: &str) -> String {
        let facts: Vec<String> = self
            .facts
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        let mut text = format!(
            "{verdict}  {id:<4} {engine:<8} {:>6.1} s  {figure} · {}",
            took.as_secs_f64(),
            facts.join(" · ")
        );
        for fault in &self.faults {
            text.push_str(&format!("\n        {fault}"));
        }
        if self.fault_count > self.faults.len() {
            text.push_str(&format!(
                "\n        and {} faults more",
                self.fault_count - self.faults.len()
            ));
        }
        text
    }
}

/// The largest and the middle of some times, in milliseconds.
pub fn spread(mut took: Vec<Duration>) -> String {
    took.sort();
    let at = |share: f64| {
        let at = (took.len().saturating_sub(1) as f64 * share) as usize;
        took.get(at).map_or(0, Duration::as_millis)
    };
    format!(
        "p50 {} ms, p95 {} ms, max {} ms",
        at(0.5),
        at(0.95),
        at(1.0)
    )
}
