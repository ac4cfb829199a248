//! Numbers and matches as scripts write them.

use super::statement::KeyMatch;
use wormcast_switch_program::{Bits, FieldMatch};
use wormcast_switch_program::{KeyField, MatchKind};

/// A decimal, hexadecimal (`0x`), octal (`0o`) or binary (`0b`) number of at most 64 bits.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    number_bits(text).ok()?.to_u64()
}

/// A number of any width; a decimal one of at most 64 bits.
pub(super) fn number_bits(text: &str) -> Result<Bits, String> {
    let error = || format!("`{text}` is not a number");
    let lower = text.to_ascii_lowercase();
    let (digits, bits_a_digit) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 4),
        Some("0o") => (&lower[2..], 3),
        Some("0b") => (&lower[2..], 1),
        _ if lower.starts_with('+') => return Err(error()),
        _ => return lower.parse().map(Bits::from_u64).map_err(|_| error()),
    };
    if digits.is_empty() {
        return Err(error());
    }
    // Bits, least significant first, then bytes.
    let mut bits = Vec::with_capacity(digits.len() * bits_a_digit);
    for digit in digits.chars().rev() {
        let value = digit.to_digit(1 << bits_a_digit).ok_or_else(error)?;
        bits.extend((0..bits_a_digit).map(|bit| value >> bit & 1 == 1));
    }
    let bytes = bits.chunks(8).rev().map(|chunk| {
        let ones = chunk.iter().enumerate().filter(|(_, one)| **one);
        ones.fold(0, |byte, (bit, _)| byte | 1 << bit)
    });
    Ok(Bits::from_bytes(&bytes.collect::<Vec<u8>>()))
}

/// Value and mask of a number whose digits may be `*`, or of `VALUE&&&MASK`.
pub(super) fn masked_bits(text: &str, width: u32) -> Result<(Bits, Bits), String> {
    if let Some((value, mask)) = text.split_once("&&&") {
        let mask = number_bits(mask)?;
        return Ok((number_bits(value)?.and(&mask), mask));
    }
    let lower = text.to_ascii_lowercase();
    let ones = match lower.get(..2) {
        Some("0x") => 'f',
        Some("0o") => '7',
        Some("0b") => '1',
        _ => return Ok((number_bits(text)?, Bits::ones(width))),
    };
    let (prefix, digits) = lower.split_at(2);
    if !digits.contains('*') {
        return Ok((number_bits(text)?, Bits::ones(width)));
    }
    let value = digits.replace('*', "0");
    let mask = digits.chars();
    let mask: String = mask
        .map(|digit| if digit == '*' { '0' } else { ones })
        .collect();
    let mask = number_bits(&format!("{prefix}{mask}"))?.and(&Bits::ones(width));
    Ok((number_bits(&format!("{prefix}{value}"))?.and(&mask), mask))
}

/// The matches of an entry, one for each field of the table; what is not named is 0 in an
/// exact field and anything in others.
pub(super) fn key_matches(
    fields: &[KeyField],
    key: &[KeyMatch],
) -> Result<Vec<FieldMatch>, String> {
    let mut matches: Vec<FieldMatch> = fields
        .iter()
        .map(|field| match field.kind {
            MatchKind::Exact | MatchKind::Valid => FieldMatch::Exact(Bits::default()),
            _ => FieldMatch::Any,
        })
        .collect();
    for part in key {
        let index = find_field(fields, &part.field)?;
        matches[index] = field_match(&fields[index], &part.value)?;
    }
    Ok(matches)
}

fn field_match(field: &KeyField, text: &str) -> Result<FieldMatch, String> {
    let width = field.width_bits;
    Ok(match field.kind {
        MatchKind::Exact | MatchKind::Valid | MatchKind::Optional => {
            FieldMatch::Exact(number_bits(text)?)
        }
        MatchKind::Ternary => {
            let (value, mask) = masked_bits(text, width)?;
            if mask == Bits::default() {
                return Ok(FieldMatch::Any);
            }
            FieldMatch::Ternary { value, mask }
        }
        MatchKind::Lpm => {
            let (value, prefix_len) = prefix(text, width)?;
            FieldMatch::Lpm {
                value: value.and(&Bits::prefix_mask(width, prefix_len)),
                prefix_len,
            }
        }
        MatchKind::Range => {
            let (low, high) = text
                .split_once("->")
                .or_else(|| text.split_once(".."))
                .ok_or_else(|| format!("`{text}` is no range: LOW->HIGH"))?;
            FieldMatch::Range {
                low: number_bits(low)?,
                high: number_bits(high)?,
            }
        }
    })
}

/// `VALUE/LENGTH`, or a number whose last digits are `*`.
fn prefix(text: &str, width: u32) -> Result<(Bits, u32), String> {
    if let Some((value, length)) = text.split_once('/') {
        let length = length.parse().ok().filter(|length| *length <= width);
        let length =
            length.ok_or_else(|| format!("`{text}` is no prefix of a field of {width} bits"))?;
        return Ok((number_bits(value)?, length));
    }
    let stars = text.chars().filter(|digit| *digit == '*').count() as u32;
    if stars == 0 {
        return Ok((number_bits(text)?, width));
    }
    let bits_a_digit = match text.get(..2) {
        Some("0x" | "0X") => 4,
        Some("0o" | "0O") => 3,
        Some("0b" | "0B") => 1,
        _ => return Err(format!("`{text}` is no prefix: VALUE/LENGTH")),
    };
    let length = width.saturating_sub(stars * bits_a_digit);
    Ok((number_bits(&text.replace('*', "0"))?, length))
}

/// The key field a name means: itself, with an index in brackets written behind `$`, or the
/// end of a name.
fn find_field(fields: &[KeyField], name: &str) -> Result<usize, String> {
    let mut wanted = name.to_owned();
    if let Some((stem, rest)) = name.split_once('$') {
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        if digits > 0 {
            let (index, rest) = rest.split_at(digits);
            wanted = format!("{stem}[{index}]{rest}");
        }
    }
    let position = |fits: &dyn Fn(&str) -> bool| fields.iter().position(|field| fits(&field.name));
    position(&|field| field == wanted)
        .or_else(|| position(&|field| field == format!("{wanted}$")))
        .or_else(|| position(&|field| field == format!("{wanted}.$valid$")))
        .or_else(|| {
            let stem = wanted.strip_suffix("valid")?;
            position(&|field| field == format!("{stem}$valid$"))
        })
        .or_else(|| position(&|field| field.ends_with(&format!(".{wanted}"))))
        .or_else(|| position(&|field| field.ends_with(&format!(".{wanted}$"))))
        .ok_or_else(|| {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            format!(
                "there is no key field `{name}`; there are {}",
                names.join(", ")
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, expected) in [
            ("0", 0),
            ("17", 17),
            ("0x11", 17),
            ("0XFF", 255),
            ("0b101", 5),
            ("0o17", 15),
            ("0xfffffffff", 0xf_ffff_ffff),
        ] {
            assert_eq!(parse_number(text), Some(expected), "{text}");
        }
        for text in ["", "0x", "0b2", "-1", "+1", "1a", "0xé"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
        let wide = number_bits("0x1_0".replace('_', "0000000000000000").as_str()).unwrap();
        assert_eq!(wide.width_bits(), 69);
    }

    #[test]
    fn masks_and_prefixes() {
        let bits = Bits::from_u64;
        assert_eq!(masked_bits("0x1*", 8), Ok((bits(0x10), bits(0xf0))));
        assert_eq!(masked_bits("0b*1*", 8), Ok((bits(2), bits(2))));
        assert_eq!(masked_bits("7", 8), Ok((bits(7), bits(0xff))));
        assert_eq!(masked_bits("0x17&&&0x7", 8), Ok((bits(7), bits(7))));
        assert_eq!(prefix("0x0a**", 16), Ok((bits(0x0a00), 8)));
        assert_eq!(prefix("10/4", 8), Ok((bits(10), 4)));
        assert!(prefix("10/9", 8).is_err());
        assert!(prefix("1*", 8).is_err());
    }
}
