//! A standard library for wasm32, and the compiler that fits it.
//!
//! 1. rustup's own, for the compiler that builds the server: the short way.
//! 2. Where rustup cannot download: Debian's `rustc-web`, with a standard library built once from `rust-web-src`. The
//!    result fits exactly one build of that compiler, so a note of its version lies beside it.
//!
//! `CLOUDHAL_WASM_STD=rustup` or `=debian` takes one way and not the other.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::debian;
use crate::run;
use crate::steps::Done;

pub const TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_RUSTLIB: &str = "/usr/lib/rustlib";
const INSTEAD: &str =
    "Type `rustup target add wasm32-unknown-unknown` where rustup can reach its server.";

pub enum WasmStd {
    Rustup,
    Debian { linker: PathBuf },
}

impl WasmStd {
    /// Makes a cargo command compile for wasm32 with the compiler that has the library.
    pub fn prepare(&self, cargo: &mut Command) {
        if let WasmStd::Debian { linker } = self {
            cargo
                .env("RUSTC", DEBIAN_RUSTC)
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            WasmStd::Rustup => "from rustup",
            WasmStd::Debian { .. } => "Debian's rustc-web, built from source",
        }
    }
}

/// The installed one, if there is one that fits its compiler.
pub fn find() -> Option<WasmStd> {
    match wish().as_deref() {
        Some("rustup") => find_rustup(),
        Some("debian") => find_debian(),
        _ => find_rustup().or_else(find_debian),
    }
}

pub fn set_up() -> Result<Done> {
    if let Some(found) = find() {
        return Ok(Done::There(found.describe().to_owned()));
    }
    let wish = wish();
    if wish.as_deref() != Some("debian") {
        if add_with_rustup() {
            return Ok(Done::Now("downloaded by rustup".to_owned()));
        }
        if wish.as_deref() == Some("rustup") {
            bail!("rustup could not download it.\n  {INSTEAD}");
        }
        println!("           rustup cannot download it here; taking the Debian way");
    }
    build_debian()?;
    find_debian().context("the library was built, but is not where it should be")?;
    Ok(Done::Now("built from Debian's rust-web-src".to_owned()))
}

fn wish() -> Option<String> {
    env::var("CLOUDHAL_WASM_STD").ok()
}

fn find_rustup() -> Option<WasmStd> {
    has_std(&sysroot()?.join("lib/rustlib").join(TARGET).join("lib")).then_some(WasmStd::Rustup)
}

fn find_debian() -> Option<WasmStd> {
    let version = debian_version()?;
    // Without a note the library is not our work; then a package brought it, and the package knows what fits.
    let fits = fs::read_to_string(note()).map_or(true, |noted| noted == version);
    let linker = rust_lld()?;
    (fits && has_std(&debian_lib())).then_some(WasmStd::Debian { linker })
}

fn add_with_rustup() -> bool {
    let mut rustup = run::command("rustup");
    rustup.args(["target", "add", TARGET]);
    // Why it failed is in the log; without a network that is expected, and there is another way.
    run::log(&mut rustup, "rustup-target").is_ok() && find_rustup().is_some()
}

/// Builds std in an empty crate and copies what came of it to where the Debian compiler looks.
fn build_debian() -> Result<()> {
    if debian_version().is_none()
        || !Path::new(DEBIAN_RUSTLIB)
            .join("src/rust/library/std")
            .is_dir()
    {
        debian::install(&["rustc-web", "rust-web-src"], INSTEAD)?;
    }
    let version = debian_version().context("/usr/bin/rustc does not run")?;
    let linker = rust_lld().with_context(|| {
        format!("the Rust toolchain has no rust-lld, which links WASM. Install Rust with rustup (https://rustup.rs).\n  {INSTEAD}")
    })?;
    let work = run::target_dir().join("wasm-std");
    make_empty_crate(&work)?;
    let mut cargo = run::cargo(&[
        "build",
        "--release",
        "-Z",
        "build-std=std,panic_abort",
        "--target",
        TARGET,
        "--target-dir",
        "target",
    ]);
    // -Z flags are for nightly compilers; this variable lifts that for the one build that makes std itself.
    cargo.current_dir(&work).env("RUSTC_BOOTSTRAP", "1");
    WasmStd::Debian { linker }.prepare(&mut cargo);
    run::log(&mut cargo, "wasm-std")?;
    install_libraries(&work.join("target").join(TARGET).join("release/deps"))
        .and_then(|()| Ok(fs::write(note(), version)?))
        .with_context(|| {
            format!(
                "could not write to {}; this needs root",
                debian_lib().display()
            )
        })
}

fn make_empty_crate(work: &Path) -> Result<()> {
    // What an older compiler left behind must not be copied along.
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    fs::create_dir_all(work.join("src"))?;
    // A [workspace] of its own keeps cargo from asking ours about it.
    let manifest = "[package]\nname = \"empty\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n[workspace]\n";
    fs::write(work.join("Cargo.toml"), manifest)?;
    fs::write(work.join("src/lib.rs"), "")?;
    Ok(())
}

fn install_libraries(from: &Path) -> Result<()> {
    let to = debian_lib();
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    fs::create_dir_all(&to)?;
    // Until the last file is there, nobody may take the folder for a finished one.
    fs::write(note(), "unfinished")?;
    for file in fs::read_dir(from)? {
        let file = file?.path();
        if let Some(name) = file
            .file_name()
            .filter(|_| file.extension().is_some_and(|kind| kind == "rlib"))
        {
            fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

fn has_std(lib: &Path) -> bool {
    let Ok(files) = fs::read_dir(lib) else {
        return false;
    };
    files.flatten().any(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

fn debian_lib() -> PathBuf {
    Path::new(DEBIAN_RUSTLIB).join(TARGET).join("lib")
}

fn note() -> PathBuf {
    Path::new(DEBIAN_RUSTLIB).join(TARGET).join("built-for.txt")
}

fn debian_version() -> Option<String> {
    // A /usr/bin/rustc that is no Debian package would not read this folder.
    let sysroot = run::output(run::command(DEBIAN_RUSTC).args(["--print", "sysroot"]))?;
    (sysroot == "/usr").then(|| run::output(run::command(DEBIAN_RUSTC).arg("-vV")))?
}

/// The folder of the compiler that builds the server.
pub fn sysroot() -> Option<PathBuf> {
    static SYSROOT: OnceLock<Option<PathBuf>> = OnceLock::new();
    SYSROOT
        .get_or_init(|| {
            run::output(run::command("rustc").args(["--print", "sysroot"])).map(PathBuf::from)
        })
        .clone()
}

fn rust_lld() -> Option<PathBuf> {
    let hosts = fs::read_dir(sysroot()?.join("lib/rustlib")).ok()?;
    hosts
        .flatten()
        .map(|host| host.path().join("bin/rust-lld"))
        .find(|lld| lld.is_file())
}
