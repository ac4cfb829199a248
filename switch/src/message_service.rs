//! Frames of this process's switch that come and go in messages.

use std::io;

use crate::command_line::Settings;
use crate::console::{complain, say};
use crate::switches::Switches;
use wormcast_switch_bmv2::message_ports::{DataplaneService, MessageSwitch, serve_pair};
use wormcast_switch_bmv2::nanomsg::Pair;
use wormcast_switch_listen::Listener;

/// Takes frames from now on, on tasks of the present runtime, if they are to come so.
///
/// # Errors
/// The address cannot be had.
pub async fn start(settings: &Settings, switches: &mut Switches) -> Result<(), String> {
    let Some(frames) = switches.sent_frames.take() else {
        return Ok(());
    };
    let device_id = settings.device_id;
    let Some(dataplane) = switches.dataplane.handle(device_id) else {
        return Ok(());
    };
    let log = switches.log.clone();
    let switch = MessageSwitch {
        device_id,
        dataplane,
        log,
    };
    if let Some(address) = &settings.drop_in.packet_in {
        let fail = |error: io::Error| format!("--packet-in {address}: {error}");
        let pair = Pair::bind(address).await.map_err(fail)?;
        say(format_args!("Packets on {}", pair.address()));
        tokio::spawn(serve_pair(pair, switch, frames));
    } else if let Some(address) = &settings.drop_in.dp_grpc_server_addr {
        let fail = |error: io::Error| format!("--dp-grpc-server-addr {address}: {error}");
        let listener = Listener::bind(address).await.map_err(fail)?;
        match listener.local_address() {
            Some(address) => say(format_args!("Packets over gRPC on {address}")),
            None => say(format_args!("Packets over gRPC on {address}")),
        }
        let service = DataplaneService::new(switch, frames);
        tokio::spawn(async move {
            if let Err(error) = service.serve(listener).await {
                complain(format_args!("packets over gRPC: {error}"));
            }
        });
    }
    Ok(())
}
