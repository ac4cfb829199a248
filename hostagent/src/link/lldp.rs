//! The discovery frame by which the controller finds out where this host hangs
//! (IEEE 802.1AB; the edge switch hands EtherType 0x88CC to its CPU port).

use super::MacAddress;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Seconds after which a receiver forgets this host.
pub const LLDP_TTL_S: u16 = 4;

const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];
const ETHERTYPE: [u8; 2] = [0x88, 0xcc];
const FRAME_BYTES_MIN: usize = 60;
const CHASSIS_ID: u8 = 1;
const PORT_ID: u8 = 2;
const TIME_TO_LIVE: u8 = 3;
const ORGANISATION: u8 = 127;
/// Our organisation, and the TLV of proofs there.
const PROOF: [u8; 4] = [0x00, 0x57, 0x43, 2];
/// Of the HMAC so many bytes are sent.
const CHECK_BYTES: usize = 16;
const SUBTYPE_CHASSIS_LOCAL: u8 = 7;
const SUBTYPE_PORT_MAC: u8 = 3;

/// Shows that announcements are made by the agent that registered: each has another number and
/// an HMAC by the agent's secret.
#[derive(Clone)]
pub struct Prover {
    hash: Hmac<Sha256>,
    number: u64,
}

impl std::fmt::Debug for Prover {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Prover")
    }
}

impl Prover {
    /// `challenge`: of the controller, in answer to the last registration.
    pub fn new(secret: &[u8; 32], challenge: &[u8]) -> Self {
        // A key is as long as a block of the hash; what it is short of are zeros (RFC 2104 §2).
        let mut key = hmac::digest::Key::<Hmac<Sha256>>::default();
        key[..secret.len()].copy_from_slice(secret);
        let mut hash = <Hmac<Sha256> as KeyInit>::new(&key);
        hash.update(challenge);
        Self { hash, number: 0 }
    }

    /// The value of the TLV for the next announcement.
    fn prove(&mut self, name: &str, address: MacAddress, ttl_s: u16) -> Vec<u8> {
        self.number += 1;
        let number = self.number.to_be_bytes();
        let mut hash = self.hash.clone();
        hash.update(&number);
        hash.update(&ttl_s.to_be_bytes());
        hash.update(&address.0);
        hash.update(name.as_bytes());
        let check = hash.finalize().into_bytes();
        [&PROOF, &number[..], &check[..CHECK_BYTES]].concat()
    }
}

/// Builds the whole Ethernet frame: chassis `host:<name>` (locally assigned), port id the
/// hardware address, time to live `ttl_s` (0 says good-bye), and a proof if there is a prover.
///
/// `name` is cut to the 250 bytes a chassis id has room for, at a character boundary.
pub fn build_lldp_frame(
    name: &str,
    mac: MacAddress,
    ttl_s: u16,
    prover: Option<&mut Prover>,
) -> Vec<u8> {
    let mut cut = name.len().min(250);
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut chassis = vec![SUBTYPE_CHASSIS_LOCAL];
    chassis.extend_from_slice(b"host:");
    chassis.extend_from_slice(&name.as_bytes()[..cut]);
    let mut port = vec![SUBTYPE_PORT_MAC];
    port.extend_from_slice(&mac.0);

    let mut frame = Vec::with_capacity(FRAME_BYTES_MIN);
    frame.extend_from_slice(&NEAREST_BRIDGE);
    frame.extend_from_slice(&mac.0);
    frame.extend_from_slice(&ETHERTYPE);
    push_tlv(&mut frame, CHASSIS_ID, &chassis);
    push_tlv(&mut frame, PORT_ID, &port);
    push_tlv(&mut frame, TIME_TO_LIVE, &ttl_s.to_be_bytes());
    if let Some(prover) = prover {
        push_tlv(
            &mut frame,
            ORGANISATION,
            &prover.prove(&name[..cut], mac, ttl_s),
        );
    }
    push_tlv(&mut frame, 0, &[]);
    if frame.len() < FRAME_BYTES_MIN {
        frame.resize(FRAME_BYTES_MIN, 0);
    }
    frame
}

/// Type in the upper 7 bits, length in the lower 9 (802.1AB §8.4).
fn push_tlv(frame: &mut Vec<u8>, kind: u8, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX).min(0x1ff);
    frame.extend_from_slice(&(u16::from(kind) << 9 | length).to_be_bytes());
    frame.extend_from_slice(&value[..usize::from(length)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);

    #[test]
    fn frame_is_byte_for_byte_what_802_1ab_says() {
        let frame = build_lldp_frame("h7", MAC, 4, None);
        let expected = [
            0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 7, 0x88, 0xcc, // Ethernet
            0x02, 8, 7, b'h', b'o', b's', b't', b':', b'h', b'7', // chassis id
            0x04, 7, 3, 2, 0, 0, 0, 0, 7, // port id
            0x06, 2, 0, 4, // time to live
            0, 0, // end
        ];
        assert_eq!(&frame[..expected.len()], &expected);
        assert_eq!(frame.len(), 60);
        assert!(frame[expected.len()..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_long_name_is_cut_at_a_character() {
        let frame = build_lldp_frame(&"é".repeat(200), MAC, 0, None);
        let length = usize::from(u16::from_be_bytes([frame[14], frame[15]]) & 0x1ff);
        assert_eq!(length, 1 + 5 + 250);
        assert!(std::str::from_utf8(&frame[17..16 + length]).is_ok());
    }

    #[test]
    fn proofs_are_what_the_controller_expects_and_never_the_same() {
        let mut prover = Prover::new(&[7; 32], &[9; 16]);
        let frame = build_lldp_frame("h7", MAC, 4, Some(&mut prover));
        // Computed by `prove` of controller/wormcast/discovery/lldp.py; tests/python/test_identity.py has the same.
        let expected = "0057430200000000000000014570eb0d1fb913c7e9e465d1acd90d45";
        let proof: String = frame[39..67]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(proof, expected);
        assert_eq!(frame[67..69], [0, 0], "the end");
        let next = build_lldp_frame("h7", MAC, 4, Some(&mut prover));
        assert_ne!(frame, next);
    }
}
