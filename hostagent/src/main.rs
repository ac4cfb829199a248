//! The agent's command line.

use std::process::ExitCode;
use wormcast_agent::options::Options;

fn main() -> ExitCode {
    let Some(options) = Options::read() else {
        return ExitCode::SUCCESS;
    };
    wormcast_agent::log::set_level(options.log_level);
    let workers = options.workers();
    let result = match options.settle() {
        Ok(settings) => {
            wormcast_agent::agent::run(settings, workers).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("wormcast-agent: {text}");
            ExitCode::FAILURE
        }
    }
}
