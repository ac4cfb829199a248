//! The event log of the switches of this process, all on one socket.

use std::sync::Arc;

use crate::command_line::Settings;
use crate::console::say;
use crate::switches::Switches;
use wormcast_switch::event_log::EventLog;
use wormcast_switch::nanomsg::Publisher;

/// Publishes from now on, on tasks of the present runtime, if that was asked for.
///
/// # Errors
/// The address cannot be had.
pub async fn start(settings: &Settings, switches: &Switches) -> Result<(), String> {
    let Some(address) = &settings.drop_in.nanolog else {
        return Ok(());
    };
    let publisher = Publisher::bind(address).await;
    let publisher = publisher.map_err(|error| format!("--nanolog {address}: {error}"))?;
    say(format_args!("Event log on {}", publisher.address()));
    let event_log = Arc::new(EventLog::new(publisher, switches.log.clone()));
    for (device_id, dataplane, server) in switches.each() {
        server.publish_events(Arc::clone(&event_log));
        Arc::clone(&event_log).watch(device_id, dataplane);
    }
    Ok(())
}
