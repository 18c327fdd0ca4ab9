//! Named places where a test of reliability ends or stops the process. Without the feature `test-hooks` nothing is left of them.
//!
//! `CLOUDHAL_FAILPOINT` names one: `after-redeem` aborts the process there, `after-redeem:stop` stops it as SIGSTOP does until
//! somebody sends SIGCONT, `at-commit:1500` lets it go on and aborts it 1,500 µs later. Only the first arrival counts.

/// Where a process may be ended; the list grows with the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The site is locked and everything asked; the redeeming UPDATE comes next.
    BeforeRedeem,
    /// The approval is spent in the open transaction, its effect has not begun.
    AfterRedeem,
    /// Effect, receipt and journal are written, COMMIT has not been said.
    AfterEffect,
    /// COMMIT of a transaction that spends an approval is on its way.
    AtCommit,
    /// It is committed, nobody has been answered.
    AfterCommit,
    InMigration,
    /// Expiries are stored in the open transaction.
    InSweep,
    /// A delivery is claimed and nothing was sent.
    AfterClaim,
    /// A receiver has answered, and that is not written down.
    AfterSend,
}

impl Point {
    #[cfg(feature = "test-hooks")]
    fn name(self) -> &'static str {
        match self {
            Self::BeforeRedeem => "before-redeem",
            Self::AfterRedeem => "after-redeem",
            Self::AfterEffect => "after-effect",
            Self::AtCommit => "at-commit",
            Self::AfterCommit => "after-commit",
            Self::InMigration => "in-migration",
            Self::InSweep => "in-sweep",
            Self::AfterClaim => "after-claim",
            Self::AfterSend => "after-send",
        }
    }
}

#[cfg(not(feature = "test-hooks"))]
pub(crate) fn reach(_: Point) {}

#[cfg(feature = "test-hooks")]
pub(crate) fn reach(point: Point) {
    use std::sync::atomic::{AtomicBool, Ordering};
    static REACHED: AtomicBool = AtomicBool::new(false);
    let Ok(wish) = std::env::var("CLOUDHAL_FAILPOINT") else {
        return;
    };
    let (name, how) = wish.split_once(':').unwrap_or((&wish, ""));
    if name != point.name() || REACHED.swap(true, Ordering::SeqCst) {
        return;
    }
    match how.parse() {
        Ok(micros) => {
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(micros));
                std::process::abort();
            });
        }
        Err(_) if how == "stop" => stop(),
        Err(_) => std::process::abort(),
    }
}

/// Stops every thread of this process, as a debugger or an overcommitted host would.
#[cfg(feature = "test-hooks")]
fn stop() {
    let pid = std::process::id().to_string();
    let told = std::process::Command::new("kill")
        .args(["-STOP", &pid])
        .status();
    if let Err(error) = told {
        tracing::error!(%error, "the process could not be stopped");
    }
}
