//! A switch as a process that publishes notifications, and who hears them: this one, or
//! BMv2's where it is installed.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::rig::PATIENCE;
use super::thrift_client::{Client, int, text};
use wormcast_switch_bmv2::nanomsg;
use wormcast_switch_bmv2::nanomsg::{Address, SocketType};
use wormcast_switch_bmv2::thrift::{Type, Value};
use wormcast_switch_ports::PcapWriter;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(2);

/// A switch that publishes; it ends with the value.
pub struct Publishing {
    pub client: Client,
    pub heard: nanomsg::Client,
    /// Its files; they go after it has ended.
    pub folder: tempfile::TempDir,
    input: Option<PcapWriter<File>>,
    child: Child,
}

impl Drop for Publishing {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprint!("{}", self.errors());
        }
    }
}

/// This switch under the name of BMv2's.
pub fn own(folder: &Path) -> PathBuf {
    let binary = folder.join("simple_switch");
    if !binary.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wormcast-switch"), &binary).unwrap();
    }
    binary
}

/// BMv2's, if it is installed.
pub fn bmv2() -> Option<PathBuf> {
    let found = Command::new("simple_switch").arg("--version").output();
    match found {
        Ok(found) if found.status.success() => Some("simple_switch".into()),
        _ => {
            eprintln!("skipped: simple_switch is not installed");
            None
        }
    }
}

/// A program of these tests, whose entries age.
pub fn ageing(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let json = fs::read(path.join(name)).unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    for pipeline in json["pipelines"].as_array_mut().unwrap() {
        for table in pipeline["tables"].as_array_mut().unwrap() {
            table["support_timeout"] = true.into();
        }
    }
    json.to_string()
}

/// A port of TCP that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Tries until there is a value.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited for {what}");
        thread::sleep(INTERVAL);
    }
}

fn errors_in(folder: &Path) -> String {
    fs::read_to_string(folder.join("errors")).unwrap_or_default()
}

impl Publishing {
    /// Starts a switch with a program, whose frames come from a capture that is being
    /// written, to port 3. Port 1 is there to send by.
    pub fn start(command: Option<&Path>, json: &str) -> Self {
        Self::start_with(command, json, &[])
    }

    /// The same with more arguments.
    pub fn start_with(command: Option<&Path>, json: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let nothing = File::create(folder.path().join("other_in.pcap"));
        PcapWriter::new(nothing.unwrap()).unwrap().flush().unwrap();
        let fifo = folder.path().join("port_in.pcap");
        let path = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        // SAFETY: mkfifo reads the path, which ends with a zero byte and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        // A pipe opened both ways does not wait for the other end.
        let input = OpenOptions::new().read(true).write(true).open(&fifo);
        let mut input = PcapWriter::new(input.unwrap()).unwrap();
        input.flush().unwrap();
        let ports = ["-i", "3@port", "-i", "1@other", "--use-files", "0"];
        let arguments = [&ports, more].concat();
        let mut switch = Self::start_in(folder, command, json, &arguments);
        switch.input = Some(input);
        switch
    }

    /// Starts a switch with these arguments beside those that it needs.
    pub fn start_in(
        folder: tempfile::TempDir,
        command: Option<&Path>,
        json: &str,
        arguments: &[&str],
    ) -> Self {
        let command = command.map_or_else(|| own(folder.path()), Path::to_owned);
        fs::write(folder.path().join("program.json"), json).unwrap();
        let port = free_port();
        let address = Address::Ipc(folder.path().join("notifications"));
        let mut child = Command::new(command)
            .current_dir(folder.path())
            .args(arguments)
            .args(["--notifications-addr", &address.to_string()])
            .args(["--thrift-port", &port.to_string(), "--device-id", "7"])
            .arg("program.json")
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("errors")).unwrap())
            .spawn()
            .unwrap();
        let client = wait_for("the Thrift server", || {
            let ended = child.try_wait().unwrap();
            assert_eq!(ended, None, "{}", errors_in(folder.path()));
            let mut client = Client::connect(port, PATIENCE).ok()?;
            // BMv2 listens before it knows all its services.
            let call = client.call("simple_switch:get_time_elapsed_us", Vec::new());
            call.ok().map(|_| client)
        });
        let heard = nanomsg::Client::connect(&address, SocketType::Subscriber, PATIENCE).unwrap();
        let mut switch = Self {
            client,
            heard,
            folder,
            input: None,
            child,
        };
        // BMv2 may take a subscriber a moment after it has sent its header.
        thread::sleep(Duration::from_millis(100));
        switch.client.standard("bm_reset_state", Vec::new()).ok();
        switch
    }

    /// What it has written to its standard error.
    pub fn errors(&self) -> String {
        errors_in(self.folder.path())
    }

    /// Sends a frame into port 3.
    pub fn send(&mut self, frame: &[u8]) {
        let input = self.input.as_mut().expect("a switch with captures");
        input.write(0, frame).unwrap();
        input.flush().unwrap();
    }

    /// The next notification.
    pub fn hear(&mut self) -> Vec<u8> {
        wait_for("a notification", || self.heard.receive().unwrap())
    }

    /// A call about learning lists.
    pub fn learning(&mut self, method: &str, list: i32, rest: Vec<Value>) {
        let arguments = [vec![int(list)], rest].concat();
        let arguments = [vec![int(0)], arguments].concat();
        self.client
            .call(&format!("standard:{method}"), arguments)
            .unwrap();
    }

    pub fn acknowledge(&mut self, list: i32, buffer: i64, samples: &[i32]) {
        let samples = samples.iter().map(|sample| int(*sample)).collect();
        let samples = Value::List(Type::I32, samples);
        self.learning("bm_learning_ack", list, vec![Value::I64(buffer), samples]);
    }

    /// Sets the timeout of an entry.
    pub fn set_timeout(&mut self, table: &str, handle: i32, timeout_ms: i32) {
        let arguments = vec![text(table), int(handle), int(timeout_ms)];
        self.client
            .standard("bm_mt_set_entry_ttl", arguments)
            .unwrap();
    }

    pub fn signal(&self, number: libc::c_int) {
        // SAFETY: kill takes two integers; the child has not been waited for, so that its
        // process id is still its own.
        unsafe { libc::kill(self.child.id() as i32, number) };
    }

    /// Ends it as scripts do; whether it ended well.
    pub fn end(mut self) -> bool {
        self.signal(libc::SIGTERM);
        self.child.wait().unwrap().success()
    }
}
