//! Clients that keep a server waiting lose their places, and keep nobody out for long.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::metrics::serve;
use super::rig::Rig;
use wormcast_switch::metrics;
use wormcast_switch_listen::CONNECTIONS_MAX;

/// Longer than any of them is waited for; only against hangs.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test]
async fn connections_that_never_speak_http2_keep_no_controller_out() {
    let rig = Rig::start().await;
    let address = rig.address.trim_start_matches("http://").to_owned();
    let mut silent = Vec::new();
    for number in 0..CONNECTIONS_MAX + 10 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // Some begin as HTTP/2 does, and go no further.
        stream
            .write_all(&b"PRI * HTTP/2.0\r\n"[..number % 10])
            .await
            .unwrap();
        silent.push(stream);
    }
    timeout(LONG, rig.controller()).await.expect("kept out");
    for mut stream in silent {
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest);
        // Closed, whether or not what it sent was read.
        let _ = timeout(LONG, read).await.expect("left open");
    }
}

#[tokio::test]
async fn connections_without_a_further_request_keep_no_scraper_out() {
    let rig = Rig::start().await;
    let address = serve(&rig).await;
    let mut idle = Vec::new();
    for _ in 0..metrics::CONNECTIONS_MAX {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        idle.push(stream);
    }
    let mut late = TcpStream::connect(&address).await.unwrap();
    late.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    timeout(LONG, late.read_to_string(&mut answer))
        .await
        .expect("kept out")
        .unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
}
