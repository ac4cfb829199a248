//! A switch as a process: started, watched until it has nothing more to do, ended.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use wormcast_switch_bmv2::nanomsg;
use wormcast_switch_bmv2::nanomsg::{Address, SocketType};
use wormcast_switch_bmv2::thrift;

/// How long a switch may take for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Held while a switch is started: a free port is free until its switch has bound it.
static STARTING: Mutex<()> = Mutex::new(());

/// Time between two looks at it.
const INTERVAL: Duration = Duration::from_millis(2);

/// A process that is ended with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A switch that runs; it ends with the value.
pub(crate) struct Process {
    /// Frames in and out.
    pub(super) packets: nanomsg::Client,
    /// What it publishes.
    pub(super) digests: nanomsg::Client,
    /// Its Thrift server.
    pub(super) calls: thrift::Client,
    running: Running,
    /// Its files; goes after it has ended.
    _folder: TempDir,
}

impl Process {
    /// Starts `command`, which takes the options of BMv2's `simple_switch`, with a program.
    pub(crate) fn start(command: &Path, json: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let at = |name: &str| folder.path().join(name);
        let say = |error: std::io::Error| format!("{}: {error}", folder.path().display());
        fs::write(at("program.json"), json).map_err(say)?;
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let thrift_port = free_port().map_err(|error| format!("a free port: {error}"))?;
        let log = File::create(at("log")).map_err(say)?;
        let socket = |name: &str| Address::Ipc(at(name)).to_string();
        let child = Command::new(command)
            .arg(at("program.json"))
            .args(["--packet-in", &socket("packets")])
            .args(["--notifications-addr", &socket("digests")])
            .args(["--thrift-port", &thrift_port.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(say)?)
            .stderr(log)
            .spawn();
        let child = child.map_err(|error| format!("{}: {error}", command.display()))?;
        let mut running = Running(child);
        let connected = connect(&mut running.0, folder.path(), thrift_port);
        let (packets, digests, calls) = connected.map_err(|problem| {
            let said = fs::read_to_string(at("log")).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(5)..].join(" / ");
            format!("{}: {problem}; it said: {last}", command.display())
        })?;
        Ok(Self {
            packets,
            digests,
            calls,
            running,
            _folder: folder,
        })
    }

    /// Waits until none of its threads has anything to do: all sleep, and none of them has
    /// run between two looks. Whatever it had been sent has then been worked off, since a
    /// thread that is handed something can be seen to run before the other one sleeps.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let mut before = None;
        while start.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.running.0.try_wait() {
                return Err(format!("the switch has ended ({status})"));
            }
            let now = self.activity()?;
            if now.is_some() && now == before {
                return Ok(());
            }
            before = now;
            thread::sleep(INTERVAL);
        }
        Err(format!("the switch is busy for {} s", PATIENCE.as_secs()))
    }

    /// How often its threads were put to sleep or taken off their processors; `None` if one
    /// of them is not asleep.
    fn activity(&self) -> Result<Option<u64>, String> {
        let tasks = format!("/proc/{}/task", self.running.0.id());
        let tasks = fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))?;
        let mut switches = 0;
        for task in tasks.flatten() {
            // One that has just ended has no status.
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            for line in status.lines() {
                match line.split_once(':') {
                    Some(("State", state)) if !state.trim_start().starts_with('S') => {
                        return Ok(None);
                    }
                    Some((name, count)) if name.ends_with("ctxt_switches") => {
                        switches += count.trim().parse::<u64>().unwrap_or(0);
                    }
                    _ => {}
                }
            }
        }
        Ok(Some(switches))
    }
}

/// Connects to everything of a switch once that is there: its Thrift server comes last. Each
/// connection is made once, since an end of a pair takes no second one while it has a first.
fn connect(
    child: &mut Child,
    folder: &Path,
    thrift_port: u16,
) -> Result<(nanomsg::Client, nanomsg::Client, thrift::Client), String> {
    let calls = retry(child, || {
        let mut calls = thrift::Client::connect(thrift_port, PATIENCE)?;
        // BMv2 listens before it knows all its services.
        let answer = calls.call("simple_switch:get_time_elapsed_us", Vec::new());
        answer.map_err(std::io::Error::other)?;
        Ok(calls)
    })?;
    let socket = |name: &str, kind| {
        nanomsg::Client::connect(&Address::Ipc(folder.join(name)), kind, PATIENCE)
    };
    let packets = retry(child, || socket("packets", SocketType::Pair))?;
    let digests = retry(child, || socket("digests", SocketType::Subscriber))?;
    Ok((packets, digests, calls))
}

/// Tries again while the switch starts.
fn retry<T>(child: &mut Child, connect: impl Fn() -> std::io::Result<T>) -> Result<T, String> {
    let start = Instant::now();
    loop {
        let error = match connect() {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("it has ended ({status})"));
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("no connection: {error}"));
        }
        thread::sleep(INTERVAL);
    }
}

fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(command: &str) -> String {
        match Process::start(Path::new(command), "{}") {
            Ok(_) => panic!("{command} is no switch"),
            Err(problem) => problem,
        }
    }

    #[test]
    fn what_is_no_switch_is_said() {
        let problem = problem("/no/such/switch");
        assert!(problem.starts_with("/no/such/switch: "), "{problem}");
    }

    #[test]
    fn a_switch_that_ends_is_said() {
        let problem = problem("false");
        assert!(problem.starts_with("false: it has ended"), "{problem}");
    }
}
