//! Figures as they are printed.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

pub fn spread(took: &mut [Duration]) -> String {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!(
        "p50 {:>7.2} ms  p99 {:>7.2} ms  max {:>7.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

/// Median of a 4 KiB write with its fdatasync: what every durable answer waits for.
pub fn probe() -> Duration {
    let mut file = tempfile::tempfile().expect("a file");
    let block = [7u8; 4096];
    let mut took: Vec<Duration> = (0..50)
        .map(|_| {
            let begun = Instant::now();
            file.write_all(&block).expect("writing");
            file.sync_data().expect("syncing");
            begun.elapsed()
        })
        .collect();
    took.sort();
    took[took.len() / 2]
}

pub fn probes(before: Duration, after: Duration) -> String {
    let slow = if before.max(after) > Duration::from_micros(200) {
        "  (busy disk: compare ratios only)"
    } else {
        ""
    };
    format!(
        "fsync {:.2}/{:.2} ms{slow}",
        before.as_secs_f64() * 1e3,
        after.as_secs_f64() * 1e3
    )
}
