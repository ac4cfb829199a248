//! The agent's own binary, started for a test.

use super::wait_until;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wormcast_agent::client::Client;

pub struct TestAgent {
    pub socket: PathBuf,
    pub log: PathBuf,
    child: Child,
    directory: PathBuf,
    host: u16,
    controller: String,
    options: Vec<String>,
}

impl TestAgent {
    /// Host `host` on interface `h<host>`.
    pub fn start(directory: &Path, host: u16, controller: &str, options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let socket = directory.join(format!("h{host}.sock"));
        let log = directory.join(format!("h{host}.log"));
        let child = spawn(&socket, &log, host, controller, &options);
        let directory = directory.to_owned();
        Self {
            socket,
            log,
            child,
            directory,
            host,
            controller: controller.to_owned(),
            options,
        }
    }

    /// SIGKILL and a new start.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(
            &self.socket,
            &self.log,
            self.host,
            &self.controller,
            &self.options,
        );
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM; its exit status.
    pub fn terminate(&mut self) -> i32 {
        // SAFETY: plain system call; the child is ours and not reaped yet.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Processor time used so far, µs.
    pub fn cpu_us(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11..13]
            .iter()
            .map(|field| field.parse::<u64>().unwrap())
            .sum();
        // SAFETY: plain library call.
        ticks * 1_000_000 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u64
    }

    /// Files and sockets that it has open.
    pub fn open_descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }

    /// How many of its threads read or write files.
    pub fn file_threads(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "file").count()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap_or_else(|error| panic!("{error}\n{}", self.log_text()))
    }

    pub fn status(&self) -> Value {
        self.client().status().unwrap()
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.status()["counters"][name]
            .as_u64()
            .unwrap_or_else(|| panic!("no counter {name}"))
    }

    pub fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn wait_for_plan(&self) {
        wait_until("plan", Duration::from_secs(600), || {
            Client::connect(&self.socket)
                .is_ok_and(|client| client.hello["plan_epoch"].as_u64() > Some(0))
        });
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!(
                "--- log of host {} in {}\n{}",
                self.host,
                self.directory.display(),
                self.log_text()
            );
        }
    }
}

fn spawn(socket: &Path, log: &Path, host: u16, controller: &str, options: &[String]) -> Child {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    Command::new(env!("CARGO_BIN_EXE_wormcast-agent"))
        .arg("--interface")
        .arg(format!("h{host}"))
        .arg("--controller")
        .arg(controller)
        .arg("--socket")
        .arg(socket)
        .arg("--state-dir")
        .arg(socket.with_extension("state"))
        .arg("--name")
        .arg(format!("h{host}"))
        .arg("--host-id")
        .arg(host.to_string())
        .args(options)
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}
