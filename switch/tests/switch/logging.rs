//! The log of a switch as a process, its files and what it says of packets: this one's, and
//! BMv2's where it is installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::publishing::{Publishing, bmv2, wait_for};

/// Sends by port 1 what begins with 0, says something and does so for 5, and drops what begins
/// with 9. The bytes after the first become 0x22 and 0x44.
const PROGRAM: &str = include_str!("../programs/ends.json");

/// Sends every frame by port 1, and says nothing.
const QUIET: &str = include_str!("../programs/arithmetic.json");

/// A switch that logs to files of a directory, all of whose names begin with `log`.
struct Logging {
    switch: Publishing,
    directory: tempfile::TempDir,
    /// Name of the file that is being written.
    name: &'static str,
}

impl Logging {
    fn start(command: Option<&Path>, arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), command, arguments)
    }

    fn start_in(directory: tempfile::TempDir, command: Option<&Path>, more: &[&str]) -> Self {
        let file = directory.path().join("log");
        let arguments = ["--log-file", file.to_str().unwrap(), "--log-flush"];
        let arguments = [&arguments, more].concat();
        Self {
            switch: Publishing::start_with(command, PROGRAM, &arguments),
            directory,
            name: "log.txt",
        }
    }

    /// Sends a frame of some length and waits until the log has that it was sent.
    fn send(&mut self, first: u8, length: usize) {
        let mut frame = vec![0; length];
        frame[0] = first;
        self.switch.send(&frame);
        let path = self.directory.path().join(self.name);
        let sent = format!(" Sending packet of length {length} ");
        wait_for("the last line", || {
            let text = fs::read_to_string(&path).ok()?;
            let last = text.strip_suffix('\n')?.lines().last()?;
            last.contains(&sent).then_some(())
        });
    }

    /// Names of the files, the oldest first.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("log")).collect();
        names.sort();
        // The one that is being written has no number.
        let newest = names.iter().position(|name| name == self.name).unwrap();
        let newest = names.remove(newest);
        names.reverse();
        names.push(newest);
        names
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

/// What the log says of data, without time, level and whatever else comes before.
fn data_lines(log: &str) -> Vec<String> {
    let lines = log.lines().filter_map(|line| {
        let start = ["Received packet of ", "Sending packet"]
            .iter()
            .find_map(|words| line.find(words))?;
        Some(line[start..].to_owned())
    });
    lines.collect()
}

const SIZE: usize = 300;

/// Six frames of 60 bytes and more: names of the files in the end, each checked to be full.
fn files_of(command: Option<&Path>, bytes_max: usize, older_max: u32) -> Vec<String> {
    let (bytes, older) = (bytes_max.to_string(), older_max.to_string());
    let size = [
        "--log-file-max-size",
        &bytes,
        "--log-file-max-files",
        &older,
    ];
    let data = ["-L", "info", "--dump-packet-data", "20"];
    let mut logging = Logging::start(command, &[&size[..], &data].concat());
    let mut expected = Vec::new();
    for length in 60..66 {
        logging.send(0, length);
        expected.push(format!("Received packet of length {length} on port 3: "));
        expected.push(format!("Sending packet of length {length} on port 1: "));
    }
    let names = logging.names();
    let contents: Vec<String> = names.iter().map(|name| logging.content(name)).collect();
    for text in &contents {
        assert!(text.ends_with('\n'), "{text}");
        assert!(
            text.len() <= bytes_max || text.lines().count() == 1,
            "{text}"
        );
    }
    for pair in contents.windows(2) {
        let next_line = pair[1].lines().next().unwrap().len() + 1;
        assert!(pair[0].len() + next_line > bytes_max, "{pair:?}");
    }
    // No line is lost or split between the files that are left.
    let found = data_lines(&contents.concat());
    assert_eq!(
        found.len(),
        contents.concat().lines().count(),
        "{contents:?}"
    );
    let expected = &expected[expected.len() - found.len()..];
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}: {expected}");
    }
    names
}

fn rotates(command: Option<&Path>) {
    for older_max in [2, 1, 0] {
        let all = ["log.2.txt", "log.1.txt", "log.txt"];
        let expected = &all[2 - older_max as usize..];
        assert_eq!(files_of(command, SIZE, older_max), expected);
        // Each line is longer than a file.
        assert_eq!(files_of(command, 10, older_max), expected);
    }
}

#[test]
fn full_log_files_make_room() {
    rotates(None);
}

#[test]
fn bmv2_names_its_log_files_the_same() {
    let Some(command) = bmv2() else { return };
    rotates(Some(&command));
}

/// Under its own name the switch writes to the file that it is told.
#[test]
fn under_its_own_name_nothing_is_added_to_the_names() {
    let command = Path::new(env!("CARGO_BIN_EXE_wormcast-switch"));
    let arguments = [
        "--grpc-server-addr",
        "127.0.0.1:0",
        "--dump-packet-data",
        "1",
    ];
    let size = ["--log-file-max-size", "1", "--log-file-max-files", "2"];
    let mut logging = Logging::start(Some(command), &[&arguments[..], &size].concat());
    logging.name = "log";
    logging.send(0, 60);
    logging.send(0, 61);
    assert_eq!(logging.names(), ["log.2", "log.1", "log"]);
}

fn appends(command: Option<&Path>) {
    let directory = tempfile::tempdir().unwrap();
    let before = format!("{}\n", "x".repeat(SIZE - 10));
    fs::write(directory.path().join("log.txt"), &before).unwrap();
    let data = ["-L", "info", "--dump-packet-data", "1"];
    let mut logging = Logging::start_in(directory, command, &data);
    logging.send(0, 60);
    assert!(logging.content("log.txt").starts_with(&before));
    assert_eq!(logging.names(), ["log.txt"], "5 MiB are far");
    // What was there counts, so that the first line goes to the next file.
    drop(logging.switch);
    let directory = logging.directory;
    fs::write(directory.path().join("log.txt"), &before).unwrap();
    let size = SIZE.to_string();
    let size = ["--log-file-max-size", &size, "--log-file-max-files", "9"];
    let mut logging = Logging::start_in(directory, command, &[&data[..], &size].concat());
    logging.send(0, 60);
    assert_eq!(logging.content(&logging.names()[0]), before);
}

#[test]
fn a_log_goes_on_after_what_a_file_has() {
    appends(None);
}

#[test]
fn bmv2_goes_on_after_what_a_file_has() {
    let Some(command) = bmv2() else { return };
    appends(Some(&command));
}

/// BMv2 ends itself there.
#[test]
fn a_log_that_cannot_make_room_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("log.1.txt")).unwrap();
    let size = ["--log-file-max-size", "10", "--log-file-max-files", "1"];
    let data = ["--dump-packet-data", "20"];
    let mut logging = Logging::start_in(directory, None, &[&size[..], &data].concat());
    for length in 60..66 {
        logging.send(0, length);
    }
    let log = logging.content("log.txt");
    assert_eq!(data_lines(&log).len(), 12, "{log}");
    let errors = logging.switch.errors();
    let told = errors.matches("log.txt is full: cannot remove ").count();
    assert_eq!(told, 1, "{errors}");
    assert!(logging.switch.end());
}

fn data_of(command: Option<&Path>, bytes: &str) -> Vec<String> {
    let mut logging = Logging::start(command, &["-L", "info", "--dump-packet-data", bytes]);
    // Nothing is sent of the first one.
    logging.switch.send(&[9, 1, 2, 3, 4]);
    logging.send(0, 60);
    logging.send(5, 3);
    data_lines(&logging.content("log.txt"))
}

#[test]
fn data_of_packets_is_logged() {
    let zeros = |count| "00".repeat(count);
    for (bytes, dropped, received, sent) in [
        ("1", "09", zeros(1), zeros(1)),
        ("4", "09010203", zeros(4), "00224400".to_owned()),
        (
            "1000",
            "0901020304",
            zeros(60),
            format!("002244{}", zeros(57)),
        ),
    ] {
        let short = 6.min(2 * bytes.parse::<usize>().unwrap());
        let expected = [
            format!("Received packet of length 5 on port 3: {dropped}"),
            format!("Received packet of length 60 on port 3: {received}"),
            format!("Sending packet of length 60 on port 1: {sent}"),
            format!(
                "Received packet of length 3 on port 3: {}",
                &"050000"[..short]
            ),
            format!(
                "Sending packet of length 3 on port 1: {}",
                &"052244"[..short]
            ),
        ];
        assert_eq!(data_of(None, bytes), expected);
    }
}

#[test]
fn bmv2_logs_the_same_data_of_packets() {
    let Some(command) = bmv2() else { return };
    for bytes in ["1", "4", "1000"] {
        assert_eq!(data_of(Some(&command), bytes), data_of(None, bytes));
    }
}

/// What the program says is between what came and what goes.
#[test]
fn data_of_packets_and_what_the_program_says_are_in_order() {
    let mut logging = Logging::start(None, &["--dump-packet-data", "9"]);
    logging.send(5, 3);
    let log = logging.content("log.txt");
    let texts = log.lines().filter_map(|line| line.split_once("] [info] "));
    let texts: Vec<&str> = texts.map(|(_, text)| text).collect();
    let last = &texts[texts.len() - 4..];
    assert_eq!(
        last,
        [
            "Received packet of length 3 on port 3: 050000",
            "op is five",
            "op 5 and b 0",
            "Sending packet of length 3 on port 1: 052244",
        ]
    );
}

/// In the words of BMv2's simple_switch_grpc. A packet that is too short goes to port 2.
#[test]
fn packets_to_the_controller_are_logged_as_such() {
    let mut logging = Logging::start(None, &["--dump-packet-data", "9", "--cpu-port", "2"]);
    logging.switch.send(&[6, 0, 0]);
    logging.send(0, 60);
    let lines = data_lines(&logging.content("log.txt"));
    assert_eq!(lines[1], "Sending packet-in of length 3 on port 2: 062244");
}

/// Packets are not even traced then.
#[test]
fn data_of_packets_costs_nothing_where_it_is_not_logged() {
    for (arguments, is_noted) in [
        (&["-L", "warn", "--dump-packet-data", "20"][..], true),
        (&["--dump-packet-data", "0"], false),
        (&[], false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let counts = directory.path().join("counts.json");
        let log = directory.path().join("log");
        let files = ["--log-file", log.to_str().unwrap()];
        let statistics = ["--statistics", counts.to_str().unwrap()];
        let arguments = [&files, &statistics, arguments].concat();
        let mut switch = Publishing::start_with(None, QUIET, &arguments);
        switch.send(&[0; 60]);
        let output = switch.folder.path().join("other_out.pcap");
        // Behind the header of the capture and that of the frame.
        wait_for("the frame", || {
            let capture = fs::read(&output).ok()?;
            (capture.len() >= 24 + 16 + 60).then_some(())
        });
        let errors = switch.errors();
        let note = "note: --dump-packet-data has no effect: the log level warn excludes info";
        assert_eq!(errors.contains(note), is_noted, "{errors}");
        assert!(switch.end());
        let counts: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&counts).unwrap()).unwrap();
        assert_eq!(counts["trace_records"], 0, "{counts}");
    }
}

/// At the end a line is enough; asked by SIGUSR1 it says everything.
#[test]
fn the_end_is_a_short_line_and_all_counts_come_when_asked() {
    let command = Path::new(env!("CARGO_BIN_EXE_wormcast-switch"));
    let arguments = ["--grpc-server-addr", "127.0.0.1:0", "-L", "info"];
    let all = "[info] statistics: {";
    for asks in [false, true] {
        let mut logging = Logging::start(Some(command), &arguments);
        let path = logging.directory.path().join("log");
        logging.switch.send(&[0; 60]);
        if asks {
            logging.switch.signal(libc::SIGUSR1);
            wait_for("the statistics", || {
                let text = fs::read_to_string(&path).ok()?;
                text.contains(all).then_some(())
            });
        }
        assert!(logging.switch.end());
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(all).count(), usize::from(asks), "{text}");
        // The replay may say after it that its captures have ended.
        let end = text.lines().find(|line| line.contains(" frames and sent "));
        let end = end.unwrap_or_else(|| panic!("{text}"));
        assert!(end.len() < 300, "{end}");
    }
}

#[test]
fn statistics_that_have_no_place_are_refused_before_the_switch_starts() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().display().to_string();
    for (file, said) in [
        (
            format!("{there}/none/counts.json"),
            format!("there is no directory {there}/none"),
        ),
        (there.clone(), "it is a directory; name a file".to_owned()),
    ] {
        let command = Command::new(env!("CARGO_BIN_EXE_wormcast-switch"))
            .args([
                "--no-p4",
                "--grpc-server-addr",
                "127.0.0.1:0",
                "--statistics",
                &file,
            ])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&command.stderr);
        assert!(!command.status.success());
        assert!(
            errors.contains(&format!("--statistics {file}: {said}")),
            "{errors}"
        );
    }
}
