//! Thrift's binary protocol: messages and the values in them.
//!
//! Format: Apache Thrift, `doc/specs/thrift-binary-protocol.md` and
//! `thrift-protocol-spec.md`. Values describe themselves, so a message is read without
//! knowing the interface it belongs to. Numbers are big-endian.

use std::io::{self, Read};

/// Longest message taken, bytes. A program (`bm_load_new_config`) is the longest there is.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Most values in one message: a value of one byte on the wire takes many in memory.
pub const VALUES_MAX: usize = 1 << 20;

/// Deepest nesting of structures and lists.
pub const DEPTH_MAX: usize = 16;

/// First two bytes of a message in the strict encoding.
const VERSION_1: u32 = 0x8001_0000;

/// Type of a value, as numbered on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Bool = 2,
    I8 = 3,
    /// IEEE 754, 64 bits.
    Double = 4,
    I16 = 6,
    /// Thirty-two bits, signed; enumerations too.
    I32 = 8,
    I64 = 10,
    /// Bytes or text.
    Binary = 11,
    /// Fields with numbers.
    Struct = 12,
    Map = 13,
    /// Values of one type, none twice.
    Set = 14,
    List = 15,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    I8(i8),
    Double(f64),
    I16(i16),
    I32(i32),
    I64(i64),
    Binary(Vec<u8>),
    /// Fields in the order of the wire.
    Struct(Vec<(i16, Value)>),
    /// Types of keys and values, and the pairs.
    Map(Type, Type, Vec<(Value, Value)>),
    Set(Type, Vec<Value>),
    List(Type, Vec<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A call that is answered.
    Call = 1,
    /// The answer, with a result or an exception of the interface.
    Reply = 2,
    /// The answer that the call was not understood.
    Exception = 3,
    /// A call that is not answered.
    Oneway = 4,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Name of the method; `service:method` in a call over the multiplexed protocol.
    pub name: String,
    pub kind: MessageKind,
    /// Number that ties the answer to the call.
    pub sequence: i32,
    /// Arguments, or result.
    pub fields: Vec<(i16, Value)>,
}

/// Why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other side ended the connection between two messages.
    #[error("the connection is closed")]
    Closed,
    /// Reading failed, or the connection ended within a message.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What was read is not a message, or is beyond a limit; says how.
    #[error("not a message of Thrift's protocol: {0}")]
    Malformed(String),
}

impl Type {
    fn from_wire(number: u8) -> Result<Self, WireError> {
        Ok(match number {
            2 => Type::Bool,
            3 => Type::I8,
            4 => Type::Double,
            6 => Type::I16,
            8 => Type::I32,
            10 => Type::I64,
            11 => Type::Binary,
            12 => Type::Struct,
            13 => Type::Map,
            14 => Type::Set,
            15 => Type::List,
            _ => return Err(malformed(format!("{number} is no type"))),
        })
    }
}

impl Value {
    pub fn kind(&self) -> Type {
        match self {
            Value::Bool(_) => Type::Bool,
            Value::I8(_) => Type::I8,
            Value::Double(_) => Type::Double,
            Value::I16(_) => Type::I16,
            Value::I32(_) => Type::I32,
            Value::I64(_) => Type::I64,
            Value::Binary(_) => Type::Binary,
            Value::Struct(_) => Type::Struct,
            Value::Map(..) => Type::Map,
            Value::Set(..) => Type::Set,
            Value::List(..) => Type::List,
        }
    }

    pub fn text(text: &str) -> Self {
        Value::Binary(text.as_bytes().to_vec())
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Bool(value) => out.push(u8::from(*value)),
            Value::I8(value) => out.extend(value.to_be_bytes()),
            Value::Double(value) => out.extend(value.to_be_bytes()),
            Value::I16(value) => out.extend(value.to_be_bytes()),
            Value::I32(value) => out.extend(value.to_be_bytes()),
            Value::I64(value) => out.extend(value.to_be_bytes()),
            Value::Binary(bytes) => {
                write_length(bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Value::Struct(fields) => write_fields(fields, out),
            Value::Map(key, value, pairs) => {
                out.extend([*key as u8, *value as u8]);
                write_length(pairs.len(), out);
                for (key, value) in pairs {
                    key.write(out);
                    value.write(out);
                }
            }
            Value::Set(kind, items) | Value::List(kind, items) => {
                out.push(*kind as u8);
                write_length(items.len(), out);
                items.iter().for_each(|item| item.write(out));
            }
        }
    }
}

impl Message {
    /// Reads one message, and nothing past it.
    ///
    /// # Errors
    /// See [`WireError`]. After any of them the connection is of no use.
    pub fn read(input: impl Read) -> Result<Self, WireError> {
        let mut reader = Reader {
            input,
            bytes_left: MESSAGE_BYTES_MAX,
            values_left: VALUES_MAX,
        };
        let first = reader.first_word()?;
        let (name, kind) = if first & 0x8000_0000 != 0 {
            if first & 0xffff_ff00 != VERSION_1 {
                return Err(malformed(format!("version {:#06x}", first >> 16)));
            }
            (reader.bytes()?, first as u8)
        } else {
            // The older encoding begins with the length of the name.
            let name = reader.exactly(first as usize)?;
            (name, reader.array::<1>()?[0])
        };
        let name =
            String::from_utf8(name).map_err(|_| malformed("the name is not UTF-8".to_owned()))?;
        let kind = match kind {
            1 => MessageKind::Call,
            2 => MessageKind::Reply,
            3 => MessageKind::Exception,
            4 => MessageKind::Oneway,
            _ => return Err(malformed(format!("{kind} is no kind of message"))),
        };
        Ok(Message {
            name,
            kind,
            sequence: i32::from_be_bytes(reader.array()?),
            fields: reader.fields(0)?,
        })
    }

    /// The message in the strict encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend((VERSION_1 | self.kind as u32).to_be_bytes());
        write_length(self.name.len(), &mut out);
        out.extend_from_slice(self.name.as_bytes());
        out.extend(self.sequence.to_be_bytes());
        write_fields(&self.fields, &mut out);
        out
    }
}

fn write_length(length: usize, out: &mut Vec<u8>) {
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    out.extend(length.to_be_bytes());
}

fn write_fields(fields: &[(i16, Value)], out: &mut Vec<u8>) {
    for (number, value) in fields {
        out.push(value.kind() as u8);
        out.extend(number.to_be_bytes());
        value.write(out);
    }
    out.push(0);
}

fn malformed(how: String) -> WireError {
    WireError::Malformed(how)
}

struct Reader<R> {
    input: R,
    bytes_left: usize,
    values_left: usize,
}

impl<R: Read> Reader<R> {
    /// The first word of a message; [`WireError::Closed`] if there is none.
    fn first_word(&mut self) -> Result<u32, WireError> {
        let mut word = [0; 4];
        loop {
            match self.input.read(&mut word[..1]) {
                Ok(0) => return Err(WireError::Closed),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.input.read_exact(&mut word[1..])?;
        self.bytes_left -= 4;
        Ok(u32::from_be_bytes(word))
    }

    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(malformed(format!("more than {MESSAGE_BYTES_MAX} bytes"))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.charge(N)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Room is made as bytes come, not for what the other side promises.
    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, WireError> {
        self.charge(length)?;
        let mut bytes = Vec::new();
        let read = (&mut self.input)
            .take(length as u64)
            .read_to_end(&mut bytes)?;
        if read < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(bytes)
    }

    fn length(&mut self) -> Result<usize, WireError> {
        let length = i32::from_be_bytes(self.array()?);
        usize::try_from(length).map_err(|_| malformed(format!("a length of {length}")))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, WireError> {
        let length = self.length()?;
        self.exactly(length)
    }

    fn fields(&mut self, depth: usize) -> Result<Vec<(i16, Value)>, WireError> {
        let mut fields = Vec::new();
        loop {
            let kind = self.array::<1>()?[0];
            if kind == 0 {
                return Ok(fields);
            }
            let kind = Type::from_wire(kind)?;
            let number = i16::from_be_bytes(self.array()?);
            fields.push((number, self.value(kind, depth + 1)?));
        }
    }

    fn value(&mut self, kind: Type, depth: usize) -> Result<Value, WireError> {
        if depth > DEPTH_MAX {
            return Err(malformed(format!("nested deeper than {DEPTH_MAX}")));
        }
        self.values_left = self
            .values_left
            .checked_sub(1)
            .ok_or_else(|| malformed(format!("more than {VALUES_MAX} values")))?;
        Ok(match kind {
            Type::Bool => Value::Bool(self.array::<1>()?[0] != 0),
            Type::I8 => Value::I8(i8::from_be_bytes(self.array()?)),
            Type::Double => Value::Double(f64::from_be_bytes(self.array()?)),
            Type::I16 => Value::I16(i16::from_be_bytes(self.array()?)),
            Type::I32 => Value::I32(i32::from_be_bytes(self.array()?)),
            Type::I64 => Value::I64(i64::from_be_bytes(self.array()?)),
            Type::Binary => Value::Binary(self.bytes()?),
            Type::Struct => Value::Struct(self.fields(depth)?),
            Type::Set | Type::List => {
                let item = self.array::<1>()?[0];
                let length = self.length()?;
                // An empty list may name no type at all.
                let item = match (item, length) {
                    (0, 0) => Type::I8,
                    _ => Type::from_wire(item)?,
                };
                let mut items = Vec::new();
                for _ in 0..length {
                    items.push(self.value(item, depth + 1)?);
                }
                if kind == Type::Set {
                    Value::Set(item, items)
                } else {
                    Value::List(item, items)
                }
            }
            Type::Map => {
                let [key, value] = self.array()?;
                let length = self.length()?;
                let (key, value) = match (key, value, length) {
                    (0, _, 0) | (_, 0, 0) => (Type::I8, Type::I8),
                    _ => (Type::from_wire(key)?, Type::from_wire(value)?),
                };
                let mut pairs = Vec::new();
                for _ in 0..length {
                    let left = self.value(key, depth + 1)?;
                    pairs.push((left, self.value(value, depth + 1)?));
                }
                Value::Map(key, value, pairs)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(Value::I8),
            any::<i16>().prop_map(Value::I16),
            any::<i32>().prop_map(Value::I32),
            any::<i64>().prop_map(Value::I64),
            (-1e9..1e9f64).prop_map(Value::Double),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Value::Binary),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec((any::<i16>(), inner.clone()), 0..5)
                    .prop_map(Value::Struct),
                (inner.clone(), 0..5usize)
                    .prop_map(|(item, count)| Value::List(item.kind(), vec![item; count])),
                (inner.clone(), inner).prop_map(|(key, value)| Value::Map(
                    key.kind(),
                    value.kind(),
                    vec![(key, value)]
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            name in "[a-z_:]{0,30}",
            sequence in any::<i32>(),
            fields in proptest::collection::vec((any::<i16>(), values()), 0..6),
        ) {
            let message = Message { name, kind: MessageKind::Call, sequence, fields };
            let mut bytes = message.to_bytes();
            prop_assert_eq!(&Message::read(bytes.as_slice()).unwrap(), &message);
            bytes.push(7);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(&Message::read(&mut rest).unwrap(), &message);
            prop_assert_eq!(rest, [7], "nothing past the message is taken");
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::read(bytes.as_slice());
            let strict = [&[0x80, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9][..], &bytes].concat();
            let _ = Message::read(strict.as_slice());
        }

        #[test]
        fn a_cut_message_is_an_error(
            fields in proptest::collection::vec((any::<i16>(), values()), 0..4),
            cut in any::<proptest::sample::Index>(),
        ) {
            let message = Message {
                name: "service:method".to_owned(),
                kind: MessageKind::Call,
                sequence: 1,
                fields,
            };
            let bytes = message.to_bytes();
            let length = cut.index(bytes.len());
            prop_assert!(Message::read(&bytes[..length]).is_err());
        }
    }

    fn refusal(bytes: &[u8]) -> String {
        Message::read(bytes).unwrap_err().to_string()
    }

    /// A call without a name, up to its first field.
    const START: [u8; 12] = [0x80, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn the_older_encoding_is_read_too() {
        let bytes = [
            0, 0, 0, 3, b'a', b':', b'b', 1, 0, 0, 0, 5, 8, 0, 1, 0, 0, 0, 9, 0,
        ];
        let message = Message::read(bytes.as_slice()).unwrap();
        assert_eq!((message.name.as_str(), message.sequence), ("a:b", 5));
        assert_eq!(message.fields, [(1, Value::I32(9))]);
    }

    #[test]
    fn limits_are_named() {
        assert!(matches!(Message::read(&[][..]), Err(WireError::Closed)));
        assert!(refusal(&[0x80, 2, 0, 1]).contains("version 0x8002"));
        let deep: Vec<u8> = START.into_iter().chain([12, 0, 1].repeat(40)).collect();
        assert!(refusal(&deep).contains("nested deeper than 16"));
        let many = [15, 0, 1, 2, 0x7f, 0xff, 0xff, 0xff];
        let many: Vec<u8> = START
            .into_iter()
            .chain(many)
            .chain(vec![1; 2 << 20])
            .collect();
        assert!(refusal(&many).contains("more than 1048576 values"));
        let long = [11, 0, 1, 0x7f, 0xff, 0xff, 0xff];
        let long: Vec<u8> = START.into_iter().chain(long).collect();
        assert!(refusal(&long).contains("more than 67108864 bytes"));
        let negative = [11, 0, 1, 0xff, 0xff, 0xff, 0xff];
        let negative: Vec<u8> = START.into_iter().chain(negative).collect();
        assert!(refusal(&negative).contains("a length of -1"));
        assert!(refusal(&[&START[..], &[5, 0, 1]].concat()).contains("5 is no type"));
    }
}
