//! JSON nested deeper than `serde_json` reads by itself (128 levels): the tree of a group has two
//! levels for each switch that a worm crosses.

use serde::Deserialize;
use serde_json::{Deserializer, Value};

/// Most levels of objects and lists; a tree of the 64 switches that a worm may cross has 130.
pub const DEPTH_MAX: usize = 512;

/// Reads one value, nested up to [`DEPTH_MAX`] levels.
///
/// # Errors
/// What is wrong with the text, in words.
pub fn parse(text: &str) -> Result<Value, String> {
    let depth = depth(text);
    if depth > DEPTH_MAX {
        return Err(format!(
            "nested {depth} levels deep; at most {DEPTH_MAX} are read"
        ));
    }
    let mut reader = Deserializer::from_str(text);
    // Bounded above.
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Levels of brackets and braces outside of strings.
fn depth(text: &str) -> usize {
    let (mut depth, mut most) = (0usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_up_to_the_bound_and_no_further() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(200)).is_ok());
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        let error = parse(&nested(DEPTH_MAX + 1)).unwrap_err();
        assert!(error.contains("513") && error.contains("512"), "{error}");
        assert!(parse(&"[".repeat(1_000_000)).is_err());
        assert_eq!(parse(r#"{"a[{\"[":"]\\"}"#).unwrap()["a[{\"["], "]\\");
        assert!(parse("1 2").is_err());
        assert!(parse("").is_err());
    }
}
