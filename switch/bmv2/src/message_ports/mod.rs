//! Frames that come to a switch and leave it in messages, without interfaces: over a pair
//! of nanomsg sockets (`--packet-in`), or over gRPC (`--dp-grpc-server-addr`).
//!
//! Both are BMv2's. A frame is taken when what the one before led to has been sent on, so
//! who sends frames and does not read holds the switch back and loses nothing.
//!
//! Source: `dev_mgr_packet_in.cpp` and `dataplane_interface.proto` of BMv2.

mod grpc;
mod message;
mod pair;

pub use grpc::DataplaneService;
pub use message::PortMessage;
pub use pair::serve_pair;

use wormcast_switch_dataplane::log::{Level, Log};
use wormcast_switch_dataplane::{DataplaneHandle, MESSAGE_PORT_MAX, PortChange, Stopped};
use wormcast_switch_pipeline::PortId;
use wormcast_switch_pipeline::limits::PACKET_BYTES_MAX;

/// A switch that frames come to in messages.
#[derive(Clone, Debug)]
pub struct MessageSwitch {
    pub device_id: u64,
    /// Its data plane, which has [`MessagePorts`](wormcast_switch_dataplane::MessagePorts).
    pub dataplane: DataplaneHandle,
    /// Where faults of messages are logged.
    pub log: Log,
}

impl MessageSwitch {
    /// Hands a frame over and waits until it has passed.
    async fn bring(&self, port: u32, frame: Vec<u8>, mark: u64) -> Result<(), Stopped> {
        let brought = match check(port, &frame) {
            Ok(port) => {
                let brought = self
                    .dataplane
                    .run(move |switch| switch.bring(port, &frame, mark));
                brought.await?
            }
            Err(problem) => Err(problem),
        };
        self.complain(brought);
        Ok(())
    }

    /// Adds, removes or changes a port; why that cannot be.
    async fn change(&self, port: u32, change: PortChange) -> Result<Result<(), String>, Stopped> {
        let port = match number(port) {
            Ok(port) => port,
            Err(problem) => return Ok(Err(problem)),
        };
        let changed = self
            .dataplane
            .run(move |switch| switch.change_message_port(port, change));
        changed.await
    }

    fn complain(&self, outcome: Result<(), String>) {
        if let Err(problem) = outcome {
            self.log
                .write(Level::Error, format_args!("packet messages: {problem}"));
        }
    }
}

fn number(port: u32) -> Result<PortId, String> {
    u16::try_from(port)
        .map(PortId)
        .map_err(|_| format!("there is no port {port}; possible: 0 to {MESSAGE_PORT_MAX}"))
}

fn check(port: u32, frame: &[u8]) -> Result<PortId, String> {
    match frame.len() {
        1..=PACKET_BYTES_MAX => number(port),
        bytes => Err(format!(
            "a frame of {bytes} bytes for port {port}; possible: 1 to {PACKET_BYTES_MAX}"
        )),
    }
}
