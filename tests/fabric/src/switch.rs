//! A switch: the compiled P4 program in the pipeline that ships, without sockets. Its tables
//! have what the planner's updates put there, and nothing else.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use wormcast_planner::{
    Action, Copies, Entity, KeyFields, MatchValue, Operation, SwitchState, Update, difference,
    execute,
};
use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::{
    Backups, DequeueInfo, EmitSink, EntryAction, Execution, LoadedProgram, MeterRates, Pipeline,
    PipelineConfig, PortId, Queued, Replica, TableEntry, TrafficSink,
};
use wormcast_switch_program::{ActionCall, Bits, DigestId, FieldMatch, TableId};

/// Of `drop_reason_t`.
pub const SOURCE_REFUSED: usize = 18;
/// SOURCE_REFUSED to HOST_UNKNOWN, and ROUTE_REFUSED.
const GUARD_REASONS: [usize; 7] = [SOURCE_REFUSED, 19, 20, 21, 22, 23, 28];
/// What a host may send at once.
const BURST_BYTES: u64 = 1 << 17;

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

/// A copy of a frame that leaves by a port.
#[derive(Debug)]
pub struct Copy {
    pub port: u8,
    pub frame: Vec<u8>,
}

/// A switch of the fabric.
pub struct Switch {
    pipeline: Pipeline,
    state: SwitchState,
    /// Frames that go round: in wormhole mode they wait.
    waiting: Vec<Queued>,
    /// They do so with time, not at once.
    rounds_take_time: bool,
    down: BTreeSet<u8>,
}

/// The port by which frames go round.
const RECIRCULATE_PORT: u16 = 254;
/// With a port added: the replication group of STOP and GO (p4src/CONTRACT.md).
const MGID_HOLD: u32 = 0x0300;
/// The end of a fragment goes to all ports that are wanted, and its frame goes round.
const MGID_INTERRUPT: u32 = 3;

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
        // What goes to the controller ends here.
        if let Ok(port) = u8::try_from(port.0) {
            let frame = frame.to_vec();
            self.copies.push(Copy { port, frame });
        }
    }
}

impl Switch {
    /// A switch that no controller has reached.
    pub fn new(seed: u64) -> Switch {
        let config = PipelineConfig {
            seed,
            compiler: compiler_of(Execution::Compiled),
            // As fabrics have it: what waits in wormhole mode goes round for as long as it takes.
            recirculations_max: None,
            ..PipelineConfig::default()
        };
        Switch {
            pipeline: Pipeline::new(program(), config),
            state: SwitchState::default(),
            waiting: Vec::new(),
            rounds_take_time: false,
            down: BTreeSet::new(),
        }
    }

    /// Starts anew: its registers and counters are 0, and it has the entries again that it had.
    pub fn restart(&mut self, seed: u64) {
        let state = self.state.clone();
        self.start_empty(seed);
        for update in self.difference(&state) {
            self.write(&update);
        }
    }

    /// Starts anew, and no controller has reached it yet.
    pub fn start_empty(&mut self, seed: u64) {
        let had = std::mem::replace(self, Switch::new(seed));
        for port in had.down {
            self.set_port_up(port, false);
        }
    }

    /// Worms hold their channels from now on.
    pub fn set_wormhole(&mut self, ports: u16, mode: &[(&'static str, u128)]) {
        self.rounds_take_time = true;
        self.set_mode("ingress.wormhole_mode", mode);
        let every = (0..ports).chain([RECIRCULATE_PORT]).map(|port| Replica {
            port: PortId(port),
            instance: 1,
        });
        let every: Vec<Replica> = every.collect();
        let made = self.pipeline.insert_multicast_group(MGID_INTERRUPT, &every);
        made.expect("a group");
        for port in 0..ports {
            let copies = [RECIRCULATE_PORT, port].map(|port| Replica {
                port: PortId(port),
                instance: 1,
            });
            let group = MGID_HOLD + u32::from(port);
            let made = self.pipeline.insert_multicast_group(group, &copies);
            made.expect("a group");
        }
    }

    /// Changes the mode alone; what recirculates takes as much time as before.
    pub fn set_mode(&mut self, action: &'static str, parameters: &[(&'static str, u128)]) {
        let table = table_of("ingress.wormhole");
        let parameters = parameters.iter().map(|&(name, value)| (name.into(), value));
        let action = Action {
            name: action.into(),
            parameters: parameters.collect(),
        };
        let call = call(table, &action);
        let set = self.pipeline.set_default(table, Some(&call));
        set.expect("an action of the table");
    }

    /// In the wormhole mode that it is in, tells STOP when so many frames of a channel wait, and GO when so few do, until
    /// its controller says otherwise.
    pub fn set_stop_frames(&mut self, stop: u128, go: u128) {
        let Some(planned) = self.state.defaults.get("ingress.wormhole") else {
            return; // it has started anew
        };
        let mut action = (**planned).clone();
        for (name, value) in &mut action.parameters {
            match &**name {
                "stop_frames" => *value = stop,
                "go_frames" => *value = go,
                _ => {}
            }
        }
        let table = table_of("ingress.wormhole");
        let set = self
            .pipeline
            .set_default(table, Some(&call(table, &action)));
        set.expect("an action of the table");
    }

    /// Puts an entry with an exact key there, in place of one that has the key.
    pub fn set_entry(
        &mut self,
        table: &'static str,
        key: &[(&'static str, u128)],
        action: &'static str,
        parameters: &[(&'static str, u128)],
    ) {
        let action = Action {
            name: action.into(),
            parameters: parameters
                .iter()
                .map(|&(name, value)| (name.into(), value))
                .collect(),
        };
        self.remove_entry(table, key);
        let entry = table_entry(table_of(table), &exact_key(table, key), &action);
        let made = self.pipeline.insert_entry(table_of(table), &entry);
        made.expect("room for an entry");
    }

    /// Takes an entry away, if it is there.
    pub fn remove_entry(&mut self, table: &'static str, key: &[(&'static str, u128)]) {
        let fields = key.iter().map(|&(_, value)| FieldMatch::Exact(bits(value)));
        let fields: Vec<FieldMatch> = fields.collect();
        // An error says that it is not there.
        let _ = self.pipeline.delete_entry(table_of(table), &fields, 0);
    }

    /// A cell of a register of the program, modulo 2^64.
    pub fn register(&self, name: &str, index: usize) -> u64 {
        let register = program().register(name).expect("a register");
        let value = self.pipeline.read_register(register, index);
        let bytes = value.expect("a cell").to_padded_bytes(256);
        bytes
            .iter()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// A cell of a counter of packets.
    pub fn counter(&self, name: &str, index: usize) -> u64 {
        let counter = program().counter(name).expect("a counter");
        let value = self.pipeline.read_counter(counter, index);
        value.expect("a cell").packets
    }

    /// What recirculates waits for [`Switch::go_round`], in packet mode too.
    pub fn recirculate_slowly(&mut self) {
        self.rounds_take_time = true;
    }

    /// A queue loses what waits.
    pub fn lose_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// All frames that wait go round once; what leaves.
    pub fn go_round(&mut self, now_us: u64) -> Vec<Copy> {
        let mut sink = Sink::default();
        for packet in std::mem::take(&mut self.waiting) {
            self.leave_queue(packet, 0, now_us, &mut sink);
            self.empty_queues(&mut sink, now_us, |_| 0);
        }
        sink.copies
    }

    /// The updates that lead to the state it must have, by stage.
    pub fn difference(&self, desired: &SwitchState) -> Vec<Update> {
        difference(desired, &self.state, None)
    }

    /// Takes an update as a controller writes it.
    pub fn write(&mut self, update: &Update) {
        let (pipeline, operation) = (&mut self.pipeline, update.operation);
        match &update.entity {
            Entity::Group(group) => {
                let (id, (copies, backups)) = (group.mgid.0.into(), replicas(&group.copies));
                match operation {
                    Operation::Insert => {
                        pipeline.insert_multicast_group_with(id, &copies, &backups)
                    }
                    Operation::Modify => {
                        pipeline.modify_multicast_group_with(id, &copies, &backups)
                    }
                    Operation::Delete => pipeline.delete_multicast_group(id),
                }
            }
            Entity::Entry(entry) => {
                let table = table_of(&entry.key.table);
                let entry = table_entry(table, &entry.key, &entry.action);
                match operation {
                    Operation::Insert => pipeline.insert_entry(table, entry),
                    Operation::Modify => pipeline.modify_entry(table, entry),
                    Operation::Delete => pipeline.delete_entry(table, &entry.key, entry.priority),
                }
            }
            Entity::Default(default) => {
                let table = table_of(&default.table);
                if &*default.table == "ingress.wormhole" {
                    self.rounds_take_time = &*default.action.name == "ingress.wormhole_mode";
                }
                pipeline.set_default(table, Some(&call(table, &default.action)))
            }
            Entity::Rate(rate) => {
                let rates = rate.bytes.map(|bytes| MeterRates {
                    committed_rate: bytes,
                    committed_burst: BURST_BYTES,
                    peak_rate: bytes,
                    peak_burst: BURST_BYTES,
                    excess_burst: None,
                });
                let meter = program().meter("rates").expect("a meter");
                pipeline.set_meter(meter, rate.port.get().into(), rates)
            }
        }
        .unwrap_or_else(|error| panic!("{update:?}: {error}"));
        execute(update, &mut self.state);
    }

    /// Worms that the guard refused, by their reasons.
    pub fn refused(&self) -> Vec<(usize, u64)> {
        let drops = program().counter("drops").expect("a counter");
        let cells = self.pipeline.counter_cells(drops).iter().enumerate();
        cells
            .filter(|(reason, cell)| GUARD_REASONS.contains(reason) && cell.packets > 0)
            .map(|(reason, cell)| (reason, cell.packets))
            .collect()
    }

    /// A port goes up or down.
    pub fn set_port_up(&mut self, port: u8, up: bool) {
        if up {
            self.down.remove(&port);
        } else {
            self.down.insert(port);
        }
        self.pipeline.set_port_up(PortId(port.into()), up);
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
        self.empty_queues(&mut sink, now_us, depth_of);
        sink.copies.sort_by_key(|copy| copy.port);
        sink.copies
    }

    fn empty_queues(&mut self, sink: &mut Sink, now_us: u64, depth_of: impl Fn(u8) -> u32) {
        while let Some(packet) = sink.queued.pop() {
            if self.rounds_take_time && packet.port().0 == RECIRCULATE_PORT {
                self.waiting.push(packet);
                continue;
            }
            let depth = u8::try_from(packet.port().0).map_or(0, &depth_of);
            self.leave_queue(packet, depth, now_us, sink);
        }
    }

    fn leave_queue(&mut self, packet: Queued, depth: u32, now_us: u64, sink: &mut Sink) {
        let dequeue = DequeueInfo {
            enqueued_us: now_us,
            dequeued_us: now_us,
            enqueue_depth: depth,
            dequeue_depth: depth,
        };
        self.pipeline.egress(packet, &dequeue, sink);
    }
}

fn replicas(copies: &Copies) -> (Vec<Replica>, Backups) {
    let (mut replicas, mut backups) = (Vec::new(), Backups::new());
    for copy in copies.iter() {
        let by = |port: wormcast_wire::PortId| Replica {
            port: PortId(port.get().into()),
            instance: copy.instance,
        };
        replicas.push(by(copy.port));
        if !copy.backups.is_empty() {
            backups.insert(by(copy.port), copy.backups.iter().map(by).collect());
        }
    }
    (replicas, backups)
}

fn table_of(name: &str) -> TableId {
    program()
        .table(name)
        .unwrap_or_else(|| panic!("no table {name}"))
}

fn bits(value: u128) -> Bits {
    Bits::from_bytes(&value.to_be_bytes())
}

fn table_entry(table: TableId, key: &KeyFields, action: &Action) -> TableEntry {
    let program = program();
    let fields = &program.tables()[table.index()].key;
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let planned: Vec<&str> = key.matches.iter().map(|(name, _)| name.as_ref()).collect();
    assert_eq!(planned, names, "the key of {}", key.table);
    let field = |(_, value): &(_, MatchValue)| match *value {
        MatchValue::Exact(value) => FieldMatch::Exact(bits(value)),
        MatchValue::Ternary(value, mask) => FieldMatch::Ternary {
            value: bits(value),
            mask: bits(mask),
        },
    };
    TableEntry {
        key: key.matches.iter().map(field).collect(),
        priority: key.priority,
        action: EntryAction::Call(call(table, action)),
    }
}

fn exact_key(table: &'static str, key: &[(&'static str, u128)]) -> KeyFields {
    let field = |&(name, value): &(&'static str, u128)| (name.into(), MatchValue::Exact(value));
    KeyFields {
        table: table.into(),
        matches: key.iter().map(field).collect(),
        priority: 0,
    }
}

fn call(table: TableId, planned: &Action) -> ActionCall {
    let program = program();
    let name = planned.name.as_ref();
    let action = program
        .table_action(table, name)
        .unwrap_or_else(|| panic!("no action {name}"));
    let argument = |wanted: &str| {
        let found = planned.parameters.iter().find(|(name, _)| name == wanted);
        bits(found.unwrap_or_else(|| panic!("{name} without {wanted}")).1)
    };
    let parameters = &program.actions()[action.index()].parameters;
    assert_eq!(parameters.len(), planned.parameters.len(), "{name}");
    ActionCall {
        action,
        arguments: parameters
            .iter()
            .map(|parameter| argument(&parameter.name))
            .collect(),
    }
}
