//! Lossless fabrics on real interfaces: switches as processes, hosts as threads, cables as
//! pairs of virtual interfaces, all in a network namespace of their own.
#![allow(dead_code)] // each program that uses it uses another part

pub mod host;
pub mod scenario;
pub mod worm;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use host::{Host, Orders};
use scenario::Scenario;
use wormcast_switch_flow::BitRate;

/// How the switches run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processes {
    /// One for each switch; links between switches are cables.
    Many,
    /// One for all (`--fabric`); links between switches are in memory.
    One,
}

#[derive(Clone, Debug)]
pub struct Lab {
    /// The program `wormcast-switch`.
    pub switch: PathBuf,
    pub processes: Processes,
    /// Rate of every link, as `--link-rate` takes it.
    pub rate: String,
    /// Bytes of a frame.
    pub length: usize,
    /// How long hosts send.
    pub time: Duration,
    /// More options for the switches.
    pub options: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub sent: u64,
    pub received: u64,
    /// Numbers missing or out of order at receivers.
    pub wrong: u64,
    /// Frames each source got through.
    pub shares: BTreeMap<u16, u64>,
    /// How long all were sending.
    pub sending: Duration,
    /// Statistics of each switch.
    pub switches: Vec<Value>,
    /// Lines of the switches' logs.
    pub log: String,
    /// Most memory of each process, KiB (VmHWM).
    pub memory_kib: Vec<u64>,
    /// Most worms that waited in one host in transit.
    pub in_transit_max: usize,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            "pauses_sent",
            "held_back",
            "headroom_full",
            "lossy_full",
            "storms",
            "storm_drops",
        ];
        let counts = counts.map(|count| (count, self.pauses(count)));
        let ports = [
            "receive_ring_full",
            "received_frames",
            "sent_frames",
            "no_link",
        ];
        let ports = ports.map(|count| (count, self.ports(count)));
        let warnings = self.log.lines().filter(|line| line.contains("[warn]"));
        write!(
            f,
            "sent {} received {} wrong {} dropped {} {counts:?} {ports:?} shares {:?} memory {:?} KiB\n{}",
            self.sent,
            self.received,
            self.wrong,
            self.drops(),
            self.shares,
            self.memory_kib,
            warnings.collect::<Vec<_>>().join("\n")
        )
    }
}

impl Outcome {
    /// Sum of a count over all ports of all switches.
    pub fn ports(&self, count: &str) -> u64 {
        let ports = self
            .switches
            .iter()
            .flat_map(|switch| switch["ports"].as_array());
        ports
            .flatten()
            .filter_map(|port| port[count].as_u64())
            .sum()
    }

    /// Sum of a count of flow control over all ports of all switches.
    pub fn pauses(&self, count: &str) -> u64 {
        let of = |switch: &Value| switch["lossless"]["ports"].as_array().cloned();
        let ports = self.switches.iter().filter_map(of).flatten();
        ports.filter_map(|port| port[count].as_u64()).sum()
    }

    /// Frames that any switch dropped, for whatever cause.
    pub fn drops(&self) -> u64 {
        let of = |switch: &Value| -> u64 {
            let pipeline = switch["pipeline"].as_object();
            let drops = pipeline
                .into_iter()
                .flatten()
                .filter(|(name, _)| name.starts_with("drop."));
            drops.filter_map(|(_, count)| count.as_u64()).sum()
        };
        let pipelines: u64 = self.switches.iter().map(of).sum();
        let ports = [
            "receive_ring_full",
            "receive_too_long",
            "queue_tail_drops",
            "send_failed",
            "send_bad_length",
            "no_link",
        ];
        pipelines
            + ports.iter().map(|count| self.ports(count)).sum::<u64>()
            + self.pauses("headroom_full")
            + self.pauses("storm_drops")
    }

    /// How far the share of any source is from the mean, of the mean.
    pub fn unfairness(&self) -> f64 {
        let mean = self.shares.values().sum::<u64>() as f64 / self.shares.len().max(1) as f64;
        let apart = self
            .shares
            .values()
            .map(|share| (*share as f64 - mean).abs() / mean);
        apart.fold(0.0, f64::max)
    }
}

/// The worm program in which every port is known without a controller.
pub fn program(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4src/compiled/wormcast.json");
    let text = std::fs::read_to_string(source).unwrap();
    let mut program: Value = serde_json::from_str(&text).unwrap();
    let known = program["actions"].as_array().unwrap().iter();
    let known = known.filter(|action| action["name"] == "ingress.port_known");
    let known: Vec<Value> = known.map(|action| action["id"].clone()).collect();
    for pipeline in program["pipelines"].as_array_mut().unwrap() {
        for table in pipeline["tables"].as_array_mut().unwrap() {
            if table["name"] != "ingress.ports" {
                continue;
            }
            let ids = table["action_ids"].as_array().unwrap().clone();
            let id = known.iter().find(|id| ids.contains(id)).unwrap();
            table["default_entry"] = json!({
                "action_id": id, "action_const": false, "action_data": [], "action_entry_const": false
            });
        }
    }
    let path = directory.join("worm.json");
    std::fs::write(&path, program.to_string()).unwrap();
    path
}

/// Switches that run; they end when this is dropped.
struct Running {
    children: Vec<Child>,
    logs: Vec<PathBuf>,
    statistics: Vec<PathBuf>,
    is_fabric: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Nothing has come out of a cable for so long when it is quiet, while each host has looked so often, and all switches were
/// found asleep so often.
const QUIET: Duration = Duration::from_millis(700);
const LOOKS_LEAST: u64 = 10;
const IDLE_LEAST: u32 = 3;

/// Whether all threads of a process wait for something.
fn sleeps(child: &Child) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", child.id())) else {
        return true;
    };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("S", |(_, rest)| rest);
        state.starts_with('S')
    })
}

/// Ends a process as a user would.
fn terminate(child: &Child) {
    // SAFETY: no pointers; the process is a child that has not been waited for.
    unsafe {
        libc::kill(child.id() as libc::pid_t, libc::SIGTERM);
    }
}

fn ip(command: &str) {
    let output = Command::new("ip")
        .args(command.split_whitespace())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {command}: {text}");
}

fn cable(one: &str, other: &str) {
    ip(&format!("link add {one} type veth peer name {other}"));
    ip(&format!("link set {one} up"));
    ip(&format!("link set {other} up"));
}

impl Lab {
    /// Runs a scenario in the network namespace of this thread, which must be empty.
    pub fn run(&self, scenario: &Scenario) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        for (number, (switch, port)) in scenario.hosts.iter().enumerate() {
            cable(&format!("s{switch}-{port}"), &format!("h{number}"));
        }
        if self.processes == Processes::Many {
            for ((one, one_port), (other, other_port)) in &scenario.links {
                cable(
                    &format!("s{one}-{one_port}"),
                    &format!("s{other}-{other_port}"),
                );
            }
        }
        let running = self.start(scenario, directory.path());
        let start = Instant::now();
        let orders = Arc::new(Orders::new(scenario.hosts.len()));
        let hosts: Vec<_> = (0..scenario.hosts.len())
            .map(|number| {
                let rate: BitRate = self.rate.parse().unwrap();
                let mut host = Host::new(number as u16, rate, 0);
                let flows = scenario.flows.iter().filter(|flow| flow.0 == number);
                host.flows
                    .extend(flows.map(|(_, route, class2)| host::Flow {
                        route: route.clone(),
                        class2: *class2,
                        length: self.length,
                    }));
                let orders = Arc::clone(&orders);
                let storm = scenario
                    .storm
                    .filter(|storm| storm.0 == number)
                    .map(|storm| storm.1);
                thread::spawn(move || {
                    let interface = format!("h{number}");
                    host::run(host, number, &interface, start, &orders, storm)
                })
            })
            .collect();
        thread::sleep(self.time);
        orders.quiet.store(true, Ordering::Relaxed);
        let sending = start.elapsed();
        self.await_quiet(scenario, &orders, &running);
        orders.end.store(true, Ordering::Relaxed);
        let hosts: Vec<Host> = hosts
            .into_iter()
            .map(|host| host.join().unwrap().unwrap())
            .collect();
        let mut shares = BTreeMap::new();
        for ((source, _), arrived) in hosts.iter().flat_map(|host| &host.arrived) {
            *shares.entry(*source).or_default() += arrived.frames;
        }
        let (switches, log, memory_kib) = running.finish();
        Outcome {
            sent: hosts.iter().map(|host| host.sent).sum(),
            received: hosts.iter().map(Host::received).sum(),
            wrong: hosts.iter().map(Host::wrong).sum(),
            shares,
            sending,
            switches,
            log,
            memory_kib,
            in_transit_max: hosts
                .iter()
                .map(|host| host.in_transit_max)
                .max()
                .unwrap_or(0),
        }
    }

    /// Waits until nothing comes out of any cable any more, though every host and switch could have sent: a host looked
    /// again and again, and the threads of a switch had nothing left to do. A starved one has not.
    fn await_quiet(&self, scenario: &Scenario, orders: &Orders, running: &Running) {
        let count = || -> u64 {
            let hosts = 0..scenario.hosts.len();
            let of = |host| {
                let path = "/proc/thread-self/net/dev";
                let text = std::fs::read_to_string(path).unwrap();
                let name = format!("h{host}:");
                let line = text
                    .lines()
                    .find(|line| line.trim_start().starts_with(&name))
                    .unwrap();
                let fields: Vec<&str> = line.split_whitespace().collect();
                // Packets received; pause frames are among them, but quiet ends them too.
                fields[2].parse::<u64>().unwrap()
            };
            hosts.map(of).sum()
        };
        let looks = || -> Vec<u64> {
            let looks = orders.looks.iter();
            looks.map(|looks| looks.load(Ordering::Relaxed)).collect()
        };
        let (mut seen, mut since) = (count(), Instant::now());
        let (mut looked, mut idle) = (looks(), 0);
        let limit = Instant::now() + scenario.patience;
        while Instant::now() < limit {
            thread::sleep(Duration::from_millis(50));
            idle += u32::from(running.children.iter().all(sleeps));
            let now = count();
            if now != seen {
                (seen, since, looked, idle) = (now, Instant::now(), looks(), 0);
            }
            let all_looked = looked
                .iter()
                .zip(looks())
                .all(|(before, now)| now - before >= LOOKS_LEAST);
            if since.elapsed() >= QUIET && all_looked && idle >= IDLE_LEAST {
                return;
            }
        }
    }

    fn start(&self, scenario: &Scenario, directory: &Path) -> Running {
        let program = program(directory);
        let mut running = Running {
            children: Vec::new(),
            logs: Vec::new(),
            statistics: Vec::new(),
            is_fabric: self.processes == Processes::One,
        };
        let mut commands = Vec::new();
        match self.processes {
            Processes::Many => {
                for switch in 0..scenario.switches {
                    let mut command = Command::new(&self.switch);
                    command
                        .arg(&program)
                        .args(["--device-id", &switch.to_string()]);
                    for port in scenario.ports(switch) {
                        command.args(["-i", &format!("{port}@s{switch}-{port}")]);
                    }
                    for (at, port, rate) in &scenario.rates {
                        if *at == switch {
                            command.args(["--link-rate", &format!("{port}:{rate}")]);
                        }
                    }
                    commands.push(command);
                }
            }
            Processes::One => {
                let mut command = Command::new(&self.switch);
                let file = directory.join("fabric.json");
                std::fs::write(&file, scenario.fabric(&program).to_string()).unwrap();
                command.arg("--fabric").arg(file);
                commands.push(command);
            }
        }
        for (number, mut command) in commands.into_iter().enumerate() {
            let log = directory.join(format!("{number}.log"));
            let statistics = directory.join(format!("{number}.json"));
            command
                .args(["--lossless", "--link-rate", &self.rate, "--log-console"])
                .args(&self.options)
                .args([
                    "--grpc-server-addr",
                    &format!("unix:{}/{number}.sock", directory.display()),
                ])
                .arg("--statistics")
                .arg(&statistics)
                .stdout(std::fs::File::create(&log).unwrap())
                .stderr(Stdio::inherit());
            running.children.push(command.spawn().unwrap());
            running.logs.push(log);
            running.statistics.push(statistics);
        }
        let ready = |log: &PathBuf| {
            std::fs::read_to_string(log)
                .unwrap_or_default()
                .contains("istening on")
        };
        let limit = Instant::now() + Duration::from_secs(60);
        while !running.logs.iter().all(ready) {
            assert!(Instant::now() < limit, "the switches do not start");
            thread::sleep(Duration::from_millis(20));
        }
        running
    }
}

impl Running {
    /// Ends the switches; gives what they say, and their memory.
    fn finish(mut self) -> (Vec<Value>, String, Vec<u64>) {
        let mut memory = Vec::new();
        for child in &self.children {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            memory.push(
                line.unwrap()
                    .split_whitespace()
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap(),
            );
            terminate(child);
        }
        for child in &mut self.children {
            assert!(child.wait().unwrap().success());
        }
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
        let mut switches = Vec::new();
        for path in &self.statistics {
            match serde_json::from_str(&read(path)).unwrap() {
                // Those of a fabric by device id.
                Value::Object(many) if self.is_fabric => {
                    switches.extend(many.into_iter().map(|(_, switch)| switch));
                }
                one => switches.push(one),
            }
        }
        let log = self.logs.iter().map(read).collect();
        (switches, log, memory)
    }
}
