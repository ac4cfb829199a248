//! Values as clients want them.

use serde_json::Value as Json;

use crate::proto::gnmi::typed_value::Value as Typed;
use crate::proto::gnmi::{Encoding as Number, TypedValue};
use crate::reading::Value;
use crate::refusal::Refusal;

/// An encoding that is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// JSON, names without modules.
    Json,
    /// JSON by RFC 7951: the names of modules, and 64 bits as text.
    JsonIetf,
    /// A leaf is a value of its own type.
    Proto,
}

impl Encoding {
    /// What Capabilities lists.
    pub(crate) const NUMBERS: [Number; 3] = [Number::Json, Number::Proto, Number::JsonIetf];

    /// Reads the field of a request.
    pub(crate) fn read(number: i32) -> Result<Self, Refusal> {
        match Number::try_from(number) {
            Ok(Number::Json) => Ok(Self::Json),
            Ok(Number::JsonIetf) => Ok(Self::JsonIetf),
            Ok(Number::Proto) => Ok(Self::Proto),
            Ok(other) => Err(Refusal::Encoding(other.as_str_name().to_owned())),
            Err(_) => Err(Refusal::Encoding(number.to_string())),
        }
    }

    /// What leaves have that are sent one by one, as Subscribe does. JSON, which is what a
    /// client gets that names no encoding, is for structures (§2.3): leaves by themselves are
    /// values of their own type (§2.2.3), as Stratum sends them. finsy expects it so.
    pub(crate) fn of_leaves(self) -> Self {
        match self {
            Self::Json | Self::Proto => Self::Proto,
            Self::JsonIetf => Self::JsonIetf,
        }
    }

    pub(crate) fn leaf(self, value: &Value) -> TypedValue {
        match (self, value) {
            (Self::Proto, Value::Text(text)) => typed(Typed::StringVal(text.clone())),
            (Self::Proto, Value::Short(number)) => typed(Typed::UintVal((*number).into())),
            (Self::Proto, Value::Long(number)) => typed(Typed::UintVal(*number)),
            _ => self.json(&self.json_of(value)),
        }
    }

    /// The value of a leaf within JSON.
    pub(crate) fn json_of(self, value: &Value) -> Json {
        match value {
            Value::Text(text) => text.as_str().into(),
            Value::Short(number) => (*number).into(),
            // Readers of JSON may keep numbers in 53 bits (RFC 7951, section 6.1).
            Value::Long(number) if self == Self::JsonIetf => number.to_string().into(),
            Value::Long(number) => (*number).into(),
        }
    }

    /// JSON as a value; of PROTO, which has none, the plain kind.
    pub(crate) fn json(self, json: &Json) -> TypedValue {
        let text = json.to_string().into_bytes();
        typed(match self {
            Self::JsonIetf => Typed::JsonIetfVal(text),
            Self::Json | Self::Proto => Typed::JsonVal(text),
        })
    }
}

fn typed(value: Typed) -> TypedValue {
    TypedValue { value: Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_that_are_not_supported_are_named() {
        let message = |number: i32| Encoding::read(number).unwrap_err().to_string();
        let choices = "is not supported: JSON, JSON_IETF or PROTO";
        assert_eq!(message(1), format!("encoding BYTES {choices}"));
        assert_eq!(message(3), format!("encoding ASCII {choices}"));
        assert_eq!(message(9), format!("encoding 9 {choices}"));
        assert_eq!(Encoding::read(0), Ok(Encoding::Json), "JSON is the default");
    }

    #[test]
    fn numbers_of_64_bits_are_text_in_json_ietf() {
        let encoded = |encoding: Encoding, value: &Value| encoding.leaf(value).value.unwrap();
        let (long, short) = (Value::Long(1 << 60), Value::Short(7));
        let bytes = |text: &str| text.as_bytes().to_vec();
        let long_text = "\"1152921504606846976\"";
        assert_eq!(encoded(Encoding::Proto, &long), Typed::UintVal(1 << 60));
        assert_eq!(
            encoded(Encoding::JsonIetf, &long),
            Typed::JsonIetfVal(bytes(long_text))
        );
        assert_eq!(
            encoded(Encoding::JsonIetf, &short),
            Typed::JsonIetfVal(bytes("7"))
        );
        assert_eq!(
            encoded(Encoding::Json, &long),
            Typed::JsonVal(bytes("1152921504606846976"))
        );
        let text = Value::Text("UP".to_owned());
        assert_eq!(
            encoded(Encoding::Proto, &text),
            Typed::StringVal("UP".to_owned())
        );
        assert_eq!(
            encoded(Encoding::Json, &text),
            Typed::JsonVal(bytes("\"UP\""))
        );
    }
}
