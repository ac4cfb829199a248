//! `/trace`: packets as the pipeline sees them, for as long as the client listens.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::server::{Answer, Device, PLAIN_TYPE, Shared, text};
use wormcast_switch_dataplane::trace::{RECORDS_MAX, trace_channel, write_record};
use wormcast_switch_pipeline::trace::{Filter, Format};

/// Written records that wait for a client; the records behind them wait in their channel.
const CHUNKS_MAX: usize = 4;

/// What a query asks for.
#[derive(Debug, Default)]
struct Wanted {
    device: Option<u64>,
    format: Format,
    filter: Filter,
}

impl Shared {
    pub(super) async fn trace(&self, query: &str) -> Answer {
        let refuse = |status, problem: String| text(status, PLAIN_TYPE, problem + "\n");
        let wanted = match parse(query) {
            Ok(wanted) => wanted,
            Err(problem) => return refuse(StatusCode::BAD_REQUEST, problem),
        };
        let devices = (self.devices)();
        let device = match choose(&devices, wanted.device) {
            Ok(device) => device,
            Err(problem) => return refuse(StatusCode::NOT_FOUND, problem),
        };
        let (sink, mut reader) = trace_channel(RECORDS_MAX);
        let filter = wanted.filter;
        let added = device
            .dataplane
            .run(move |switch| switch.tracing().add(filter, sink));
        match added.await {
            Ok(Ok(())) => {}
            Ok(Err(full)) => return refuse(StatusCode::SERVICE_UNAVAILABLE, full.to_string()),
            Err(stopped) => return refuse(StatusCode::SERVICE_UNAVAILABLE, stopped.to_string()),
        }
        let (chunks, body) = mpsc::channel(CHUNKS_MAX);
        let format = wanted.format;
        tokio::spawn(async move {
            loop {
                let read = tokio::select! {
                    read = reader.read() => read,
                    () = chunks.closed() => return,
                };
                let Some((record, lost)) = read else { return };
                let chunk = Bytes::from(write_record(&record, lost, format));
                if chunks.send(chunk).await.is_err() {
                    return; // the client has gone
                }
            }
        });
        let body = ReceiverStream::new(body).map(|chunk| Ok::<_, Infallible>(Frame::data(chunk)));
        let mut answer = Response::new(StreamBody::new(body).boxed_unsync());
        let kind = match format {
            Format::Text => PLAIN_TYPE,
            Format::Json => "application/x-ndjson",
        };
        let kind = HeaderValue::from_static(kind);
        answer.headers_mut().insert(CONTENT_TYPE, kind);
        answer
    }
}

fn choose(devices: &[Device], wanted: Option<u64>) -> Result<&Device, String> {
    let known = || -> String {
        let ids = devices.iter().map(|device| device.id.to_string());
        ids.collect::<Vec<String>>().join(", ")
    };
    match (wanted, devices) {
        (None, [only]) => Ok(only),
        (None, _) => Err(format!("say which device: device={}", known())),
        (Some(id), _) => devices
            .iter()
            .find(|device| device.id == id)
            .ok_or_else(|| format!("there is no device {id}; there are {}", known())),
    }
}

fn parse(query: &str) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    for condition in query.split('&').filter(|condition| !condition.is_empty()) {
        let (name, value) = condition.split_once('=').unwrap_or((condition, ""));
        // A colon and a slash of a byte match may come encoded.
        let value = value.replace("%3A", ":").replace("%3a", ":");
        let value = value.replace("%2F", "/").replace("%2f", "/");
        match name {
            "format" => wanted.format = value.parse()?,
            "device" => {
                let id = value.parse();
                wanted.device = Some(id.map_err(|_| format!("device: `{value}` is no id"))?);
            }
            _ => wanted.filter.set(name, &value)?,
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        let wanted = parse("port=1&count=5&format=json&match=12%3A0800%2Ff0f0&device=3").unwrap();
        assert_eq!(wanted.device, Some(3));
        assert_eq!(wanted.format, Format::Json);
        assert_eq!(
            wanted.filter.to_string(),
            "port=1,match=12:0800/f0f0,count=5"
        );
        assert_eq!(parse("").unwrap().filter.to_string(), "all");
        for (query, expected) in [
            ("format=xml", "`xml` is not a format: text or json"),
            ("device=a", "device: `a` is no id"),
            ("speed=1", "`speed` is no condition of a filter"),
            ("port=", "port: `` is not a number"),
        ] {
            let error = parse(query).unwrap_err();
            assert!(error.contains(expected), "{query}: {error}");
        }
    }
}
