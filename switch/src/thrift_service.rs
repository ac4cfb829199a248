//! The Thrift server of the process.

use std::io;

use wormcast_switch::dataplane::DataplaneHandle;
use wormcast_switch::log::{Level, Log};
use wormcast_switch::pipeline::PipelineConfig;
use wormcast_switch::thrift::{Identity, ThriftServer};

use crate::command_line::Settings;

/// Port of BMv2's Thrift server unless it is told another.
const PORT: u16 = 9090;

/// Starts the server, on a task of the present runtime. Where no port was asked for and the
/// usual one is taken, there is none, and a note says so: one process of many on a machine
/// shall start without it.
///
/// # Errors
/// A port that was asked for and cannot be had.
pub fn start(
    settings: &Settings,
    pipeline: PipelineConfig,
    dataplane: &DataplaneHandle,
    log: &Log,
) -> Result<(), String> {
    let wanted = settings.drop_in.thrift_port;
    let server = match (ThriftServer::bind(wanted.unwrap_or(PORT)), wanted) {
        (Ok(server), _) => server,
        (Err(error), None) if error.kind() == io::ErrorKind::AddrInUse => {
            eprintln!(
                "wormcast-switch: note: port {PORT} is taken, so there is no Thrift server; \
                 --thrift-port N gives it another"
            );
            return Ok(());
        }
        (Err(error), _) => {
            let port = wanted.unwrap_or(PORT);
            return Err(format!("--thrift-port {port}: {error}"));
        }
    };
    let identity = Identity {
        device_id: settings.device_id,
        thrift_port: server.port(),
        pipeline,
        swap: settings.swap,
        ..Identity::default()
    };
    let port = server.port();
    println!("Thrift server listening on port {port}");
    // The lines of BMv2's log that scripts wait for.
    log.write(
        Level::Info,
        format_args!("Starting Thrift server on port {port}"),
    );
    log.write(Level::Info, format_args!("Thrift server was started"));
    tokio::spawn(server.serve(identity, dataplane.clone(), log.clone()));
    Ok(())
}
