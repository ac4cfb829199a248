//! Values of one type: bytes of a message to what the data plane has, and back.

use std::sync::Arc;

use super::bytestring;
use super::rejection::Rejection;
use super::translation::{SdnType, Translation};
use wormcast_switch_program::Bits;

/// The type of a match field, parameter, cell or packet field.
#[derive(Clone, Debug)]
pub struct ValueType {
    /// Width in the data plane, bits.
    pub width_bits: u32,
    /// What controllers write instead, if it is not the value itself.
    pub translation: Option<Arc<Translation>>,
}

impl ValueType {
    /// A value that is the same on both sides.
    pub fn plain(width_bits: u32) -> Self {
        Self {
            width_bits,
            translation: None,
        }
    }

    /// The value of the data plane.
    pub fn parse(&self, bytes: &[u8]) -> Result<Bits, Rejection> {
        match &self.translation {
            None => bytestring::parse(bytes, self.width_bits),
            Some(translation) => translation.parse(bytes),
        }
    }

    /// The bytes of a message.
    pub fn write(&self, value: &Bits) -> Vec<u8> {
        match &self.translation {
            None => value.to_canonical_bytes(),
            Some(translation) => translation.write(value),
        }
    }

    /// Width that masks, prefixes and ranges of controllers have; `None` where values are
    /// names, which have none.
    pub fn sdn_bits(&self) -> Option<u32> {
        match self
            .translation
            .as_ref()
            .map(|translation| translation.sdn())
        {
            None => Some(self.width_bits),
            Some(SdnType::Bits(bits)) => Some(bits),
            Some(SdnType::Text) => None,
        }
    }

    /// Whether masks, prefixes and ranges mean the same on both sides.
    pub fn is_ordered(&self) -> bool {
        let translation = self.translation.as_ref();
        translation.is_none_or(|translation| translation.is_identity())
    }
}
