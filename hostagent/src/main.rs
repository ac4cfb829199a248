//! The agent's command line.

use std::process::ExitCode;
use wormcast_agent::options::Options;

fn main() -> ExitCode {
    let Some(options) = Options::read() else {
        return ExitCode::SUCCESS;
    };
    wormcast_agent::log::set_level(options.log_level);
    // A file that grows beyond this process's limit is that file's failure.
    // SAFETY: no handler, no other thread yet.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
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
            eprintln!("wormcast-agent: {}", wormcast_words::plain(&text));
            ExitCode::FAILURE
        }
    }
}
