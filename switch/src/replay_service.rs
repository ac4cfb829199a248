//! The captures of `--use-files`, replayed beside the servers.

use std::fs;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::command_line::Settings;
use crate::console::complain;
use crate::switches::Switches;
use wormcast_switch_dataplane::Replay;
use wormcast_switch_dataplane::log::Level;

/// Starts the replay on a thread of its own, if there is to be one.
///
/// # Errors
/// A capture that is not there.
pub fn start(settings: &Settings, switches: &Switches) -> Result<(), String> {
    let Some(seconds) = settings.drop_in.use_files else {
        return Ok(());
    };
    for port in &settings.ports {
        // Opening it here would wait for the writer of a named pipe.
        let path = format!("{}_in.pcap", port.attachment.name());
        fs::metadata(&path).map_err(|error| format!("--use-files: {path}: {error}"))?;
    }
    let wait = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let Some(dataplane) = switches.dataplane.handle(settings.device_id) else {
        return Ok(());
    };
    let (ports, log) = (settings.ports.clone(), switches.log.clone());
    let runtime = Handle::current();
    std::thread::Builder::new()
        .name("replay".to_owned())
        .spawn(move || {
            let replayed =
                Replay::open(&ports).and_then(|replay| replay.run(wait, &dataplane, &runtime));
            match replayed {
                Ok(frames) => log.write(
                    Level::Info,
                    format_args!("replay: end of all captures after {frames} frames"),
                ),
                Err(error) => {
                    log.write(Level::Error, format_args!("replay: {error}"));
                    complain(format_args!("--use-files: {error}"));
                }
            }
        })
        .map(|_| ())
        .map_err(|error| format!("--use-files: starting a thread: {error}"))
}
