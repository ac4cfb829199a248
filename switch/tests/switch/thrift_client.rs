//! A client of the Thrift interface: calls by name, arguments by position.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use wormcast_switch::dataplane::DataplaneHandle;
use wormcast_switch::log::Log;
use wormcast_switch::thrift::{Identity, Message, MessageKind, ThriftServer, Type, Value};

use super::rig::{DEVICE_ID, PATIENCE};

/// How a call failed.
#[derive(Debug, PartialEq)]
pub enum Failed {
    /// The exception the method declares: its code.
    Code(i32),
    /// The call was not understood.
    Application(String),
}

/// A connection.
pub struct Client {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    sequence: i32,
}

/// Starts a server for a data plane; gives its port.
pub fn serve(dataplane: &DataplaneHandle) -> u16 {
    let server = ThriftServer::bind(0).unwrap();
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

impl Client {
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Self {
            stream,
            answers,
            sequence: 0,
        }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next answer, or that there is none.
    pub fn hear(&mut self) -> Option<Message> {
        Message::read(&mut self.answers).ok()
    }

    /// Calls `service:method`; `None` is the result of `void`.
    pub fn call(&mut self, name: &str, arguments: Vec<Value>) -> Result<Option<Value>, Failed> {
        self.sequence += 1;
        let call = Message {
            name: name.to_owned(),
            kind: MessageKind::Call,
            sequence: self.sequence,
            fields: (1..).zip(arguments).collect(),
        };
        self.send(&call.to_bytes()).unwrap();
        let answer = self.hear().expect("an answer");
        assert_eq!(answer.sequence, self.sequence);
        assert_eq!(Some(answer.name.as_str()), name.split(':').nth(1));
        match (answer.kind, answer.fields.into_iter().next()) {
            (MessageKind::Reply, None) => Ok(None),
            (MessageKind::Reply, Some((0, value))) => Ok(Some(value)),
            (MessageKind::Reply, Some((1, exception))) => match part(&exception, 1) {
                Some(Value::I32(code)) => Err(Failed::Code(*code)),
                other => panic!("{other:?}"),
            },
            (MessageKind::Exception, Some((1, Value::Binary(why)))) => {
                Err(Failed::Application(String::from_utf8(why).unwrap()))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Calls a method of `standard`, whose first argument is the context.
    pub fn standard(
        &mut self,
        method: &str,
        arguments: Vec<Value>,
    ) -> Result<Option<Value>, Failed> {
        let arguments = std::iter::once(int(0)).chain(arguments).collect();
        self.call(&format!("standard:{method}"), arguments)
    }
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

/// A list of structures.
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
