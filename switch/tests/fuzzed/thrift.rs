//! Thrift: bytes as a connection brings them, and calls of every method. Each message that
//! can be read is the same when it has been written and read again, each call has an answer
//! that a client can read, and the state as text can be restored.
//!
//! Input: the number of a program, then steps: bytes of a connection, a packet, or a method
//! and its arguments.

use std::sync::OnceLock;

use super::draws::Draws;
use super::programs::{self, Case};
use super::wire::{Wire, forward};
use wormcast_switch_bmv2::thrift::{
    Context, Identity, METHODS, Message, MessageKind, State, Target, Type, Value, answer, restore,
    save,
};
use wormcast_switch_dataplane::{Installed, PortStatus, Queues};
use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::{Execution, Pipeline, PipelineConfig, PortId};
use wormcast_switch_program::Program;

/// Steps of one input.
const STEPS_MAX: usize = 64;

/// Names that arguments may be, beside anything else.
struct Base {
    case: Case,
    names: Vec<String>,
}

fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| {
        let cases = programs::cases().into_iter();
        cases
            .map(|case| Base {
                names: names(&case.program),
                case,
            })
            .collect()
    })
}

fn names(program: &Program) -> Vec<String> {
    let tables = program.tables().iter().map(|table| table.name.clone());
    let actions = program.actions().iter().map(|action| action.name.clone());
    let profiles = program
        .action_profiles()
        .iter()
        .map(|profile| profile.name.clone());
    let counters = program
        .counters()
        .iter()
        .map(|counter| counter.name.clone());
    let registers = program
        .registers()
        .iter()
        .map(|register| register.name.clone());
    let meters = program.meters().iter().map(|meter| meter.name.clone());
    let sets = program.value_sets().iter().map(|set| set.name.clone());
    let named = tables.chain(actions).chain(profiles).chain(counters);
    named.chain(registers).chain(meters).chain(sets).collect()
}

/// A switch without ports.
struct Bench {
    pipeline: Option<Pipeline>,
    now_us: u64,
}

impl Target for Bench {
    fn pipeline(&mut self) -> Option<&mut Pipeline> {
        self.pipeline.as_mut()
    }

    fn installed(&self) -> Option<Installed> {
        let pipeline = self.pipeline.as_ref()?;
        Some(Installed {
            program: pipeline.program().clone(),
            number: 0,
        })
    }

    fn install(&mut self, pipeline: Pipeline) {
        self.pipeline = Some(pipeline);
    }

    fn elapsed_us(&self) -> u64 {
        self.now_us
    }

    fn unix_us(&self) -> u64 {
        self.now_us
    }

    fn ports(&mut self) -> Vec<PortStatus> {
        Vec::new()
    }

    fn add_port(&mut self, _: PortId, interface: &str) -> Result<(), String> {
        Err(format!("there is no interface `{interface}`"))
    }

    fn remove_port(&mut self, number: PortId) -> Result<(), String> {
        Err(format!("there is no port {}", number.0))
    }

    fn set_queue_depth(&mut self, _: Queues, _: usize) -> Result<(), String> {
        Ok(())
    }

    fn set_queue_rate(&mut self, _: Queues, _: u64) -> Result<(), String> {
        Ok(())
    }
}

pub fn run(data: &[u8]) {
    let mut draws = Draws::new(data);
    let base = &bases()[usize::from(draws.byte()) % bases().len()];
    let config = PipelineConfig {
        compiler: compiler_of(Execution::Interpreted),
        ..PipelineConfig::default()
    };
    let mut bench = Bench {
        pipeline: Some(Pipeline::new(base.case.program.clone(), config)),
        now_us: 0,
    };
    let mut state = State::new(Identity {
        pipeline: config,
        swap: true,
        ..Identity::default()
    });
    for _ in 0..STEPS_MAX {
        if draws.is_empty() {
            break;
        }
        bench.now_us += 1_000;
        let kind = draws.byte();
        if kind == 255 {
            let mut connection = draws.block(4_096);
            while let Ok(message) = Message::read(&mut connection) {
                call(&mut bench, &mut state, message);
            }
        } else if kind == 254 {
            let (packet, now_us) = (draws.block(512), bench.now_us);
            if let Some(pipeline) = &mut bench.pipeline {
                let mut wire = Wire {
                    copies_max: Some(64),
                    ..Wire::default()
                };
                forward(pipeline, &mut wire, 1, packet, now_us, 0);
            }
        } else {
            let method = &METHODS[usize::from(kind) % METHODS.len()];
            let arguments = method
                .arguments
                .iter()
                .map(|kind| value(*kind, base, &mut draws));
            let message = Message {
                name: format!("{}:{}", method.service, method.name),
                kind: MessageKind::Call,
                sequence: 7,
                fields: (1..).zip(arguments).collect(),
            };
            call(&mut bench, &mut state, message);
        }
    }
    if let Some(pipeline) = &bench.pipeline {
        check_saved(pipeline);
    }
}

fn call(bench: &mut Bench, state: &mut State, message: Message) {
    check_bytes(&message);
    let sequence = message.sequence;
    let mut context = Context {
        switch: bench,
        state,
    };
    let (answer, why) = answer(&mut context, message);
    assert_eq!(answer.sequence, sequence);
    assert!(answer.kind != MessageKind::Exception || why.is_some());
    check_bytes(&answer);
}

/// Written, read and written, a message is the same.
fn check_bytes(message: &Message) {
    let bytes = message.to_bytes();
    let again = Message::read(bytes.as_slice()).expect("a message");
    assert_eq!(again.to_bytes(), bytes);
}

/// A pipeline that is given the state of another one has that state.
fn check_saved(pipeline: &Pipeline) {
    let text = save(pipeline);
    let mut fresh = Pipeline::new(pipeline.program().clone(), *pipeline.config());
    if let Err(error) = restore(&mut fresh, &text) {
        panic!("{error}: {text}");
    }
    assert_eq!(save(&fresh), text);
}

/// An argument of a type, which means something now and then.
fn value(kind: Type, base: &Base, draws: &mut Draws<'_>) -> Value {
    match kind {
        Type::Bool => Value::Bool(draws.one_in(2)),
        Type::I8 => Value::I8(draws.byte() as i8),
        Type::I16 => Value::I16(number(draws) as i16),
        Type::I32 => Value::I32(number(draws) as i32),
        Type::I64 => Value::I64(number(draws)),
        Type::Double => Value::Double(f64::from(draws.byte()) / 4.0),
        Type::Binary => text(base, draws),
        Type::Struct => structure(draws),
        Type::List | Type::Set | Type::Map => {
            let kind = [Type::Binary, Type::Struct, Type::I32][draws.below(3)];
            let items: Vec<Value> = (0..draws.below(5))
                .map(|_| match kind {
                    Type::Binary => Value::Binary(draws.block(8).to_vec()),
                    Type::Struct => structure(draws),
                    _ => Value::I32(number(draws) as i32),
                })
                .collect();
            Value::List(kind, items)
        }
    }
}

fn number(draws: &mut Draws<'_>) -> i64 {
    match draws.byte() {
        255 => i64::from_le_bytes(std::array::from_fn(|_| draws.byte())),
        254 => i64::from(i32::MAX),
        253 => i64::from(i32::MIN),
        252 => -1,
        251 => i64::from(draws.half()),
        small => i64::from(small % 16),
    }
}

fn text(base: &Base, draws: &mut Draws<'_>) -> Value {
    let chosen = draws.below(64);
    match chosen {
        63 => Value::text(base.case.program.text()),
        62 => Value::Binary(draws.block(64).to_vec()),
        56..62 => {
            let bits: String = (0..draws.below(20))
                .map(|_| if draws.one_in(3) { '1' } else { '0' })
                .collect();
            Value::text(&bits)
        }
        _ => match base.names.len() {
            0 => Value::text("?"),
            // Two bytes, so that each of many names can be chosen.
            count => Value::text(&base.names[(chosen + 56 * draws.below(4)) % count]),
        },
    }
}

/// A structure with some fields; among them are those of key parameters (`BmMatchParam`) and
/// of rates, options and sessions.
fn structure(draws: &mut Draws<'_>) -> Value {
    let inner = |draws: &mut Draws<'_>| {
        let first = match draws.below(3) {
            0 => Value::Bool(true),
            1 => Value::I32(number(draws) as i32),
            _ => Value::Binary(draws.block(16).to_vec()),
        };
        let second = match draws.below(2) {
            0 => Value::I32(number(draws) as i32),
            _ => Value::Binary(draws.block(16).to_vec()),
        };
        Value::Struct(vec![(1, first), (2, second)])
    };
    match draws.below(4) {
        // A match of one of the kinds: exact 0, prefix 1, ternary 2, valid 3, range 4.
        0 | 1 => {
            let kind = draws.below(6) as i16;
            Value::Struct(vec![
                (1, Value::I32(i32::from(kind))),
                (kind + 2, inner(draws)),
            ])
        }
        2 => {
            let rate = Value::Double(f64::from(draws.byte()) / 16.0);
            Value::Struct(vec![(1, rate), (2, Value::I32(number(draws) as i32))])
        }
        _ => {
            let fields = (1..).zip((0..draws.below(4)).map(|_| Value::I32(number(draws) as i32)));
            Value::Struct(fields.collect())
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let wanted = ["objects", "entities", "selectors", "meters", "tables"];
    let chosen = bases().iter().enumerate();
    for (program, _) in chosen.filter(|(_, base)| wanted.contains(&base.case.name.as_str())) {
        for method in 0..METHODS.len() as u8 {
            seeds.push([&[program as u8, method][..], &[0; 24]].concat());
        }
    }
    let message = Message {
        name: "standard:bm_mt_get_num_entries".to_owned(),
        kind: MessageKind::Call,
        sequence: 1,
        fields: vec![
            (1, Value::I32(0)),
            (2, Value::text("ingress.addresses")),
            (
                3,
                Value::Map(
                    Type::I8,
                    Type::Double,
                    vec![(Value::I8(1), Value::Double(0.5))],
                ),
            ),
            (4, Value::Set(Type::I16, vec![Value::I16(-1)])),
            (5, Value::List(Type::Bool, vec![Value::Bool(true)])),
        ],
    };
    let bytes = message.to_bytes();
    let mut seed = vec![0, 255];
    seed.extend((bytes.len() as u16).to_le_bytes());
    seed.extend(bytes);
    seeds.push(seed);
    seeds
}
