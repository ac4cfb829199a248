//! The notifications of the switches of this process, all on one socket.

use std::sync::Arc;

use crate::command_line::Settings;
use crate::command_line::compatibility::Notifications;
use crate::console::{complain, say};
use crate::switches::Switches;
use wormcast_switch_bmv2::nanomsg::{Address, Publisher};
use wormcast_switch_bmv2::notifications::{Notifier, Watched};

/// Publishes from now on, on tasks of the present runtime: what tells of each switch, in their
/// order. Where BMv2's own address cannot
/// be had and no other was asked for, there are no notifications, and a note says so: one
/// process of many on a machine shall start without them.
///
/// # Errors
/// An address that was asked for and cannot be had.
pub async fn start(settings: &Settings, switches: &Switches) -> Result<Vec<Arc<Notifier>>, String> {
    let publisher = match &settings.notifications {
        Notifications::None => return Ok(Vec::new()),
        Notifications::Needed(address) => bind(address).await?,
        Notifications::IfFree(address) => match bind(address).await {
            Ok(publisher) => publisher,
            Err(problem) => {
                complain(format_args!(
                    "note: there are no notifications; {problem}; give the \
                     switches of a machine different device ids or addresses"
                ));
                return Ok(Vec::new());
            }
        },
    };
    say(format_args!("Notifications on {}", publisher.address()));
    let publisher = Arc::new(publisher);
    let watched = match settings.drop_in.use_files {
        Some(_) => Watched::NoPorts,
        None => Watched::Ports,
    };
    let mut notifiers = Vec::new();
    for (device_id, dataplane, server) in switches.each() {
        let notifier = Arc::new(Notifier::new(device_id, Arc::clone(&publisher)));
        server.observe(Arc::clone(&notifier) as Arc<_>);
        Arc::clone(&notifier).watch(dataplane, watched);
        notifiers.push(notifier);
    }
    Ok(notifiers)
}

async fn bind(address: &Address) -> Result<Publisher, String> {
    let bound = Publisher::bind(address).await;
    bound.map_err(|error| format!("--notifications-addr {address}: {error}"))
}
