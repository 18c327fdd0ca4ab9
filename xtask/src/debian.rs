//! What Debian's packages can bring: only with apt and as root. Elsewhere the person gets told what to type.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use crate::run;

static LISTS_ARE_FRESH: AtomicBool = AtomicBool::new(false);

/// Installs packages, or fails with what the person can do instead.
pub fn install(packages: &[&str], instead: &str) -> Result<()> {
    let wanted = packages.join(" ");
    if run::find_program(&["apt-get"]).is_none() {
        bail!("it is missing here, and there is no apt to install it with.\n  {instead}");
    }
    if !rustix::process::geteuid().is_root() {
        bail!(
            "it is missing here, and installing needs root. Type:\n  sudo apt-get update && sudo apt-get install -y --no-install-recommends {wanted}"
        );
    }
    if !LISTS_ARE_FRESH.swap(true, Ordering::Relaxed) {
        apt_get(&["update"], "apt-update").with_context(|| advice(instead))?;
    }
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments, "apt-install").with_context(|| advice(instead))
}

fn apt_get(arguments: &[&str], log: &str) -> Result<()> {
    let mut apt = run::command("apt-get");
    // Another apt may be at work on a machine that has just started: wait for it rather than fail.
    apt.args(["-o", "DPkg::Lock::Timeout=120"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    run::log(&mut apt, log)
}

fn advice(instead: &str) -> String {
    format!("apt could not bring it.\n  {instead}\n ")
}
