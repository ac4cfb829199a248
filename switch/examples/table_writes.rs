//! How fast a P4Runtime server takes table writes: one controller on one connection, several
//! batches in flight.
//!
//!     table_writes [--address HOST:PORT] [--config P4INFO.bin JSON] [--table NAME]
//!                  [--action NAME] [--entries N] [--batch N] [--in-flight N]
//!                  [--device-id N] [--pid PID] [--json]
//!
//! Without `--address` a switch runs in this process, and the processor time of the server
//! is that of its threads: all but the client's. With it, `--pid` names the process of the
//! server, whose processor time is then read from `/proc`. Entries are inserted, modified
//! and deleted, in that order; each is timed.

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use prost::Message;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use wormcast_switch_dataplane::log::Log;
use wormcast_switch_dataplane::{Dataplane, DataplaneSettings, SwitchSettings};
use wormcast_switch_listen::{Address, Listener};
use wormcast_switch_p4runtime::proto::p4::config::v1::{P4Info, Table};
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action as Set;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Action, Entity, FieldMatch, ForwardingPipelineConfig, MasterArbitrationUpdate, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, TableAction, TableEntry, Uint128,
    Update, WriteRequest, action, entity, field_match, stream_message_request, table_action,
    update,
};
use wormcast_switch_p4runtime::{Server, ServerSettings};
use wormcast_switch_pipeline::PipelineConfig;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Arguments {
    address: Option<String>,
    config: Option<(String, String)>,
    table: String,
    action: String,
    entries: usize,
    batch: usize,
    in_flight: usize,
    device_id: u64,
    pid: Option<u32>,
    json: bool,
}

fn parse() -> Outcome<Arguments> {
    let mut parsed = Arguments {
        address: None,
        config: None,
        table: "ingress.addresses".to_owned(),
        action: "ingress.forward".to_owned(),
        entries: 100_000,
        batch: 100,
        in_flight: 8,
        device_id: 1,
        pid: None,
        json: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or_else(|| format!("{name} needs a value"))
        };
        match name.as_str() {
            "--address" => parsed.address = Some(value()?),
            "--config" => parsed.config = Some((value()?, value()?)),
            "--table" => parsed.table = value()?,
            "--action" => parsed.action = value()?,
            "--entries" => parsed.entries = value()?.parse()?,
            "--batch" => parsed.batch = value()?.parse()?,
            "--in-flight" => parsed.in_flight = value()?.parse()?,
            "--device-id" => parsed.device_id = value()?.parse()?,
            "--pid" => parsed.pid = Some(value()?.parse()?),
            "--json" => parsed.json = true,
            other => return Err(format!("{other} is not an option").into()),
        }
    }
    if parsed.entries == 0 || parsed.batch == 0 || parsed.in_flight == 0 {
        return Err("--entries, --batch and --in-flight are at least 1".into());
    }
    Ok(parsed)
}

fn main() -> Outcome<()> {
    let arguments = parse()?;
    let config = read_config(&arguments)?;
    let size = arguments.entries as i64;
    let server = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("server")
        .enable_all()
        .build()?;
    let address = match &arguments.address {
        Some(address) => address.clone(),
        None => start(&server, arguments.device_id)?,
    };
    let client = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rates = client.block_on(measure(&arguments, &config, &address))?;
    if arguments.json {
        let of_kind = rates.iter().map(|rate| {
            let cpu = rate
                .server_cpu_us
                .map_or("null".to_owned(), |us| format!("{us:.3}"));
            format!(
                "\"{}\":{{\"writes_per_second\":{:.0},\"server_cpu_us_per_write\":{cpu}}}",
                rate.kind, rate.writes_per_second
            )
        });
        println!(
            "{{\"entries\":{size},\"batch\":{},\"in_flight\":{},{}}}",
            arguments.batch,
            arguments.in_flight,
            of_kind.collect::<Vec<_>>().join(",")
        );
    } else {
        for rate in rates {
            let cpu = rate
                .server_cpu_us
                .map_or("unknown".to_owned(), |us| format!("{us:.2} us"));
            println!(
                "{}: {:.0} writes/s, {cpu} of the server's processor time each",
                rate.kind, rate.writes_per_second
            );
        }
    }
    server.shutdown_timeout(Duration::from_millis(100));
    Ok(())
}

/// The config that is set; the table is made as large as needed.
fn read_config(arguments: &Arguments) -> Outcome<ForwardingPipelineConfig> {
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/objects");
    let (p4info, json) = match &arguments.config {
        Some((p4info, json)) => (fs::read(p4info)?, fs::read_to_string(json)?),
        None => {
            let json = fs::read_to_string(format!("{programs}.json"))?;
            (fs::read(format!("{programs}.p4info.bin"))?, json)
        }
    };
    let mut json: serde_json::Value = serde_json::from_str(&json)?;
    for pipeline in json["pipelines"].as_array_mut().into_iter().flatten() {
        for table in pipeline["tables"].as_array_mut().into_iter().flatten() {
            if table["name"] == arguments.table.as_str() {
                table["max_size"] = arguments.entries.into();
            }
        }
    }
    Ok(ForwardingPipelineConfig {
        p4info: Some(P4Info::decode(p4info.as_slice())?),
        p4_device_config: json.to_string().into_bytes(),
        cookie: None,
    })
}

/// A switch without interfaces in this process; gives its address.
fn start(runtime: &Runtime, device_id: u64) -> Outcome<String> {
    let settings = DataplaneSettings::single(SwitchSettings::without_ports(device_id, 64), 1);
    let (dataplane, from_dataplane) = Dataplane::start(&settings, Log::off())?;
    let handle = dataplane.handle(device_id).ok_or("no such device")?;
    let (_, from_dataplane) = from_dataplane.into_iter().next().ok_or("no switch")?;
    runtime.block_on(async {
        let settings = ServerSettings {
            device_id,
            pipeline: PipelineConfig::default(),
        };
        let server = Server::new(settings, handle, from_dataplane, Log::off());
        let address: Address = "127.0.0.1:0".parse()?;
        let listener = Listener::bind(&address).await?;
        let address = listener.local_address().ok_or("no address")?.to_string();
        tokio::spawn(async move {
            let _dataplane = dataplane; // for as long as it is served
            wormcast_switch_p4runtime::serve(listener, None, server, std::future::pending()).await
        });
        Ok(address)
    })
}

struct Rate {
    kind: &'static str,
    writes_per_second: f64,
    server_cpu_us: Option<f64>,
}

async fn measure(
    arguments: &Arguments,
    config: &ForwardingPipelineConfig,
    address: &str,
) -> Outcome<Vec<Rate>> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?
        .tcp_nodelay(true)
        .connect()
        .await?;
    let mut client = P4RuntimeClient::new(channel).max_decoding_message_size(64 << 20);
    let election_id = Uint128 { high: 0, low: 1 };
    // The stream makes this client primary for as long as it is open.
    let (outgoing, messages) = mpsc::channel(4);
    let arbitration = MasterArbitrationUpdate {
        device_id: arguments.device_id,
        election_id: Some(election_id),
        ..MasterArbitrationUpdate::default()
    };
    outgoing
        .send(StreamMessageRequest {
            update: Some(stream_message_request::Update::Arbitration(arbitration)),
        })
        .await?;
    // The first message is on its way before the answer is waited for: some servers send
    // nothing, headers included, until they have something to say.
    let mut stream = client
        .stream_channel(ReceiverStream::new(messages))
        .await?
        .into_inner();
    stream
        .message()
        .await?
        .ok_or("the server ended the stream")?;
    client
        .set_forwarding_pipeline_config(SetForwardingPipelineConfigRequest {
            device_id: arguments.device_id,
            election_id: Some(election_id),
            action: Set::VerifyAndCommit as i32,
            config: Some(config.clone()),
            ..SetForwardingPipelineConfigRequest::default()
        })
        .await?;
    let writer = Writer::new(arguments, config, client)?;
    let mut rates = Vec::new();
    for (kind, name) in [
        (update::Type::Insert, "insert"),
        (update::Type::Modify, "modify"),
        (update::Type::Delete, "delete"),
    ] {
        rates.push(writer.run(arguments, kind, name).await?);
        let there = writer.count(arguments).await?;
        let expected = match kind {
            update::Type::Delete => 0,
            _ => arguments.entries,
        };
        if there != expected {
            return Err(
                format!("after {name} the table has {there} entries, not {expected}").into(),
            );
        }
    }
    Ok(rates)
}

struct Writer {
    client: P4RuntimeClient<Channel>,
    table: Table,
    action: Action,
    election_id: Uint128,
}

impl Writer {
    fn new(
        arguments: &Arguments,
        config: &ForwardingPipelineConfig,
        client: P4RuntimeClient<Channel>,
    ) -> Outcome<Self> {
        let p4info = config.p4info.clone().unwrap_or_default();
        let mut tables = p4info.tables.into_iter();
        let name = |preamble: &Option<_>, wanted: &str| {
            preamble.as_ref().is_some_and(
                |preamble: &wormcast_switch_p4runtime::proto::p4::config::v1::Preamble| {
                    preamble.name == wanted
                },
            )
        };
        let table = tables.find(|table| name(&table.preamble, &arguments.table));
        let table = table.ok_or_else(|| format!("there is no table `{}`", arguments.table))?;
        let mut actions = p4info.actions.into_iter();
        let action = actions.find(|action| name(&action.preamble, &arguments.action));
        let action = action.ok_or_else(|| format!("there is no action `{}`", arguments.action))?;
        let params = action.params.iter().map(|parameter| action::Param {
            param_id: parameter.id,
            value: vec![1],
        });
        Ok(Self {
            client,
            action: Action {
                action_id: action.preamble.map_or(0, |preamble| preamble.id),
                params: params.collect(),
            },
            table,
            election_id: Uint128 { high: 0, low: 1 },
        })
    }

    async fn run(
        &self,
        arguments: &Arguments,
        kind: update::Type,
        name: &'static str,
    ) -> Outcome<Rate> {
        let mut first = 0;
        let mut in_flight = tokio::task::JoinSet::new();
        let mut requests = Vec::new();
        while first < arguments.entries {
            let last = arguments.entries.min(first + arguments.batch);
            requests.push(WriteRequest {
                device_id: arguments.device_id,
                election_id: Some(self.election_id),
                updates: (first..last)
                    .map(|number| self.update(kind, number))
                    .collect(),
                ..WriteRequest::default()
            });
            first = last;
        }
        let cpu = processor_time(arguments);
        let start = Instant::now();
        for request in requests {
            if in_flight.len() >= arguments.in_flight
                && let Some(done) = in_flight.join_next().await
            {
                done??;
            }
            let mut client = self.client.clone();
            in_flight.spawn(async move { client.write(request).await });
        }
        while let Some(done) = in_flight.join_next().await {
            done??;
        }
        let seconds = start.elapsed().as_secs_f64();
        let used = cpu.zip(processor_time(arguments));
        let entries = arguments.entries as f64;
        Ok(Rate {
            kind: name,
            writes_per_second: entries / seconds,
            server_cpu_us: used.map(|(before, after)| (after - before) * 1e6 / entries),
        })
    }

    /// Entries that the server says the table has.
    async fn count(&self, arguments: &Arguments) -> Outcome<usize> {
        let wanted = TableEntry {
            table_id: self.table.preamble.as_ref().map_or(0, |it| it.id),
            ..TableEntry::default()
        };
        let request = ReadRequest {
            device_id: arguments.device_id,
            entities: vec![Entity {
                entity: Some(entity::Entity::TableEntry(wanted)),
            }],
            ..ReadRequest::default()
        };
        let mut client = self.client.clone().max_decoding_message_size(usize::MAX);
        let mut answers = client.read(request).await?.into_inner();
        let mut count = 0;
        while let Some(answer) = answers.message().await? {
            count += answer.entities.len();
        }
        Ok(count)
    }

    /// The key is the number of the entry, in the first field; others are left out.
    fn update(&self, kind: update::Type, number: usize) -> Update {
        let fields = self.table.match_fields.first().into_iter();
        let matches = fields.map(|field| {
            let bytes = (number as u64 + 1).to_be_bytes();
            let width = field.bitwidth.unsigned_abs().div_ceil(8) as usize;
            let value = bytes[8usize.saturating_sub(width)..].to_vec();
            FieldMatch {
                field_id: field.id,
                field_match_type: Some(field_match::FieldMatchType::Exact(field_match::Exact {
                    value,
                })),
            }
        });
        let action = (kind != update::Type::Delete).then(|| TableAction {
            r#type: Some(table_action::Type::Action(self.action.clone())),
        });
        let entry = TableEntry {
            table_id: self
                .table
                .preamble
                .as_ref()
                .map_or(0, |preamble| preamble.id),
            r#match: matches.collect(),
            action,
            ..TableEntry::default()
        };
        Update {
            r#type: kind as i32,
            entity: Some(Entity {
                entity: Some(entity::Entity::TableEntry(entry)),
            }),
        }
    }
}

/// Seconds of processor time of the server so far.
fn processor_time(arguments: &Arguments) -> Option<f64> {
    if arguments.address.is_some() {
        return process_time(arguments.pid?);
    }
    threads_time("/proc/self/task", std::process::id())
}

/// Of a process, threads that have ended included; proc_pid_stat(5).
fn process_time(pid: u32) -> Option<f64> {
    /// Ticks a second in /proc, on all Linux that there is.
    const TICKS: f64 = 100.0;
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = text.rsplit_once(')')?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let (user, system) = (fields.get(11)?, fields.get(12)?);
    Some((user.parse::<f64>().ok()? + system.parse::<f64>().ok()?) / TICKS)
}

/// Of all threads but one.
fn threads_time(directory: &str, except: u32) -> Option<f64> {
    let mut nanoseconds = 0u64;
    for thread in fs::read_dir(directory).ok()?.flatten() {
        if thread.file_name().to_str() == Some(&except.to_string()) {
            continue;
        }
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        nanoseconds += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(nanoseconds as f64 / 1e9)
}
