//! Checksums and hashes, as BMv2 defines them.

use twox_hash::XxHash64;
use wormcast_switch_program::Algorithm;

const CRC16_TABLE: [u16; 256] = table16(0xa001);
const CRC_CCITT_TABLE: [u16; 256] = table_ccitt();

const fn table16(polynomial: u16) -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u16;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ polynomial
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

const fn table_ccitt() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000 != 0 {
                value << 1 ^ 0x1021
            } else {
                value << 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// The result of an algorithm over bytes.
pub(super) fn compute(algorithm: Algorithm, bytes: &[u8]) -> u64 {
    match algorithm {
        Algorithm::Checksum16 => u64::from(checksum16(bytes)),
        Algorithm::Crc32 | Algorithm::Crc32Custom => u64::from(crc32fast::hash(bytes)),
        Algorithm::Crc16 | Algorithm::Crc16Custom => {
            u64::from(bytes.iter().fold(0u16, |crc, &byte| {
                crc >> 8 ^ CRC16_TABLE[usize::from(crc as u8 ^ byte)]
            }))
        }
        Algorithm::CrcCcitt => u64::from(bytes.iter().fold(0xffffu16, |crc, &byte| {
            crc << 8 ^ CRC_CCITT_TABLE[usize::from((crc >> 8) as u8 ^ byte)]
        })),
        Algorithm::Identity => bytes
            .iter()
            .take(8)
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
        Algorithm::Xxh64 => XxHash64::oneshot(0, bytes),
        Algorithm::HashEx => u64::from(hash_ex(bytes)),
        Algorithm::Xor16 => fold_words(bytes, 2),
        Algorithm::Xor32 => fold_words(bytes, 4),
    }
}

/// `hash_ex` of BMv2's simple_switch, which takes bytes as signed.
fn hash_ex(bytes: &[u8]) -> u32 {
    let mut hash = bytes.iter().fold(2_166_136_261u32, |hash, &byte| {
        let signed = i32::from(byte.cast_signed());
        (hash ^ signed.cast_unsigned()).wrapping_mul(16_777_619)
    });
    hash = hash.wrapping_add(hash << 13);
    hash ^= hash >> 7;
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 17;
    hash.wrapping_add(hash << 5)
}

/// Internet checksum (RFC 1071); an odd last byte is padded with a zero byte.
fn checksum16(bytes: &[u8]) -> u16 {
    let mut sum = sum_words(bytes);
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A sum that is equal to that of all 16-bit words modulo 2^16 − 1, and 0 only if that is;
/// an odd last byte is padded with a zero byte. Far below 2^48 for a packet.
pub(super) fn sum_words(bytes: &[u8]) -> u64 {
    let mut sum = 0u64;
    let mut chunks = bytes.chunks_exact(4);
    for chunk in &mut chunks {
        sum += u64::from(u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let mut rest = chunks.remainder().chunks_exact(2);
    for pair in &mut rest {
        sum += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    if let [last] = rest.remainder() {
        sum += u64::from(*last) << 8;
    }
    sum
}

/// Exclusive or of big-endian words; the last one is padded with zeros behind.
fn fold_words(bytes: &[u8], size: usize) -> u64 {
    bytes.chunks(size).fold(0, |sum, chunk| {
        let mut word = [0; 8];
        word[8 - size..8 - size + chunk.len()].copy_from_slice(chunk);
        sum ^ u64::from_be_bytes(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    /// Check values of the catalogue of parametrised CRC algorithms (G. Cook).
    #[test]
    fn check_values() {
        assert_eq!(compute(Algorithm::Crc32, CHECK), 0xcbf4_3926);
        assert_eq!(compute(Algorithm::Crc16, CHECK), 0xbb3d);
        assert_eq!(compute(Algorithm::CrcCcitt, CHECK), 0x29b1);
    }

    /// That of XXH64 is in its own test suite; `hash_ex` gave these in simple_switch.
    #[test]
    fn check_values_of_hashes() {
        assert_eq!(compute(Algorithm::Xxh64, CHECK), 0x8cb8_41db_40e6_ae83);
        assert_eq!(compute(Algorithm::HashEx, CHECK), 0xaf67_fb84);
        assert_eq!(compute(Algorithm::HashEx, &[0xff, 0x80, 1]), 0xfd9b_3b6c);
    }

    /// The example of RFC 1071, section 3.
    #[test]
    fn internet_checksum() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(compute(Algorithm::Checksum16, &bytes), 0x220d);
        assert_eq!(
            compute(Algorithm::Checksum16, &[0xab]),
            u64::from(!0xab00u16)
        );
    }

    #[test]
    fn folds_pad_behind() {
        assert_eq!(
            compute(Algorithm::Xor16, &[0x12, 0x34, 0x56]),
            0x1234 ^ 0x5600
        );
        assert_eq!(
            compute(Algorithm::Xor32, &[1, 2, 3, 4, 5]),
            0x0102_0304 ^ 0x0500_0000
        );
        assert_eq!(
            compute(Algorithm::Identity, &[1; 12]),
            0x0101_0101_0101_0101
        );
    }
}
