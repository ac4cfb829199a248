//! A client of the Thrift interface: calls by name, arguments by position.

use wormcast_switch_bmv2::thrift::{Identity, ThriftServer, Type, Value};
use wormcast_switch_dataplane::DataplaneHandle;
use wormcast_switch_dataplane::log::Log;

use super::rig::{DEVICE_ID, PATIENCE};

pub use wormcast_switch_bmv2::thrift::{CallError as Failed, Client};

/// Starts a server for a data plane; gives its port.
pub fn serve(dataplane: &DataplaneHandle) -> u16 {
    let server = ThriftServer::bind(std::net::Ipv4Addr::LOCALHOST.into(), 0).unwrap();
    let port = server.port();
    let identity = Identity {
        device_id: DEVICE_ID,
        thrift_port: port,
        swap: true,
        ..Identity::default()
    };
    tokio::spawn(server.serve(identity, dataplane.clone(), Log::off()));
    port
}

pub fn connect(port: u16) -> Client {
    Client::connect(port, PATIENCE).unwrap()
}

/// A field of a structure.
pub fn part(value: &Value, number: i16) -> Option<&Value> {
    let Value::Struct(fields) = value else {
        panic!("{value:?}");
    };
    let mut fields = fields.iter();
    fields
        .find(|(candidate, _)| *candidate == number)
        .map(|(_, value)| value)
}

pub fn int(value: i32) -> Value {
    Value::I32(value)
}

pub fn text(text: &str) -> Value {
    Value::text(text)
}

pub fn bytes(bytes: &[u8]) -> Value {
    Value::Binary(bytes.to_vec())
}

pub fn structure(fields: Vec<(i16, Value)>) -> Value {
    Value::Struct(fields)
}

pub fn list(items: Vec<Value>) -> Value {
    Value::List(Type::Struct, items)
}

/// The arguments of an action.
pub fn data(arguments: &[&[u8]]) -> Value {
    let arguments = arguments.iter().map(|argument| bytes(argument)).collect();
    Value::List(Type::Binary, arguments)
}

/// `BmMatchParam`s.
pub fn exact(value: &[u8]) -> Value {
    structure(vec![(1, int(0)), (2, structure(vec![(1, bytes(value))]))])
}

pub fn lpm(value: &[u8], prefix: i32) -> Value {
    let inner = structure(vec![(1, bytes(value)), (2, int(prefix))]);
    structure(vec![(1, int(1)), (3, inner)])
}

pub fn ternary(value: &[u8], mask: &[u8]) -> Value {
    let inner = structure(vec![(1, bytes(value)), (2, bytes(mask))]);
    structure(vec![(1, int(2)), (4, inner)])
}

/// `BmAddEntryOptions`.
pub fn priority(priority: i32) -> Value {
    structure(vec![(1, int(priority))])
}
