//! Arguments of a call, by position.

use super::failure::{Application, Failure};
use super::wire::{Type, Value};

/// Arguments that have the types of their method. One that was left out counts as zero,
/// as it does for whoever reads Thrift structures without required fields.
#[derive(Debug)]
pub struct Arguments {
    values: Vec<Option<Value>>,
}

impl Arguments {
    /// Checks the fields of a call. Fields that the method does not have are left out, as
    /// Thrift wants it.
    ///
    /// # Errors
    /// An argument of another type; names it.
    pub fn check(kinds: &[Type], fields: Vec<(i16, Value)>) -> Result<Self, Failure> {
        let mut values = vec![None; kinds.len()];
        for (number, value) in fields {
            let position = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
            let Some(kind) = kinds.get(position) else {
                continue;
            };
            if value.kind() != *kind {
                return Err(Failure::Application {
                    kind: Application::Protocol,
                    why: format!("argument {number} is {:?}, not {kind:?}", value.kind()),
                });
            }
            values[position] = Some(value);
        }
        Ok(Self { values })
    }

    fn get(&self, position: usize) -> Option<&Value> {
        self.values.get(position)?.as_ref()
    }

    pub fn bool(&self, position: usize) -> bool {
        matches!(self.get(position), Some(Value::Bool(true)))
    }

    /// An integer of any width.
    pub fn integer(&self, position: usize) -> i64 {
        self.get(position).map_or(0, integer)
    }

    pub fn bytes(&self, position: usize) -> &[u8] {
        self.get(position).map_or(&[], bytes)
    }

    /// Text; bytes that are not UTF-8 name nothing there is.
    pub fn text(&self, position: usize) -> &str {
        std::str::from_utf8(self.bytes(position)).unwrap_or("\u{fffd}")
    }

    pub fn items(&self, position: usize) -> &[Value] {
        match self.get(position) {
            Some(Value::List(_, items)) => items,
            _ => &[],
        }
    }

    /// A field of a structure.
    pub fn field(&self, position: usize, number: i16) -> Option<&Value> {
        field(self.get(position)?, number)
    }
}

/// A field of a structure; the last one if it is there twice.
pub fn field(value: &Value, number: i16) -> Option<&Value> {
    let Value::Struct(fields) = value else {
        return None;
    };
    let mut fields = fields.iter().rev();
    fields
        .find(|(candidate, _)| *candidate == number)
        .map(|(_, value)| value)
}

/// An integer of any width; 0 for what is none.
pub fn integer(value: &Value) -> i64 {
    match *value {
        Value::I8(value) => i64::from(value),
        Value::I16(value) => i64::from(value),
        Value::I32(value) => i64::from(value),
        Value::I64(value) => value,
        _ => 0,
    }
}

/// Bytes; none for what has none.
pub fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::Binary(bytes) => bytes,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_checked_and_gaps_are_zero() {
        let fields = vec![
            (9, Value::Bool(true)),
            (-3, Value::I8(1)),
            (2, Value::I64(-4)),
        ];
        let arguments = Arguments::check(&[Type::Binary, Type::I64, Type::List], fields).unwrap();
        assert_eq!((arguments.text(0), arguments.integer(1)), ("", -4));
        assert!(arguments.items(2).is_empty());
        let wrong = Arguments::check(&[Type::I32], vec![(1, Value::text("1"))]).unwrap_err();
        let Failure::Application { kind, why } = wrong else {
            panic!("{wrong:?}")
        };
        assert_eq!(kind, Application::Protocol);
        assert_eq!(why, "argument 1 is Binary, not I32");
    }
}
