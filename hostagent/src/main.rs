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
    keep_memory();
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

/// Most memory that the allocator keeps at the end of a heap, bytes, rather than give it back and ask for it anew. Pieces of
/// messages pass from the data plane to threads of files. Where each of them costs its pages, that is a quarter of the
/// data plane's work.
#[cfg(target_env = "gnu")]
const KEPT_BYTES_MAX: libc::c_int = 16 << 20;

#[cfg(target_env = "gnu")]
fn keep_memory() {
    // SAFETY: no other thread yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_BYTES_MAX / 4);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    }
}

/// Other allocators keep it by themselves.
#[cfg(not(target_env = "gnu"))]
fn keep_memory() {}
