//! A gNMI client for tests.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use super::rig::PATIENCE;
use wormcast_switch_gnmi::proto::gnmi::g_nmi_client::GNmiClient;
use wormcast_switch_gnmi::proto::gnmi::subscribe_request::Request;
use wormcast_switch_gnmi::proto::gnmi::subscribe_response::Response;
use wormcast_switch_gnmi::proto::gnmi::subscription_list::Mode;
use wormcast_switch_gnmi::proto::gnmi::typed_value::Value;
use wormcast_switch_gnmi::proto::gnmi::{
    Encoding, GetRequest, Notification, Path, PathElem, Poll, SubscribeRequest, Subscription,
    SubscriptionList, SubscriptionMode, TypedValue, Update,
};

pub type Client = GNmiClient<Channel>;

pub async fn connect(address: &str) -> Client {
    GNmiClient::connect(address.to_owned()).await.unwrap()
}

/// A client that takes a few messages and then none until it reads.
pub async fn connect_slow(address: &str) -> Client {
    let endpoint = Endpoint::from_shared(address.to_owned()).unwrap();
    let endpoint = endpoint.initial_stream_window_size(1_024);
    GNmiClient::new(endpoint.connect().await.unwrap())
}

/// `interfaces/interface[name=a]/state`.
pub fn path(text: &str) -> Path {
    let element = |text: &str| {
        let (name, key) = text.split_once("[name=").unwrap_or((text, ""));
        let mut element = PathElem {
            name: name.to_owned(),
            ..PathElem::default()
        };
        if let Some(value) = key.strip_suffix(']') {
            element.key.insert("name".to_owned(), value.to_owned());
        }
        element
    };
    Path {
        elem: text.split('/').map(element).collect(),
        ..Path::default()
    }
}

pub fn state(interface: &str, leaf: &str) -> Path {
    path(&format!(
        "interfaces/interface[name={interface}]/state/{leaf}"
    ))
}

pub fn target(name: &str) -> Option<Path> {
    Some(Path {
        target: name.to_owned(),
        ..Path::default()
    })
}

/// What a notification has of a leaf: interface, name of the leaf, value as text.
pub type LeafUpdate = (String, String, String);

pub fn leaf_update(interface: &str, leaf: &str, value: &str) -> LeafUpdate {
    (interface.to_owned(), leaf.to_owned(), value.to_owned())
}

/// Interface and last element of a path.
fn ends(path: &Path) -> (String, String) {
    let name = path.elem.get(1).and_then(|element| element.key.get("name"));
    let last = path.elem.last().map(|element| element.name.clone());
    (name.cloned().unwrap_or_default(), last.unwrap_or_default())
}

pub fn text(value: &TypedValue) -> String {
    match value.value.as_ref().unwrap() {
        Value::StringVal(text) => text.clone(),
        Value::UintVal(number) => number.to_string(),
        Value::JsonVal(json) | Value::JsonIetfVal(json) => String::from_utf8(json.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Leaves of a notification; what was deleted has the value `gone`.
pub fn leaves(notification: &Notification) -> Vec<LeafUpdate> {
    let updated = notification.update.iter().map(|update: &Update| {
        let (interface, leaf) = ends(update.path.as_ref().unwrap());
        (interface, leaf, text(update.val.as_ref().unwrap()))
    });
    let deleted = notification.delete.iter().map(|path| {
        let (interface, leaf) = ends(path);
        (interface, leaf, "gone".to_owned())
    });
    updated.chain(deleted).collect()
}

/// Leaves that a Get answers.
pub async fn get(client: &mut Client, request: GetRequest) -> Result<Vec<LeafUpdate>, Status> {
    let answer = client.get(request).await?.into_inner();
    Ok(answer.notification.iter().flat_map(leaves).collect())
}

/// A request for one path, in PROTO.
pub fn request(path: Path) -> GetRequest {
    GetRequest {
        path: vec![path],
        encoding: Encoding::Proto as i32,
        ..GetRequest::default()
    }
}

pub fn code<T>(result: Result<T, Status>) -> Code {
    result.err().map_or(Code::Ok, |status| status.code())
}

pub fn subscription(path: Path, mode: SubscriptionMode) -> Subscription {
    Subscription {
        path: Some(path),
        mode: mode as i32,
        ..Subscription::default()
    }
}

pub fn on_change(path: Path) -> Subscription {
    subscription(path, SubscriptionMode::OnChange)
}

pub fn sampled(path: Path, interval: Duration) -> Subscription {
    Subscription {
        sample_interval: interval.as_nanos() as u64,
        ..subscription(path, SubscriptionMode::Sample)
    }
}

/// A list in PROTO.
pub fn list(mode: Mode, subscription: Vec<Subscription>) -> SubscriptionList {
    SubscriptionList {
        subscription,
        mode: mode as i32,
        encoding: Encoding::Proto as i32,
        ..SubscriptionList::default()
    }
}

/// A stream of Subscribe.
pub struct Subscribed {
    requests: mpsc::Sender<SubscribeRequest>,
    responses: Streaming<wormcast_switch_gnmi::proto::gnmi::SubscribeResponse>,
}

impl Subscribed {
    /// Opens a stream; says nothing without a request.
    pub async fn open(client: &mut Client, request: Option<Request>) -> Result<Self, Status> {
        let (requests, stream) = mpsc::channel(8);
        let responses = client.subscribe(ReceiverStream::new(stream)).await?;
        let mut subscribed = Self {
            requests,
            responses: responses.into_inner(),
        };
        if let Some(request) = request {
            subscribed.say(request).await;
        }
        Ok(subscribed)
    }

    pub async fn to(client: &mut Client, list: SubscriptionList) -> Self {
        let request = Request::Subscribe(list);
        Self::open(client, Some(request)).await.unwrap()
    }

    pub async fn say(&mut self, request: Request) {
        let request = SubscribeRequest {
            request: Some(request),
            ..SubscribeRequest::default()
        };
        self.requests.send(request).await.unwrap();
    }

    pub async fn poll(&mut self) {
        self.say(Request::Poll(Poll {})).await;
    }

    /// The next response; none at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Response>, Status> {
        let message = tokio::time::timeout(PATIENCE, self.responses.message());
        let message = message.await.expect("the switch says nothing")?;
        Ok(message.map(|message| message.response.unwrap()))
    }

    pub async fn notification(&mut self) -> Notification {
        match self.next().await.unwrap() {
            Some(Response::Update(notification)) => notification,
            other => panic!("{other:?}"),
        }
    }

    /// Leaves until the switch says that it was all.
    pub async fn all(&mut self) -> Vec<LeafUpdate> {
        let mut found = Vec::new();
        loop {
            match self.next().await.unwrap() {
                Some(Response::Update(notification)) => found.extend(leaves(&notification)),
                Some(Response::SyncResponse(true)) => return found,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits until the switch tells of something.
    pub async fn wait_for(&mut self, wanted: &LeafUpdate) -> Notification {
        loop {
            let notification = self.notification().await;
            if leaves(&notification).contains(wanted) {
                return notification;
            }
        }
    }

    /// What ends the stream.
    pub async fn refusal(&mut self) -> Status {
        self.next().await.unwrap_err()
    }
}
