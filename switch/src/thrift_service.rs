//! The Thrift servers of the process.

use std::io;
use std::sync::Arc;

use crate::command_line::Settings;
use crate::console::{complain, say};
use crate::switches::Switches;
use wormcast_switch_bmv2::event_log::EventLog;
use wormcast_switch_bmv2::notifications::Notifier;
use wormcast_switch_bmv2::thrift::{Identity, ThriftServer};
use wormcast_switch_dataplane::log::Level;
use wormcast_switch_pipeline::PipelineConfig;

/// Port of BMv2's Thrift server by default.
const PORT: u16 = 9090;

/// Starts the servers, on tasks of the present runtime. Where no port was asked for there is none,
/// but under the names of BMv2's binaries: these open the usual one, and if that is taken, a note says
/// so, since one process of many on a machine shall start without it. The switches of a fabric have one
/// each only if a port was asked for: that port, the next one, and so on, in the order of their device ids.
///
/// # Errors
/// A port that was asked for and cannot be had.
pub fn start(
    settings: &Settings,
    pipeline: PipelineConfig,
    switches: &Switches,
    notifiers: &[Arc<Notifier>],
    event_log: Option<&EventLog>,
) -> Result<(), String> {
    let wanted = settings.drop_in.thrift_port;
    if wanted.is_none() && (switches.is_fabric || !settings.opens_thrift) {
        return Ok(());
    }
    let address = settings.drop_in.thrift_addr;
    for (position, (device_id, dataplane, _)) in switches.each().enumerate() {
        let port = port_of(wanted.unwrap_or(PORT), position)?;
        let server = match ThriftServer::bind(address, port) {
            Ok(server) => server,
            Err(error) if wanted.is_none() && error.kind() == io::ErrorKind::AddrInUse => {
                complain(format_args!(
                    "note: port {PORT} is taken, so there is no Thrift server; \
                     --thrift-port gives it another"
                ));
                return Ok(());
            }
            Err(error) => {
                return Err(format!(
                    "--thrift-port {port} --thrift-addr {address}: {error}"
                ));
            }
        };
        let port = server.port();
        say(format_args!("Thrift server listening on port {port}"));
        // The lines of BMv2's log that scripts wait for.
        let log = &switches.log;
        log.write(
            Level::Info,
            format_args!("Starting Thrift server on port {port}"),
        );
        log.write(Level::Info, format_args!("Thrift server was started"));
        let identity = Identity {
            device_id,
            thrift_port: port,
            pipeline,
            swap: settings.swap,
            event_log: event_log.map(|event_log| event_log.address().to_string()),
            ..Identity::default()
        };
        let server = server.notifying(notifiers.get(position).cloned());
        tokio::spawn(server.serve(identity, dataplane, log.clone()));
    }
    Ok(())
}

/// The port of the switch at a position; from 0 on, any free one for each.
fn port_of(first: u16, position: usize) -> Result<u16, String> {
    if first == 0 {
        return Ok(0);
    }
    u16::try_from(usize::from(first) + position)
        .map_err(|_| format!("--thrift-port {first}: there are not enough ports from there"))
}

#[cfg(test)]
mod tests {
    use super::port_of;

    #[test]
    fn switches_of_a_fabric_have_ports_in_a_row_or_any() {
        assert_eq!([0, 1, 299].map(|at| port_of(0, at)), [0; 3].map(Ok));
        assert_eq!([0, 1].map(|at| port_of(9090, at)), [Ok(9090), Ok(9091)]);
        let error = port_of(65_500, 36).unwrap_err();
        assert!(error.contains("--thrift-port 65500"), "{error}");
    }
}
