//! Integers as P4Runtime writes them (§"Bytestrings").

use super::rejection::Rejection;
use wormcast_switch_program::Bits;

/// A value of at most `width_bits` bits. Leading zeros are accepted in any number; an
/// empty string and a value that is too large are OUT_OF_RANGE. Of no bits there is one value,
/// 0, for which an empty string may stand.
pub fn parse(bytes: &[u8], width_bits: u32) -> Result<Bits, Rejection> {
    if bytes.is_empty() && width_bits > 0 {
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

/// A value of type `int<W>`: two's complement, with any number of copies of the sign in
/// front. Gives its `width_bits` bits.
pub fn parse_signed(bytes: &[u8], width_bits: u32) -> Result<Bits, Rejection> {
    let Some(first) = bytes.first() else {
        return parse(bytes, width_bits);
    };
    let negative = first & 0x80 != 0;
    // The complement of a negative value is as wide as the value without its sign.
    let magnitude: Vec<u8> = if negative {
        bytes.iter().map(|byte| !byte).collect()
    } else {
        bytes.to_vec()
    };
    if Bits::from_bytes(&magnitude).width_bits() >= width_bits {
        return Err(Rejection::out_of_range(format!(
            "value {} does not fit into {width_bits} bits with a sign",
            Bits::from_bytes(bytes)
        )));
    }
    let count = width_bits.div_ceil(8) as usize;
    let sign = if negative { 0xff } else { 0 };
    let mut padded = vec![sign; count.saturating_sub(bytes.len())];
    padded.extend_from_slice(&bytes[bytes.len().saturating_sub(count)..]);
    Ok(Bits::from_bytes(&padded).and(&Bits::ones(width_bits)))
}

/// The shortest two's complement of `width_bits` bits.
pub fn write_signed(value: &Bits, width_bits: u32) -> Vec<u8> {
    let Some(highest) = width_bits.checked_sub(1) else {
        return Bits::default().to_canonical_bytes();
    };
    let mut bytes = value.to_padded_bytes(width_bits);
    let sign_bit = highest % 8;
    let negative = bytes
        .first()
        .is_some_and(|first| first >> sign_bit & 1 != 0);
    let sign = if negative { 0xff } else { 0 };
    if negative && let Some(first) = bytes.first_mut() {
        // The bits above the width are copies of the sign.
        *first |= (0xff_u16 << sign_bit) as u8;
    }
    let is_sign = |pair: &[u8]| pair[0] == sign && (pair[1] ^ sign) & 0x80 == 0;
    let superfluous = bytes.windows(2).take_while(|pair| is_sign(pair)).count();
    bytes.split_off(superfluous)
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
    fn of_no_bits_there_is_one_value() {
        for bytes in [&b""[..], b"\x00", b"\x00\x00"] {
            assert_eq!(parse(bytes, 0), Ok(Bits::default()));
        }
        let message = parse(&[1], 0).unwrap_err().message;
        assert_eq!(message, "value 0x1 does not fit into 0 bits (at most 0x0)");
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

    /// The signed rows of the same tables.
    #[test]
    fn signed_examples_of_the_specification() {
        let valid: [(u32, &[u8], u64, &[u8]); 7] = [
            (8, b"\x63", 99, b"\x63"),
            (8, b"\x9d", 0x9d, b"\x9d"),
            (8, b"\xff\x9d", 0x9d, b"\x9d"),
            (12, b"\xfd\x1d", 0xd1d, b"\xfd\x1d"),
            (16, b"\x00\x00", 0, b"\x00"),
            (16, b"\x00", 0, b"\x00"),
            (16, b"\xff", 0xffff, b"\xff"),
        ];
        for (width_bits, bytes, value, canonical) in valid {
            let parsed = parse_signed(bytes, width_bits).unwrap();
            assert_eq!(parsed, Bits::from_u64(value), "{bytes:?}");
            assert_eq!(write_signed(&parsed, width_bits), canonical, "{bytes:?}");
        }
        let invalid: [(u32, &[u8]); 4] = [
            (8, b"\x00\x9d"),
            (12, b"\x8d\x1d"),
            (16, b""),
            (8, b"\xff\x63"),
        ];
        for (width_bits, bytes) in invalid {
            let rejection = parse_signed(bytes, width_bits).unwrap_err();
            assert_eq!(rejection.code, tonic::Code::OutOfRange, "{bytes:?}");
        }
        assert_eq!(write_signed(&Bits::default(), 0), [0]);
        for value in 0..32u64 {
            let bytes = write_signed(&Bits::from_u64(value), 5);
            assert_eq!(parse_signed(&bytes, 5).unwrap(), Bits::from_u64(value));
            assert_eq!(bytes.len(), 1);
        }
    }
}
