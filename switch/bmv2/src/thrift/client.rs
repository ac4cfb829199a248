//! A client of the interface: calls by name, arguments by position.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::wire::{Message, MessageKind, Value, WireError};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The exception that the method declares: its code.
    #[error("refused with code {0}")]
    Code(i32),
    /// The switch did not understand the call, or cannot carry it out: its words.
    #[error("refused: {0}")]
    Application(String),
    /// There was no answer, or none that could be read.
    #[error("no answer: {0}")]
    Broken(String),
}

impl From<WireError> for CallError {
    fn from(error: WireError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// A connection to a switch.
pub struct Client {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    sequence: i32,
}

impl Client {
    /// Connects to a port of this machine; an answer may take `patience`.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn connect(port: u16, patience: Duration) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            answers: BufReader::new(stream.try_clone()?),
            stream,
            sequence: 0,
        })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next answer.
    ///
    /// # Errors
    /// None came, or it is no message.
    pub fn hear(&mut self) -> Result<Message, WireError> {
        Message::read(&mut self.answers)
    }

    /// Calls `service:method`; the result is `None` if the method has none.
    ///
    /// # Errors
    /// How the call failed.
    pub fn call(&mut self, name: &str, arguments: Vec<Value>) -> Result<Option<Value>, CallError> {
        self.sequence += 1;
        let call = Message {
            name: name.to_owned(),
            kind: MessageKind::Call,
            sequence: self.sequence,
            fields: (1..).zip(arguments).collect(),
        };
        self.send(&call.to_bytes())
            .map_err(|error| CallError::Broken(error.to_string()))?;
        let answer = self.hear()?;
        // BMv2 repeats the whole name where it does not know the service.
        let names = [Some(name), name.split(':').next_back()];
        if answer.sequence != self.sequence || !names.contains(&Some(&answer.name)) {
            let of = format!("the answer is that of {} {}", answer.name, answer.sequence);
            return Err(CallError::Broken(of));
        }
        match (answer.kind, answer.fields.into_iter().next()) {
            (MessageKind::Reply, None) => Ok(None),
            (MessageKind::Reply, Some((0, value))) => Ok(Some(value)),
            (MessageKind::Reply, Some((1, Value::Struct(exception)))) => {
                match exception.first() {
                    Some((1, Value::I32(code))) => Err(CallError::Code(*code)),
                    // BMv2 leaves a code of 0 out of no exception, but others may.
                    _ => Err(CallError::Code(0)),
                }
            }
            (MessageKind::Exception, Some((1, Value::Binary(why)))) => Err(CallError::Application(
                String::from_utf8_lossy(&why).into_owned(),
            )),
            (kind, field) => Err(CallError::Broken(format!("{kind:?} {field:?}"))),
        }
    }

    /// Calls a method of `standard` whose first argument is the context, of which there is
    /// one.
    ///
    /// # Errors
    /// How the call failed.
    pub fn standard(
        &mut self,
        method: &str,
        arguments: Vec<Value>,
    ) -> Result<Option<Value>, CallError> {
        let context = std::iter::once(Value::I32(0));
        self.call(
            &format!("standard:{method}"),
            context.chain(arguments).collect(),
        )
    }
}
