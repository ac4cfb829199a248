//! Counts of calls by method and status, taken where calls enter and leave the
//! server, whatever it does with them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};
use hyper::http::HeaderMap;
use tonic::codegen::{BoxFuture, Service, http};
use tower::Layer;

/// Methods of `p4.v1.P4Runtime`.
const METHODS: [&str; 6] = [
    "Write",
    "Read",
    "SetForwardingPipelineConfig",
    "GetForwardingPipelineConfig",
    "StreamChannel",
    "Capabilities",
];

/// Methods of `gnmi.gNMI`, which may be served beside it, as they are counted. Calls of
/// anything else are counted together.
const GNMI_METHODS: [&str; 4] = [
    "gNMI.Capabilities",
    "gNMI.Get",
    "gNMI.Set",
    "gNMI.Subscribe",
];

/// Status codes by number (<https://grpc.github.io/grpc/core/md_doc_statuscodes.html>).
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

const CANCELLED: usize = 1;
const UNKNOWN: usize = 2;

/// Calls of one method that ended with one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCount {
    /// Method, `other` for what is none of P4Runtime or gNMI.
    pub method: &'static str,
    /// Code as gRPC names it.
    pub code: &'static str,
    pub requests: u64,
}

/// Counts of calls. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RequestCounts {
    counts: Arc<Mutex<BTreeMap<(&'static str, usize), u64>>>,
}

impl RequestCounts {
    /// Every method and code there has been, in a fixed order.
    pub fn all(&self) -> Vec<RequestCount> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.iter();
        counts
            .map(|(&(method, code), &requests)| RequestCount {
                method,
                code: CODES[code],
                requests,
            })
            .collect()
    }

    fn count(&self, method: &'static str, code: usize) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((method, code)).or_default() += 1;
    }
}

/// Counts the calls of a service.
#[derive(Clone, Debug, Default)]
pub struct RequestCountLayer {
    counts: RequestCounts,
}

impl RequestCountLayer {
    pub fn new(counts: RequestCounts) -> Self {
        Self { counts }
    }
}

impl<S> Layer<S> for RequestCountLayer {
    type Service = RequestCountService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RequestCountService {
            inner,
            counts: self.counts.clone(),
        }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub struct RequestCountService<S> {
    inner: S,
    counts: RequestCounts,
}

impl<S, R, B> Service<http::Request<R>> for RequestCountService<S>
where
    S: Service<http::Request<R>, Response = http::Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: Body,
{
    type Response = http::Response<CountedBody<B>>;
    type Error = S::Error;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<R>) -> Self::Future {
        let mut ending = Ending {
            counts: self.counts.clone(),
            method: method(request.uri().path()),
            code: None,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            // A call that fails at once has its status among the headers.
            ending.code = status(answer.headers());
            Ok(answer.map(|body| CountedBody {
                body: Box::pin(body),
                ending,
            }))
        })
    }
}

fn method(path: &str) -> &'static str {
    let known = match path.strip_prefix("/p4.v1.P4Runtime/") {
        Some(name) => METHODS.into_iter().find(|known| *known == name),
        None => GNMI_METHODS.into_iter().find(|known| {
            let name = known.strip_prefix("gNMI.");
            name.is_some() && name == path.strip_prefix("/gnmi.gNMI/")
        }),
    };
    known.unwrap_or("other")
}

fn status(headers: &HeaderMap) -> Option<usize> {
    let code = headers.get("grpc-status")?.to_str().ok()?.parse().ok();
    Some(code.filter(|code| *code < CODES.len()).unwrap_or(UNKNOWN))
}

/// Counts a call when it is dropped: without a status the client went away before the end.
#[derive(Debug)]
struct Ending {
    counts: RequestCounts,
    method: &'static str,
    code: Option<usize>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.counts
            .count(self.method, self.code.unwrap_or(CANCELLED));
    }
}

/// The answer of a call, with an eye on the status that ends it.
#[derive(Debug)]
pub struct CountedBody<B> {
    body: Pin<Box<B>>,
    ending: Ending,
}

impl<B: Body> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = self.body.as_mut().poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(trailers) = frame.trailers_ref()
        {
            self.ending.code = status(trailers);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_codes() {
        assert_eq!(method("/p4.v1.P4Runtime/Write"), "Write");
        assert_eq!(method("/p4.v1.P4Runtime/Erase"), "other");
        assert_eq!(method("/gnmi.gNMI/Subscribe"), "gNMI.Subscribe");
        assert_eq!(method("/gnmi.gNMI/Write"), "other");
        assert_eq!(method("/"), "other");
        let mut headers = HeaderMap::new();
        assert_eq!(status(&headers), None);
        headers.insert("grpc-status", "7".parse().unwrap());
        assert_eq!(
            status(&headers).map(|code| CODES[code]),
            Some("PERMISSION_DENIED")
        );
        headers.insert("grpc-status", "17".parse().unwrap());
        assert_eq!(status(&headers), Some(UNKNOWN));
    }

    #[test]
    fn a_call_without_a_status_was_cancelled() {
        let counts = RequestCounts::default();
        for code in [Some(0), None, Some(0)] {
            drop(Ending {
                counts: counts.clone(),
                method: "Read",
                code,
            });
        }
        let all = counts.all();
        let seen: Vec<_> = all
            .iter()
            .map(|one| (one.method, one.code, one.requests))
            .collect();
        assert_eq!(seen, [("Read", "OK", 2), ("Read", "CANCELLED", 1)]);
    }
}
