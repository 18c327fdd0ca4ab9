//! The browser part: cargo for wasm32, wasm-bindgen, and for a release wasm-opt and brotli.
//!
//! Each mode finishes in a folder of its own and is then copied to `target/site`, which the server reads or embeds. Going
//! back and forth between the modes repeats no work, and a file that did not change keeps its time stamp.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};

use crate::run;
use crate::steps::{Done, heading, step};
use crate::wasm_std::{self, TARGET};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Debug,
    Release,
}

/// What the page loads. Both may have a `.br` beside them.
const ASSETS: [&str; 2] = ["cloudhal.js", "cloudhal.wasm"];

/// rustc emits these features, and stripping drops the section that says so; wasm-opt would refuse the module.
const WASM_OPT_FLAGS: [&str; 8] = [
    "-Oz",
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-reference-types",
    "--enable-multivalue",
];

const COMPRESS: &str = r#"
import { readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants } from "node:zlib";
for (const file of process.argv.slice(1)) {
  const content = readFileSync(file);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 22, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params }));
}
"#;

impl Mode {
    /// cargo's folder for the profile, and ours.
    fn folder(self) -> &'static str {
        match self {
            Mode::Debug => "debug",
            Mode::Release => "wasm-release",
        }
    }
}

/// The arguments that select the front's crate, for building and for linting: never together with the server, because
/// `ssr` and `hydrate` would both be on. A target folder of its own, because another compiler may build it.
pub fn cargo(subcommand: &str) -> Result<Command> {
    let std = wasm_std::find()
        .context("there is no wasm32 standard library; `cargo xtask setup` brings it")?;
    let mut cargo = run::cargo(&[
        subcommand,
        "-p",
        "cloudhal-frontend",
        "--lib",
        "--target",
        TARGET,
    ]);
    cargo
        .args([
            "--no-default-features",
            "--features",
            "hydrate",
            "--target-dir",
        ])
        .arg(target_dir());
    std.prepare(&mut cargo);
    Ok(cargo)
}

pub fn build(mode: Mode) -> Result<()> {
    heading("The browser part");
    let mut cargo = cargo("build")?;
    if mode == Mode::Release {
        cargo.args(["--profile", "wasm-release"]);
    }
    run::show(&mut cargo)?;
    let input = target_dir()
        .join(TARGET)
        .join(mode.folder())
        .join("cloudhal_frontend.wasm");
    let finished = finish(mode, &input)?;
    publish(&finished)
}

/// The set-up step: the wasm-bindgen program, built once for each locked version.
pub fn bindgen_step() -> Result<Done> {
    let wanted = format!("{}\n{}", locked_bindgen()?, include_str!("bin/bindgen.rs"));
    let stamp = run::xtask_dir().join("bindgen.txt");
    let version = wanted.lines().next().unwrap_or_default().to_owned();
    if bindgen_program().is_file() && fs::read_to_string(&stamp).is_ok_and(|built| built == wanted)
    {
        return Ok(Done::There(version));
    }
    run::log(
        &mut run::cargo(&[
            "build",
            "-p",
            "xtask",
            "--features",
            "bindgen",
            "--bin",
            "xtask-bindgen",
        ]),
        "bindgen-build",
    )?;
    run::write_if_changed(&stamp, wanted.as_bytes())?;
    Ok(Done::Now(format!("built, {version}")))
}

pub fn site() -> PathBuf {
    run::root().join("target/site")
}

fn target_dir() -> PathBuf {
    run::target_dir().join("front")
}

fn bindgen_program() -> PathBuf {
    run::target_dir().join("debug/xtask-bindgen")
}

fn locked_bindgen() -> Result<String> {
    let lock =
        fs::read_to_string(run::root().join("Cargo.lock")).context("Cargo.lock is missing")?;
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != "name = \"wasm-bindgen-cli-support\"");
    let version = lines
        .nth(1)
        .context("Cargo.lock does not name wasm-bindgen-cli-support")?;
    Ok(version
        .trim_start_matches("version = ")
        .trim_matches('"')
        .to_owned())
}

/// Everything after the compiler. Repeated only when the compiler's output, or the program that reads it, is another one.
fn finish(mode: Mode, input: &Path) -> Result<PathBuf> {
    let folder = run::xtask_dir().join("front").join(mode.folder());
    let stamp = folder.join("made-from.txt");
    let wanted = format!(
        "{}\n{}\n{WASM_OPT_FLAGS:?}\n{COMPRESS}",
        identity(input)?,
        identity(&bindgen_program())?
    );
    step("wasm-bindgen and what follows", || {
        if fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == wanted) {
            return Ok(Done::There("unchanged".to_owned()));
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        run::log(
            run::command(bindgen_program()).arg(input).arg(&folder),
            "bindgen",
        )?;
        fs::rename(
            folder.join("cloudhal_bg.wasm"),
            folder.join("cloudhal.wasm"),
        )?;
        if mode == Mode::Release {
            shrink(&folder)?;
        }
        fs::write(&stamp, &wanted)?;
        Ok(Done::Now(sizes(&folder)?))
    })?;
    Ok(folder)
}

fn shrink(folder: &Path) -> Result<()> {
    let wasm = folder.join("cloudhal.wasm");
    let optimizer = run::root().join("end2end/node_modules/binaryen/bin/wasm-opt");
    let mut wasm_opt = run::command("node");
    wasm_opt
        .arg(optimizer)
        .args(WASM_OPT_FLAGS)
        .arg(&wasm)
        .arg("-o")
        .arg(&wasm);
    run::log(&mut wasm_opt, "wasm-opt")?;
    let mut node = run::command("node");
    node.args(["--input-type=module", "--eval", COMPRESS, "--"])
        .args(ASSETS.map(|asset| folder.join(asset)));
    run::log(&mut node, "brotli")
}

/// Brings the finished files to `target/site` and takes away what belongs to the other mode: a stale `.br` would be
/// served in place of the file it no longer matches.
fn publish(finished: &Path) -> Result<()> {
    for asset in ASSETS {
        for name in [asset.to_owned(), format!("{asset}.br")] {
            let (from, to) = (finished.join(&name), site().join(&name));
            if from.is_file() {
                run::write_if_changed(&to, &fs::read(&from)?)?;
            } else if to.is_file() {
                fs::remove_file(&to)?;
            }
        }
    }
    copy_snippets(&finished.join("snippets"), &site().join("snippets"))
}

/// JavaScript that crates bring along; `cloudhal.js` imports it by relative path.
fn copy_snippets(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).into_iter().flatten() {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_snippets(&entry.path(), &target)?;
        } else {
            run::write_if_changed(&target, &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Size and time: cargo leaves an output alone that would not change.
fn identity(file: &Path) -> Result<String> {
    let facts = fs::metadata(file).with_context(|| format!("{} is missing", file.display()))?;
    let modified = facts
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Ok(format!(
        "{} {} {}",
        file.display(),
        facts.len(),
        modified.as_nanos()
    ))
}

/// The figures that the budget is about.
pub fn sizes(folder: &Path) -> Result<String> {
    let mut parts = Vec::new();
    for asset in ASSETS {
        let raw = fs::metadata(folder.join(asset))
            .with_context(|| format!("{asset} is missing"))?
            .len();
        let brotli = fs::metadata(folder.join(format!("{asset}.br")))
            .map(|facts| format!(", {} kB brotli", facts.len() / 1000));
        parts.push(format!(
            "{asset} {} kB{}",
            raw / 1000,
            brotli.unwrap_or_default()
        ));
    }
    Ok(parts.join("; "))
}
