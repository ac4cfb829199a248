//! Cyclic redundancy checks whose parameters a control plane sets while the program runs.

/// Parameters of a CRC, in the terms of R. Williams, "A painless guide to CRC error
/// detection algorithms", section 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcParameters {
    /// Bits of the result: 16 or 32.
    pub width_bits: u32,
    /// Generator polynomial without its highest term.
    pub polynomial: u32,
    /// The register before the first byte.
    pub initial: u32,
    /// Exclusive or with the result.
    pub final_xor: u32,
    /// Bytes enter their lowest bit first.
    pub reflect_input: bool,
    /// The register is read in reverse before the final exclusive or.
    pub reflect_output: bool,
}

/// A CRC ready to run.
#[derive(Clone, Debug)]
pub(super) struct CustomCrc {
    parameters: CrcParameters,
    /// What each byte does to the register, which is kept in the highest bits of 32.
    table: [u32; 256],
}

impl CustomCrc {
    pub(super) fn new(parameters: CrcParameters) -> Self {
        let polynomial = parameters.polynomial << (32 - parameters.width_bits);
        let mut table = [0; 256];
        for (byte, effect) in table.iter_mut().enumerate() {
            let mut register = (byte as u32) << 24;
            for _ in 0..8 {
                let out = register >> 31;
                register = (register << 1) ^ (out * polynomial);
            }
            *effect = register;
        }
        Self { parameters, table }
    }

    pub(super) fn compute(&self, bytes: &[u8]) -> u64 {
        let parameters = &self.parameters;
        let spare_bits = 32 - parameters.width_bits;
        let mut register = parameters.initial << spare_bits;
        for &byte in bytes {
            let byte = if parameters.reflect_input {
                byte.reverse_bits()
            } else {
                byte
            };
            let index = (register >> 24) as u8 ^ byte;
            register = (register << 8) ^ self.table[usize::from(index)];
        }
        let result = if parameters.reflect_output {
            register.reverse_bits()
        } else {
            register >> spare_bits
        };
        u64::from(result ^ parameters.final_xor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(width_bits: u32, words: [u32; 3], reflect: bool) -> u64 {
        let [polynomial, initial, final_xor] = words;
        let crc = CustomCrc::new(CrcParameters {
            width_bits,
            polynomial,
            initial,
            final_xor,
            reflect_input: reflect,
            reflect_output: reflect,
        });
        crc.compute(b"123456789")
    }

    /// Check values of the catalogue of parametrised CRC algorithms (G. Cook).
    #[test]
    fn check_values() {
        assert_eq!(check(16, [0x8005, 0, 0], true), 0xbb3d, "ARC");
        assert_eq!(check(16, [0x1021, 0xffff, 0], false), 0x29b1, "IBM-3740");
        assert_eq!(check(16, [0x3d65, 0, 0xffff], true), 0xea82, "DNP");
        let iso_hdlc = [0x04c1_1db7, u32::MAX, u32::MAX];
        assert_eq!(check(32, iso_hdlc, true), 0xcbf4_3926, "ISO-HDLC");
        assert_eq!(check(32, iso_hdlc, false), 0xfc89_1918, "BZIP2");
        let iscsi = [0x1edc_6f41, u32::MAX, u32::MAX];
        assert_eq!(check(32, iscsi, true), 0xe306_9283, "ISCSI");
    }
}
