//! The program in a `p4_device_config`: bare, or wrapped as clients of BMv2 may do it.

use prost::Message;

use super::rejection::Rejection;

/// `p4.tmp.P4DeviceConfig` of p4lang/PI (`proto/p4/tmp/p4config.proto`), which P4Runtime's
/// device config was before it became target-specific; the tutorials of p4lang still send it.
#[derive(Clone, PartialEq, Message)]
struct Wrapped {
    /// A new program is to replace the old one; so it is always here.
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// The JSON of the program.
///
/// # Errors
/// `INVALID_ARGUMENT` for what holds no text.
pub fn json_of(device_config: &[u8]) -> Result<String, Rejection> {
    if device_config.is_empty() {
        return Err(Rejection::invalid(
            "the config has no p4_device_config; it must be the JSON that p4c-bm2-ss writes",
        ));
    }
    let mut text = device_config.iter();
    let is_bare = text.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let bytes = match Wrapped::decode(device_config) {
        Ok(wrapped) if !is_bare && !wrapped.device_data.is_empty() => wrapped.device_data,
        _ => device_config.to_vec(),
    };
    String::from_utf8(bytes).map_err(|error| {
        Rejection::invalid(format!(
            "p4_device_config must be the JSON that p4c-bm2-ss writes: {}",
            error.utf8_error()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_and_wrapped_programs() {
        assert_eq!(json_of(b" {\"a\": 1}").unwrap(), " {\"a\": 1}");
        // reassign = true, extras with one pair, device_data = "{}".
        let extras = [0x12, 8, 0x0a, 6, 0x0a, 1, b'k', 0x12, 1, b'v'];
        let wrapped = [&[8, 1][..], &extras, &[0x1a, 2, b'{', b'}']].concat();
        assert_eq!(json_of(&wrapped).unwrap(), "{}");
        let text = json_of(b"not JSON").unwrap();
        assert_eq!(
            text, "not JSON",
            "the reader of programs says what is wrong"
        );
        let refused = json_of(&[0xff, 0xfe]).unwrap_err().to_string();
        assert!(refused.contains("invalid utf-8"), "{refused}");
    }
}
