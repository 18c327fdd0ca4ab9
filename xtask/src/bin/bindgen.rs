//! `xtask-bindgen INPUT.wasm OUT_DIR`: the wasm-bindgen step of the front build.
//!
//! It is the library behind the `wasm-bindgen` command, taken from the same lock file as the `wasm-bindgen` crate: the
//! two must agree to the last digit, and like this they cannot differ.

use std::env::args_os;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = args_os().skip(1).map(PathBuf::from).collect();
    let [input, out_dir] = arguments.as_slice() else {
        bail!("usage: xtask-bindgen INPUT.wasm OUT_DIR");
    };
    Bindgen::new()
        .input_path(input)
        .out_name("cloudhal")
        .web(true)?
        .typescript(false)
        .generate(out_dir)
        .with_context(|| format!("wasm-bindgen could not read {}", input.display()))
}
