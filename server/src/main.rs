//! The `cloudhal` binary: parses the command line and hands over.

use clap::Parser as _;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let command = cloudhal_server::command::Cloudhal::parse();
    match command.run().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cloudhal: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
