//! What the command line takes and refuses.

use wormcast_switch_dataplane::log::LogFiles;

use super::*;

fn run(arguments: &str) -> Settings {
    let arguments = arguments.split_whitespace().map(str::to_owned);
    match parse(std::iter::once("wormcast-switch".to_owned()).chain(arguments)) {
        Ok(Task::Run(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

fn error(arguments: &str) -> String {
    let arguments = arguments.split_whitespace().map(str::to_owned);
    parse(std::iter::once("wormcast-switch".to_owned()).chain(arguments))
        .unwrap_err()
        .to_string()
}

#[test]
fn the_command_line_of_simple_switch_grpc() {
    let settings = run(
        "-i 1@s1-eth1 --interface 2@s1-eth2 --pcap=. --nanolog ipc:///tmp/log.ipc \
         --device-id 3 --thrift-port 9090 --log-console -L debug prog.json -- \
         --grpc-server-addr 0.0.0.0:50051 --cpu-port 255",
    );
    assert_eq!(settings.ports.len(), 2);
    assert_eq!(settings.ports[1].number, PortId(2));
    assert_eq!(settings.json, Some(PathBuf::from("prog.json")));
    assert_eq!(settings.device_id, 3);
    assert_eq!(settings.cpu_port, Some(PortId(255)));
    assert_eq!(settings.address.to_string(), "0.0.0.0:50051");
    assert_eq!(settings.log, LogTo::Console);
    assert_eq!(settings.log_level.to_string(), "debug");
    assert_eq!(settings.drop_in.thrift_port, Some(9090));
    assert_eq!(settings.capture_directory, Some(PathBuf::from(".")));
    let log = settings.drop_in.nanolog.map(|address| address.to_string());
    assert_eq!(log.as_deref(), Some("ipc:///tmp/log.ipc"));
    assert!(settings.notes.is_empty());
}

#[test]
fn defaults() {
    let settings = run("--no-p4");
    assert_eq!(settings.address.to_string(), "0.0.0.0:9559");
    assert_eq!((settings.drop_port, settings.cpu_port), (PortId(511), None));
    assert_eq!(
        (settings.priority_queues, settings.queue_frames),
        (8, 1_024)
    );
    assert_eq!(settings.log, LogTo::Nowhere);
    assert!(settings.notes.is_empty());
    assert!(
        !settings.opens_thrift,
        "anybody may change all tables there"
    );
    assert!(settings.drop_in.thrift_addr.is_loopback());
}

#[test]
fn interfaces_are_ignored_where_frames_come_in_messages() {
    for option in ["--packet-in", "--dp-grpc-server-addr"] {
        let address = match option {
            "--packet-in" => "ipc:///tmp/a",
            _ => "127.0.0.1:0",
        };
        let settings = run(&format!(
            "--no-p4 -i 1@a {option} {address} --impair 5:loss=1%"
        ));
        assert!(settings.ports.is_empty());
        let note = format!("the interfaces are ignored because of {option}");
        assert_eq!(settings.notes, [note]);
    }
}

/// The command lines of p4c's test driver and of Mininet scripts for simple_switch.
#[test]
fn the_command_line_of_simple_switch() {
    let arguments = "/usr/bin/simple_switch -i 2@/tmp/b -i 1@/tmp/a --use-files 0 \
         --log-file /tmp/log --log-flush --thrift-port 9123 --device-id 7 prog.json";
    let arguments = arguments.split_whitespace().map(str::to_owned);
    let Ok(Task::Run(settings)) = parse(arguments) else {
        panic!()
    };
    assert_eq!(settings.p4runtime, P4Runtime::None);
    assert_eq!((settings.priority_queues, settings.swap), (1, false));
    assert_eq!(settings.queue_frames, 64, "as deep as BMv2's");
    let files = |name: &str| Attachment::Files(name.to_owned());
    let attached = settings.ports.iter().map(|port| &port.attachment);
    let attached: Vec<&Attachment> = attached.collect();
    assert_eq!(attached, [&files("/tmp/a"), &files("/tmp/b")]);
    let settings = run("--pcap /tmp prog.json");
    assert_eq!(settings.capture_directory, Some(PathBuf::from("/tmp")));
    let settings = run("--pcap prog.json");
    assert_eq!(settings.capture_directory, Some(PathBuf::from(".")));
    assert_eq!(settings.json, Some(PathBuf::from("prog.json")));
    let settings = run("--thrift-port 9123 prog.json");
    assert_eq!(settings.p4runtime, P4Runtime::IfFree);
    assert_eq!(run("prog.json").p4runtime, P4Runtime::Needed);
    let arguments = "simple_switch_grpc --no-p4 --disable-swap -- --priority-queues 3";
    let arguments = arguments.split_whitespace().map(str::to_owned);
    let Ok(Task::Run(settings)) = parse(arguments) else {
        panic!()
    };
    assert_eq!(settings.p4runtime, P4Runtime::Needed);
    assert_eq!((settings.priority_queues, settings.swap), (3, false));
    assert!(
        settings.opens_thrift,
        "scripts for BMv2 expect it without asking"
    );
}

#[test]
fn log_files_are_as_large_and_as_many_as_bmv2_has_them() {
    let files = |arguments: &str| {
        let arguments = arguments.split_whitespace().map(str::to_owned);
        match parse(arguments) {
            Ok(Task::Run(settings)) => match (settings.log, settings.notes) {
                (LogTo::File(files), notes) if notes.is_empty() => files,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    let expected = |suffix, bytes_max, older_max| LogFiles {
        path: "a.log".into(),
        suffix,
        bytes_max,
        older_max,
    };
    let usual = files("wormcast-switch --no-p4 --log-file a.log");
    assert_eq!(usual, expected("", 5_242_880, 3));
    for name in ["simple_switch", "/usr/bin/simple_switch_grpc"] {
        let arguments = "--no-p4 --log-file a.log --log-file-max-size 1 --log-file-max-files 0";
        let found = files(&format!("{name} {arguments}"));
        assert_eq!(found, expected(".txt", 1, 0), "BMv2 appends .txt");
    }
}

#[test]
fn options_of_the_log_that_do_nothing_are_said() {
    assert_eq!(run("--no-p4 --log-console").packet_data_bytes, 0);
    let settings = run("--no-p4 --log-console --dump-packet-data 64");
    assert_eq!((settings.packet_data_bytes, settings.notes.len()), (64, 0));
    assert!(run("--no-p4 --dump-packet-data 0").notes.is_empty());
    for (arguments, expected) in [
        (
            "--log-console -L warn --dump-packet-data 1",
            "--dump-packet-data has no effect: the log level warn excludes info",
        ),
        (
            "--dump-packet-data 1",
            "--dump-packet-data has no effect without --log-console or --log-file",
        ),
        (
            "--log-console --log-file-max-size 1",
            "--log-file-max-size has no effect without --log-file",
        ),
        (
            "--log-file-max-files 1",
            "--log-file-max-files has no effect without --log-file",
        ),
    ] {
        assert_eq!(run(&format!("--no-p4 {arguments}")).notes, [expected]);
    }
}

/// An option whose type is not that of its parser panics when it is read.
#[test]
fn every_number_can_be_given() {
    let settings = run(
        "--no-p4 --device-id 1 --workers 2 --cpu-port 3 --drop-port 4 --priority-queues 5 \
         --queue-frames 6 --recirculations 7 --ring-frames 512 --seed 8 --thrift-port 9 --lossless --frame-max 1000 \
         --pause-quanta 10 --ecn-threshold 11 --log-file l --log-file-max-size 12 \
         --log-file-max-files 13 --dump-packet-data 14",
    );
    assert_eq!(settings.packet_data_bytes, 14);
    assert_eq!((settings.device_id, settings.workers), (1, 2));
    assert_eq!(
        (settings.cpu_port, settings.drop_port),
        (Some(PortId(3)), PortId(4))
    );
    assert_eq!((settings.priority_queues, settings.queue_frames), (5, 6));
    assert_eq!((settings.ring_frames, settings.seed), (512, 8));
    assert_eq!(settings.recirculations, Some(7));
    assert_eq!(run("--no-p4").recirculations, Some(1 << 16));
    assert_eq!(run("--no-p4 --recirculations 0").recirculations, None);
    assert_eq!(settings.drop_in.thrift_port, Some(9));
    let lossless = settings.queueing.lossless.unwrap();
    assert_eq!((lossless.frame_bytes_max, lossless.quanta), (1_000, 10));
    assert_eq!(settings.queueing.ecn_threshold, Some(11));
}

#[test]
fn what_does_not_help_is_not_said() {
    let error = error("--no-p4 --nonsense");
    assert!(
        error.contains("unexpected argument '--nonsense'"),
        "{error}"
    );
    assert!(!error.contains("tip"), "{error}");
    let near = super::parse(["x", "--devic-id", "3"].map(str::to_owned).into_iter());
    let near = near.unwrap_err().to_string();
    assert!(near.contains("'--device-id'"), "{near}");
}

#[test]
fn values_that_cannot_be() {
    for (arguments, expected) in [
        ("", "no program: give the JSON of one, or --no-p4"),
        (
            "--no-p4 -i 1",
            "it must be PORT@IFACE with a port from 0 to 511 (like 1@eth1)",
        ),
        (
            "--no-p4 -i 512@a",
            "it must be PORT@IFACE with a port from 0 to 511",
        ),
        ("--no-p4 -i 1@a -i 1@b", "port 1 has two interfaces"),
        (
            "--no-p4 -i 1@a -i 2@a",
            "interface a is attached to two ports",
        ),
        (
            "--no-p4 -i 510@a --cpu-port 510",
            "port 510 is the CPU port",
        ),
        ("--no-p4 -i 511@a", "port 511 is the drop port"),
        (
            "--no-p4 --cpu-port 511",
            "--cpu-port and --drop-port are both 511",
        ),
        (
            "--no-p4 --device-id x",
            "it must be a whole number from 0 to 18446744073709551615",
        ),
        (
            "--no-p4 --cpu-port 0",
            "it must be a whole number from 1 to 511",
        ),
        (
            "--no-p4 --priority-queues 9",
            "it must be a whole number from 1 to 8",
        ),
        ("--no-p4 --impair all:loss=7", "`7` is not a probability"),
        (
            "--no-p4 --impair 3:loss=0.7",
            "--impair names port 3, which has no interface",
        ),
        ("--fabric f.json -i 1@a", "cannot be used with"),
        ("--fabric f.json --device-id 1", "cannot be used with"),
        (
            "--fabric f.json --impair 3:loss=0.7",
            "--impair names port 3: with --fabric",
        ),
        (
            "--no-p4 --workers 0",
            "it must be a whole number from 1 to 64",
        ),
        (
            "--no-p4 --engine fast",
            "`fast` is not how packets are run: compiled or interpreted",
        ),
        ("--no-p4 --receive v4", "`v4` is not a way to receive: v2"),
        ("--no-p4 --port-rate 7", "`7` is not a rate"),
        (
            "--no-p4 --pcap=/no/such/place",
            "there is no directory /no/such/place",
        ),
        ("--no-p4 --use-files many", "invalid value 'many'"),
        ("--no-p4 --use-files 3 --pcap", "--pcap has no use"),
        (
            "--no-p4 --load-modules a.so,b.so",
            "--load-modules a.so,b.so is not supported",
        ),
        (
            "--no-p4 --packet-in /tmp/a",
            "`/tmp/a` is not an address of nanomsg",
        ),
        (
            "--no-p4 --packet-in ipc:///tmp/a --use-files 0",
            "cannot be used with",
        ),
        (
            "--no-p4 --packet-in ipc:///tmp/a --dp-grpc-server-addr :::1",
            "`:::1` is not an address",
        ),
        (
            "--no-p4 --dp-grpc-server-addr 127.0.0.1:1 --lossless",
            "--lossless needs interfaces",
        ),
        (
            "--no-p4 --enable-swap --disable-swap",
            "cannot be used with",
        ),
        (
            "--no-p4 --grpc-server-cert",
            "a value is required for '--grpc-server-cert",
        ),
        (
            "--no-p4 --grpc-server-addr 9559",
            "`9559` is not an address",
        ),
        ("--no-p4 --metrics-addr 9100", "it must be HOST:PORT"),
        ("--no-p4 --metrics-addr unix:/a", "it must be HOST:PORT"),
        ("--no-p4 -L loud", "`loud` is not a level"),
        (
            "--no-p4 --trace ports=1",
            "`ports` is no condition of a filter",
        ),
        (
            "--no-p4 --trace all --trace-format xml",
            "`xml` is not a format",
        ),
        ("--no-p4 --trace-file a", "--trace <FILTER>"),
        ("--no-p4 --log-console --log-file a", "cannot be used with"),
        (
            "--no-p4 --log-file a --log-file-max-size 0",
            "it must be a whole number from 1 to 18446744073709551615",
        ),
        (
            "--no-p4 --log-file a --log-file-max-files 10001",
            "it must be a whole number from 0 to 10000",
        ),
        (
            "--no-p4 --log-console --dump-packet-data all",
            "it must be a whole number from 0 to 18446744073709551615",
        ),
    ] {
        let text = error(arguments);
        assert!(text.contains(expected), "{arguments}: {text}");
    }
}

#[test]
fn options_of_tls() {
    let settings = run(
        "--no-p4 --grpc-server-ssl --grpc-server-cert c --grpc-server-key k \
         --grpc-server-cacert a --grpc-server-with-client-auth",
    );
    let expected = TlsArguments {
        ssl: true,
        authority: Some("a".into()),
        certificate: Some("c".into()),
        key: Some("k".into()),
        client_auth: true,
    };
    assert_eq!(settings.tls, expected);
}

#[test]
fn help_version_and_completions() {
    assert!(error("--help").contains("--grpc-server-addr"));
    assert!(error("-v").contains(env!("CARGO_PKG_VERSION")));
    let arguments = ["wormcast-switch", "--completions", "bash"].map(str::to_owned);
    let Ok(Task::Print(script)) = parse(arguments.into_iter()) else {
        panic!()
    };
    assert!(script.contains("complete -F _wormcast"));
}

#[test]
fn executions() {
    assert_eq!(run("--no-p4").execution, Execution::Compiled);
    assert_eq!(
        run("--no-p4 --engine interpreted").execution,
        Execution::Interpreted
    );
}

#[test]
fn how_long_a_thread_looks_for_frames() {
    assert_eq!(run("--no-p4").spin_us, 0);
    assert_eq!(run("--no-p4 --spin 1ms").spin_us, 1_000);
    assert!(error("--no-p4 --spin 1").contains("ms"));
}

#[test]
fn notifications_are_where_bmv2_has_them() {
    let run_as = |name: &str, arguments: &str| {
        let arguments = arguments.split_whitespace().map(str::to_owned);
        match parse(std::iter::once(name.to_owned()).chain(arguments)) {
            Ok(Task::Run(settings)) => (settings.notifications, settings.needs_config),
            other => panic!("{other:?}"),
        }
    };
    let address = |text: &str| text.parse().unwrap();
    let usual = Notifications::IfFree(address("ipc:///tmp/bmv2-7-notifications.ipc"));
    let options = "--no-p4 --device-id 7";
    assert_eq!(run_as("/opt/simple_switch", options), (usual, true));
    let none = Notifications::None;
    assert_eq!(run_as("simple_switch_grpc", options), (none.clone(), true));
    assert_eq!(run_as("wormcast-switch", options), (none.clone(), false));
    assert_eq!(run_as("simple_switch", "--fabric f.json").0, none);
    let asked = Notifications::Needed(address("tcp://0.0.0.0:10001"));
    let options = "--no-p4 --notifications-addr tcp://*:10001";
    for name in ["simple_switch", "simple_switch_grpc", "wormcast-switch"] {
        assert_eq!(run_as(name, options).0, asked);
    }
    let error = error("--no-p4 --notifications-addr /tmp/here");
    assert!(error.contains("`/tmp/here` is not an address"), "{error}");
}
