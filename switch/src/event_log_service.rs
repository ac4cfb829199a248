//! The event log of the switches of this process, all on one socket.

use std::sync::Arc;

use crate::command_line::Settings;
use crate::console::say;
use crate::switches::Switches;
use wormcast_switch_bmv2::event_log::EventLog;
use wormcast_switch_bmv2::nanomsg::Publisher;

/// Publishes from now on, on tasks of the present runtime, if that was asked for.
///
/// # Errors
/// The address cannot be had.
pub async fn start(
    settings: &Settings,
    switches: &Switches,
) -> Result<Option<Arc<EventLog>>, String> {
    let Some(address) = &settings.drop_in.nanolog else {
        return Ok(None);
    };
    let publisher = Publisher::bind(address).await;
    let publisher = publisher.map_err(|error| format!("--nanolog {address}: {error}"))?;
    say(format_args!("Event log on {}", publisher.address()));
    let event_log = Arc::new(EventLog::new(publisher, switches.log.clone()));
    for (device_id, dataplane, server) in switches.each() {
        server.observe(Arc::clone(&event_log) as Arc<_>);
        Arc::clone(&event_log).watch(device_id, dataplane);
    }
    Ok(Some(event_log))
}
