//! A switch that runs the compiled P4 program in wormcast-switch's pipeline: the data
//! plane that ships, without sockets.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use wormcast_switch_pipeline::{
    DequeueInfo, EmitSink, EntryAction, LoadedProgram, Pipeline, PipelineConfig, PortId, Queued,
    Replica, TableEntry, TrafficSink,
};
use wormcast_switch_program::{ActionCall, Bits, DigestId, FieldMatch};
use wormcast_wire::forward::Copy;

const MGID_TREE_ALL: u32 = 2;

fn program() -> Arc<LoadedProgram> {
    static PROGRAM: OnceLock<Arc<LoadedProgram>> = OnceLock::new();
    let load = || {
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../p4src/compiled/wormcast.json");
        let text = std::fs::read_to_string(path).expect("the compiled program is checked in");
        Arc::new(LoadedProgram::from_json(&text).expect("a program"))
    };
    PROGRAM.get_or_init(load).clone()
}

/// A switch of the fabric that runs the program.
pub struct ProgramSwitch {
    pipeline: Pipeline,
}

#[derive(Default)]
struct Sink {
    queued: Vec<Queued>,
    copies: Vec<Copy>,
}

impl TrafficSink for Sink {
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
        self.queued.push(packet);
        Ok(())
    }

    fn digest(&mut self, _digest: DigestId, _fields: &[Bits]) {}
}

impl EmitSink for Sink {
    fn transmit(&mut self, port: PortId, frame: &[u8]) {
        let port = u8::try_from(port.0).expect("worms leave by ports 0 to 253");
        self.copies.push(Copy {
            port,
            frame: frame.to_vec(),
        });
    }
}

impl ProgramSwitch {
    /// A switch with these ports; tables as CONTRACT.md has a controller fill them for
    /// worms of agents.
    pub fn new(ports: &[u8], seed: u64) -> ProgramSwitch {
        let program = program();
        let mut pipeline = Pipeline::new(
            program.clone(),
            PipelineConfig {
                seed,
                ..PipelineConfig::default()
            },
        );
        let known = program.table("ingress.ports").expect("in the contract");
        let port_known = program
            .table_action(known, "ingress.port_known")
            .expect("in the contract");
        for port in ports {
            let entry = TableEntry {
                key: vec![FieldMatch::Exact(Bits::from_u64((*port).into()))],
                priority: 0,
                action: EntryAction::Call(ActionCall {
                    action: port_known,
                    arguments: vec![],
                }),
            };
            pipeline.insert_entry(known, &entry).expect("a new port");
        }
        let replicas: Vec<Replica> = ports
            .iter()
            .map(|port| Replica {
                port: PortId((*port).into()),
                instance: 1,
            })
            .collect();
        pipeline
            .insert_multicast_group(MGID_TREE_ALL, &replicas)
            .expect("a new group");
        ProgramSwitch { pipeline }
    }

    /// What leaves for a frame that came in by a port; `depth_of` gives the frames that
    /// wait at a port.
    pub fn forward(
        &mut self,
        frame: &[u8],
        port: u8,
        now_us: u64,
        depth_of: impl Fn(u8) -> u32,
    ) -> Vec<Copy> {
        let mut sink = Sink::default();
        self.pipeline
            .ingress(frame, PortId(port.into()), now_us, &mut sink);
        while let Some(packet) = sink.queued.pop() {
            let depth = u8::try_from(packet.port().0).map_or(0, &depth_of);
            let dequeue = DequeueInfo {
                enqueued_us: now_us,
                dequeued_us: now_us,
                enqueue_depth: depth,
                dequeue_depth: depth,
            };
            self.pipeline.egress(packet, &dequeue, &mut sink);
        }
        sink.copies.sort_by_key(|copy| copy.port);
        sink.copies
    }
}
