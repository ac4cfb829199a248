//! Integers as P4Runtime writes them (§"Bytestrings").

use super::rejection::Rejection;
use crate::pipeline::Bits;

/// A value of at most `width_bits` bits. Leading zeros are accepted in any number; an
/// empty string and a value that is too large are OUT_OF_RANGE.
pub fn parse(bytes: &[u8], width_bits: u32) -> Result<Bits, Rejection> {
    if bytes.is_empty() {
        return Err(Rejection::out_of_range(format!(
            "the value is empty; at least one byte is needed for a value of {width_bits} bits"
        )));
    }
    let value = Bits::from_bytes(bytes);
    if value.width_bits() > width_bits {
        return Err(Rejection::out_of_range(format!(
            "value {value} does not fit into {width_bits} bits (at most {})",
            Bits::ones(width_bits)
        )));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of valid and invalid encodings in the specification.
    #[test]
    fn examples_of_the_specification() {
        let valid: [(u32, &[u8], u64); 7] = [
            (8, b"\x63", 99),
            (16, b"\x00\x63", 99),
            (16, b"\x63", 99),
            (16, b"\x30\x64", 12388),
            (16, b"\x00\x30\x64", 12388),
            (12, b"\x00\x63", 99),
            (12, b"\x00\x00\x63", 99),
        ];
        for (width_bits, bytes, value) in valid {
            let parsed = parse(bytes, width_bits).unwrap();
            assert_eq!(parsed, Bits::from_u64(value));
        }
        let invalid: [(u32, &[u8]); 6] = [
            (8, b"\x01\x63"),
            (8, b""),
            (16, b"\x01\x00\x63"),
            (12, b"\x10\x63"),
            (12, b"\x01\x00\x63"),
            (12, b"\x00\x40\x63"),
        ];
        for (width_bits, bytes) in invalid {
            assert_eq!(
                parse(bytes, width_bits).unwrap_err().code,
                tonic::Code::OutOfRange
            );
        }
    }

    #[test]
    fn errors_name_value_and_bound() {
        assert_eq!(
            parse(&[3, 0xff], 9).unwrap_err().message,
            "value 0x3ff does not fit into 9 bits (at most 0x1ff)"
        );
        assert_eq!(
            parse(&[], 9).unwrap_err().message,
            "the value is empty; at least one byte is needed for a value of 9 bits"
        );
    }
}
