//! `/metrics` and `/healthz`, as a scraper sees them.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::exposition::{Page, parse};
use super::messages::{FORWARD, action, address, insert, table};
use super::rig::{DEVICE_ID, PATIENCE, Rig};
use wormcast_switch::metrics::{CONNECTIONS_MAX, Device, Devices, MetricsServer};
use wormcast_switch_pipeline::limits::PACKET_BYTES_MAX;

/// Starts a server beside a rig; gives its address.
pub async fn serve(rig: &Rig) -> String {
    let server = rig.server.clone();
    let device = Device {
        id: DEVICE_ID,
        dataplane: rig.dataplane.clone(),
        complete: Arc::new(move |snapshot| server.complete(snapshot)),
    };
    let devices: Devices = Arc::new(move || vec![device.clone()]);
    let metrics = MetricsServer::bind("127.0.0.1:0", devices, rig.server.requests());
    let metrics = metrics.await.unwrap();
    let address = metrics.local_address().unwrap().to_string();
    tokio::spawn(metrics.serve());
    address
}

/// Sends the head of a request; gives status line and body.
pub async fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{request} HTTP/1.1\r\nHost: switch\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(PATIENCE, read)
        .await
        .expect("no answer")
        .unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

async fn page(address: &str) -> Page {
    let (head, body) = ask(address, "GET /metrics").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    parse(&body)
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// A frame as a controller sends it: the `packet_out` header with its port, then zeros.
pub fn packet_out(port: u16) -> Vec<u8> {
    let mut frame = (port << 7).to_be_bytes().to_vec();
    frame.extend([0; 60]);
    frame
}

/// Every number of the JSON that `--statistics` writes is on the page, and is the same.
#[tokio::test]
async fn the_page_says_what_the_statistics_say() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let entry = insert(table(address(
        &[2, 0, 0, 0, 0, 1],
        action(FORWARD, &[&[9]]),
    )));
    controller.write(vec![entry]).await.unwrap();
    let injected = rig.dataplane.run(|switch| {
        for port in [9, 9, 511, 510] {
            switch.inject(&packet_out(port));
        }
        switch.inject(&vec![0; PACKET_BYTES_MAX + 1]);
    });
    injected.await.unwrap();
    let metrics = serve(&rig).await;
    // The frames leave their queues before the page is asked for a second time.
    page(&metrics).await;
    let snapshot = rig.dataplane.run(|switch| switch.snapshot()).await.unwrap();
    let json = serde_json::to_value(&snapshot).unwrap();
    let page = page(&metrics).await;
    let device = DEVICE_ID.to_string();
    let of_device = ("device", device.as_str());
    let mut compared = 0;
    let mut same = |name: &str, labels: &[(&str, &str)], value: &Value| {
        let labels: Vec<_> = [of_device]
            .into_iter()
            .chain(labels.iter().copied())
            .collect();
        assert_eq!(
            page.value(name, &labels),
            number(value),
            "{name} {labels:?}"
        );
        compared += 1;
    };

    for (name, value) in json["pipeline"].as_object().unwrap() {
        match name.strip_prefix("drop.") {
            Some(cause) => same(
                "wormcast_switch_dropped_packets_total",
                &[("cause", cause)],
                value,
            ),
            None if page
                .kinds
                .contains_key(&format!("wormcast_switch_{name}_packets_total")) =>
            {
                same(&format!("wormcast_switch_{name}_packets_total"), &[], value);
            }
            None => same("wormcast_switch_events_total", &[("event", name)], value),
        }
    }
    for drops in json["drops_by_port"].as_array().unwrap() {
        let port = drops["port"].to_string();
        let labels = [
            ("port", port.as_str()),
            ("cause", drops["cause"].as_str().unwrap()),
        ];
        same(
            "wormcast_switch_port_dropped_packets_total",
            &labels,
            &drops["packets"],
        );
    }
    for table in json["tables"].as_array().unwrap() {
        let labels = [("table", table["table"].as_str().unwrap())];
        same("wormcast_switch_table_entries", &labels, &table["entries"]);
        same(
            "wormcast_switch_table_size_entries",
            &labels,
            &table["size"],
        );
        same("wormcast_switch_table_hits_total", &labels, &table["hits"]);
        same(
            "wormcast_switch_table_misses_total",
            &labels,
            &table["misses"],
        );
    }
    for port in json["ports"].as_array().unwrap() {
        let number = port["port"].as_u64();
        let number = number.map_or("unattached".to_owned(), |number| number.to_string());
        let interface = port["interface"].as_str().unwrap();
        let labels = [("port", number.as_str()), ("interface", interface)];
        for (member, name) in [
            ("received_frames", "received_frames_total"),
            ("received_bytes", "received_bytes_total"),
            ("receive_ring_full", "receive_ring_full_frames_total"),
            ("receive_too_long", "receive_too_long_frames_total"),
            ("sent_frames", "sent_frames_total"),
            ("sent_bytes", "sent_bytes_total"),
            ("send_retried", "send_retries_total"),
            ("no_link", "no_link_frames_total"),
            ("queue_tail_drops", "tail_drops_total"),
        ] {
            same(
                &format!("wormcast_switch_port_{name}"),
                &labels,
                &port[member],
            );
        }
        for kind in ["lost", "duplicated", "corrupted", "reordered", "overflowed"] {
            let labels = [labels[0], labels[1], ("kind", kind)];
            let value = &port[format!("impaired_{kind}")];
            same("wormcast_switch_port_impaired_frames_total", &labels, value);
        }
        for queue in port["queues"].as_array().unwrap() {
            let priority = queue["queue"].to_string();
            let labels = [labels[0], labels[1], ("queue", priority.as_str())];
            for (member, name) in [
                ("enqueued", "enqueued_packets_total"),
                ("dequeued", "dequeued_packets_total"),
                ("tail_drops", "tail_drops_total"),
                ("depth", "depth_packets"),
                ("depth_max", "depth_max_packets"),
            ] {
                same(
                    &format!("wormcast_switch_queue_{name}"),
                    &labels,
                    &queue[member],
                );
            }
        }
    }
    assert!(compared > 150, "{compared}");

    // And the numbers are those of what was sent above.
    let received = page.value("wormcast_switch_received_packets_total", &[of_device]);
    assert_eq!(received, 5.0);
    for cause in ["too_long", "ingress_marked"] {
        let labels = [of_device, ("port", "510"), ("cause", cause)];
        let dropped = page.value("wormcast_switch_port_dropped_packets_total", &labels);
        assert_eq!(dropped, 1.0, "{cause}");
    }
    let table = [of_device, ("table", "ingress.addresses")];
    assert_eq!(page.value("wormcast_switch_table_entries", &table), 1.0);
    let unattached = [
        of_device,
        ("port", "unattached"),
        ("interface", ""),
        ("queue", "0"),
    ];
    let name = "wormcast_switch_queue_dequeued_packets_total";
    assert_eq!(page.value(name, &unattached), 2.0);
    assert_eq!(
        page.value("wormcast_switch_dataplane_up", &[of_device]),
        1.0
    );
    assert!(page.value("process_resident_memory_bytes", &[]) > 1e6);
}

#[tokio::test]
async fn calls_are_counted_by_method_and_code() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let entry = insert(table(address(
        &[2, 0, 0, 0, 0, 1],
        action(FORWARD, &[&[9]]),
    )));
    controller.write(vec![entry.clone()]).await.unwrap();
    controller.write(vec![entry]).await.unwrap_err();
    controller.read(Vec::new()).await.unwrap();
    let page = page(&serve(&rig).await).await;
    let requests = |method, code| {
        let name = "wormcast_switch_p4runtime_requests_total";
        page.value(name, &[("method", method), ("code", code)])
    };
    assert_eq!(requests("Write", "OK"), 1.0);
    // An error of one update makes the call fail with UNKNOWN (P4Runtime 12.3).
    assert_eq!(requests("Write", "UNKNOWN"), 1.0);
    assert_eq!(requests("Read", "OK"), 1.0);
    assert_eq!(requests("SetForwardingPipelineConfig", "OK"), 1.0);
    // The stream channel is open still.
    assert_eq!(page.of("wormcast_switch_p4runtime_requests_total"), 4);
}

#[tokio::test]
async fn other_requests_are_refused_and_health_is_told() {
    let rig = Rig::start().await;
    let address = serve(&rig).await;
    let (head, body) = ask(&address, "POST /metrics").await;
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
    assert!(head.to_lowercase().contains("allow: get"), "{head}");
    assert_eq!(body, "only GET is answered\n");
    let (head, body) = ask(&address, "GET /secrets").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert!(
        body.starts_with("there is no /secrets; there are /metrics, /healthz, /trace"),
        "{body}"
    );
    let (head, _) = ask(&address, "nonsense").await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    let (head, body) = ask(&address, "GET /healthz").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, "ok\n");
    rig.stop_dataplane();
    let stopped = async {
        loop {
            let (head, body) = ask(&address, "GET /healthz").await;
            if head.starts_with("HTTP/1.1 503") {
                return body;
            }
        }
    };
    let body = tokio::time::timeout(PATIENCE, stopped).await.unwrap();
    assert_eq!(body, "no answer from the data plane of device 7\n");
    let page = page(&address).await;
    let labels = [("device", "7")];
    assert_eq!(page.value("wormcast_switch_dataplane_up", &labels), 0.0);
}

/// Connections that say nothing keep others out, and only until one of them goes.
#[tokio::test]
async fn connections_are_bounded() {
    let rig = Rig::start().await;
    let address = serve(&rig).await;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        silent.push(stream);
    }
    let mut late = TcpStream::connect(&address).await.unwrap();
    late.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    let mut read = Box::pin(late.read_to_string(&mut answer));
    let waited = tokio::time::timeout(std::time::Duration::from_millis(200), &mut read).await;
    assert!(waited.is_err(), "served beyond the limit");
    drop(silent.pop());
    tokio::time::timeout(PATIENCE, read)
        .await
        .expect("not served")
        .unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
}
