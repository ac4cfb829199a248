//! The binary in the place of BMv2's, driven as scripts drive that.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::rig::PATIENCE;
use super::thrift_client::{Client, connect, data, exact, int, list, priority, text};
use wormcast_switch_bmv2::thrift::{Type, Value};
use wormcast_switch_ports::{PcapReader, PcapWriter};

/// A switch of its own process, ended with the value.
pub struct Process {
    child: Child,
    /// Stays open, for a switch that goes on printing.
    _output: BufReader<ChildStdout>,
    thrift_port: u16,
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

impl Process {
    /// Starts the switch as `simple_switch`, which has no P4Runtime unless it is told an
    /// address, and waits for its Thrift server.
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let address = format!("ipc://{}/notifications", directory.display());
        let arguments = [&["--notifications-addr", &address], arguments].concat();
        Self::start_as("simple_switch", directory, &arguments)
    }

    /// The same under any name, and with notifications where they are without being asked
    /// for.
    pub fn start_as(name: &str, directory: &Path, arguments: &[&str]) -> Self {
        let binary = directory.join(name);
        if !binary.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wormcast-switch"), &binary).unwrap();
        }
        let mut child = Command::new(binary)
            .current_dir(directory)
            .args(["--thrift-port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.by_ref().lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let is_simple = name == "simple_switch";
            assert!(
                !(is_simple && line.starts_with("Server listening")),
                "no P4Runtime"
            );
            let port = line.strip_prefix("Thrift server listening on port ")?;
            Some(port.parse().unwrap())
        });
        Self {
            thrift_port: port.expect("the Thrift server starts"),
            child,
            _output: output,
        }
    }

    pub fn client(&self) -> Client {
        connect(self.thrift_port)
    }

    /// Ends it as scripts do; whether it ended well.
    pub fn end(mut self) -> bool {
        // SAFETY: kill takes two integers; the child has not been waited for, so that its
        // process id is still its own.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        self.child.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An Ethernet frame to a host of a number.
fn frame(to: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, 99, 8, 0];
    frame.resize(length, to);
    frame
}

fn forward(client: &mut Client, to: u8, port: u8) {
    let arguments = vec![
        text("ingress.addresses"),
        list(vec![exact(&[2, 0, 0, 0, 0, to])]),
        text("ingress.forward"),
        data(&[&[0, port]]),
        priority(0),
    ];
    client.standard("bm_mt_add_entry", arguments).unwrap();
}

/// The frames of a capture that is being written, once there are so many.
fn frames_of(path: &Path, count: usize) -> Vec<Vec<u8>> {
    let start = Instant::now();
    loop {
        let mut frames = Vec::new();
        if let Ok(mut reader) = PcapReader::new(File::open(path).unwrap()) {
            while let Ok(Some(captured)) = reader.next_frame() {
                frames.push(captured.frame);
            }
        }
        if frames.len() >= count || start.elapsed() > PATIENCE {
            return frames;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// As p4c's test driver has it: named pipes for input, entries over Thrift, then packets.
#[test]
fn captures_stand_for_interfaces() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = [1, 2].map(|port| directory.path().join(format!("port{port}_in.pcap")));
    for input in &inputs {
        let path = CString::new(input.as_os_str().as_bytes()).unwrap();
        // SAFETY: mkfifo reads the path, which ends with a zero byte and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    }
    let json = program("objects.json");
    let arguments = [
        "-i",
        "2@port2",
        "-i",
        "1@port1",
        "--use-files",
        "0",
        json.to_str().unwrap(),
    ];
    let process = Process::start(directory.path(), &arguments);
    let mut client = process.client();
    forward(&mut client, 1, 1);
    forward(&mut client, 2, 2);
    // Stamps decide the order between the ports, whichever is written first.
    let mut captures = inputs.map(|input| {
        let mut capture = PcapWriter::new(File::create(input).unwrap()).unwrap();
        capture.flush().unwrap();
        capture
    });
    for (input, time_us, frame) in [
        (0, 10, frame(2, 60)),
        (0, 30, frame(2, 62)),
        (1, 20, frame(2, 61)),
        (1, 25, frame(1, 70)),
        (1, 40, frame(77, 60)),
    ] {
        captures[input].write(time_us, &frame).unwrap();
    }
    drop(captures);
    let sent = frames_of(&directory.path().join("port2_out.pcap"), 3);
    assert_eq!(sent, [frame(2, 60), frame(2, 61), frame(2, 62)]);
    let sent = frames_of(&directory.path().join("port1_out.pcap"), 1);
    assert_eq!(sent, [frame(1, 70)]);
    let ports = client.call("standard:bm_dev_mgr_show_ports", Vec::new());
    let Ok(Some(Value::List(Type::Struct, ports))) = ports else {
        panic!("{ports:?}");
    };
    assert_eq!(ports.len(), 2);
    assert!(process.end());
}

#[test]
fn a_saved_state_is_restored() {
    let directory = tempfile::tempdir().unwrap();
    let json = program("objects.json");
    let json = json.to_str().unwrap();
    let process = Process::start(directory.path(), &[json]);
    let mut client = process.client();
    forward(&mut client, 7, 3);
    let group = vec![int(0), int(4)];
    client
        .call("simple_pre_lag:bm_mc_mgrp_create", group)
        .unwrap();
    let node = vec![int(0), int(9), text("110"), text("")];
    client
        .call("simple_pre_lag:bm_mc_node_create", node)
        .unwrap();
    let associate = vec![int(0), int(4), int(0)];
    client
        .call("simple_pre_lag:bm_mc_node_associate", associate)
        .unwrap();
    let member = vec![
        text("ingress.choice"),
        text("ingress.forward_on"),
        data(&[&[5]]),
    ];
    client
        .standard("bm_mt_act_prof_add_member", member)
        .unwrap();
    let entry = vec![
        text("ingress.spread"),
        list(vec![exact(&[8, 0])]),
        int(0),
        priority(0),
    ];
    client.standard("bm_mt_indirect_add_entry", entry).unwrap();
    let register = vec![text("ingress.marks"), int(3), Value::I64(77)];
    client.standard("bm_register_write", register).unwrap();
    let save = |client: &mut Client| match client.call("standard:bm_serialize_state", Vec::new()) {
        Ok(Some(Value::Binary(state))) => state,
        other => panic!("{other:?}"),
    };
    let state = save(&mut client);
    assert!(process.end());
    let file = directory.path().join("state");
    fs::write(&file, &state).unwrap();

    let restore = ["--restore-state", file.to_str().unwrap(), json];
    let process = Process::start(directory.path(), &restore);
    assert_eq!(save(&mut process.client()), state);
    assert!(process.end());

    // A state of another program is refused.
    let other = program("tables.json");
    let refused = Command::new(env!("CARGO_BIN_EXE_wormcast-switch"))
        .args(["--grpc-server-addr", "127.0.0.1:0", "--thrift-port", "0"])
        .args(["--restore-state", file.to_str().unwrap()])
        .arg(other)
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(
        message.contains("the state of another program"),
        "{message}"
    );
}

/// Whoever reaches it may change all tables.
#[test]
fn thrift_is_on_this_machine_alone_unless_another_address_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, reaches) in [(&[][..], false), (&["--thrift-addr", "0.0.0.0"][..], true)] {
        let process = Process::start(directory.path(), &[&["--no-p4"], arguments].concat());
        let connect = |address| std::net::TcpStream::connect((address, process.thrift_port));
        assert!(connect("127.0.0.1").is_ok());
        assert_eq!(
            connect("127.0.0.2").is_ok(),
            reaches,
            "an address of all, and not the one"
        );
    }
}

/// What BMv2's own command line makes of this switch, unmodified, where it is installed.
#[test]
fn simple_switch_cli_works_as_it_is() {
    let Ok(found) = Command::new("simple_switch_CLI").arg("--help").output() else {
        eprintln!("skipped: simple_switch_CLI is not installed");
        return;
    };
    assert!(found.status.success());
    let directory = tempfile::tempdir().unwrap();
    let json = program("objects.json");
    let process = Process::start(directory.path(), &[json.to_str().unwrap()]);
    let mut cli = Command::new("simple_switch_CLI")
        .args(["--thrift-port", &process.thrift_port.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let script = "\
        table_add addresses forward 02:00:00:00:00:07 => 3\n\
        table_add types copy_to_cpu 0x0800&&&0xff00 3&&&0x1ff 02:00:00:00:00:00/24 => 10\n\
        table_dump addresses\n\
        table_dump types\n\
        act_prof_create_member choice forward_on 6\n\
        act_prof_create_group choice\n\
        act_prof_add_member_to_group choice 0 0\n\
        table_indirect_add_with_group spread 0x0800 => 0\n\
        table_dump spread\n\
        mc_mgrp_create 1\n\
        mc_node_create 2 1 5 | 3\n\
        mc_node_associate 1 0\n\
        mc_set_lag_membership 3 6 9\n\
        mc_dump\n\
        register_write marks 2 42\n\
        register_read marks 2\n\
        counter_write ingress.received 3 5 500\n\
        counter_read received 3\n\
        counter_read received 9999\n\
        meter_set_rates rates 0 0.5:10 1:20\n\
        meter_get_rates rates 0\n\
        mirroring_add 7 3\n\
        mirroring_get 7\n\
        mirroring_add_mc 8 1\n\
        mirroring_get 8\n\
        set_queue_depth 64\n\
        set_queue_rate 1000\n\
        show_ports\n\
        table_delete addresses 0\n\
        table_dump_entry addresses 0\n";
    cli.stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    let output = cli.wait_with_output().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut rest = printed.as_str();
    for expected in [
        "Entry has been added with handle 0",
        "Entry has been added with handle 0",
        "Dumping entry 0x0",
        "EXACT     020000000007",
        "Action entry: ingress.forward - 03",
        "Action entry: ingress.drop - ",
        "TERNARY   0800 &&& ff00",
        "TERNARY   0003 &&& 01ff",
        "LPM       020000000000/24",
        "Priority: 10",
        "Member has been created with handle 0",
        "Group has been created with handle 0",
        "Index: group(0)",
        "Action entry: ingress.forward_on - 06",
        "Members: [0]",
        "node was created with handle 0",
        "mgrp(1)",
        "-> (L1h=0, rid=2) -> (ports=[1, 5], lags=[3])",
        "marks[2]= 42",
        "received[3]= (500 bytes, 5 packets)",
        "Invalid counter operation (INVALID_INDEX)",
        "0: info rate = 0.5, burst size = 10",
        "1: info rate = 1.0, burst size = 20",
        "MirroringSessionConfig(port=3, mgid=None)",
        "MirroringSessionConfig(port=None, mgid=1)",
        "Deleting entry 0 from addresses",
        "Invalid table operation (INVALID_HANDLE)",
    ] {
        let found = rest.find(expected);
        let at = found.unwrap_or_else(|| panic!("no {expected:?} in the rest of {printed}"));
        rest = &rest[at + expected.len()..];
    }
    assert!(process.end());
}
