//! Other CRCs for calculations of a program, as a control plane gives them.

use super::Pipeline;
use super::crc::{CrcParameters, CustomCrc};
use super::error::ControlError;
use wormcast_switch_program::Algorithm;

impl Pipeline {
    /// Gives a calculation of the program another CRC. The program has to name
    /// `crc16_custom` or `crc32_custom` for it.
    ///
    /// # Errors
    /// `NotFound` for an unknown calculation, `InvalidArgument` where the program gives it
    /// another algorithm or another width, or a parameter is wider than the CRC.
    pub fn set_crc(
        &mut self,
        calculation: &str,
        parameters: CrcParameters,
    ) -> Result<(), ControlError> {
        let names = &self.program.calculation_names;
        let index = names.iter().position(|name| name == calculation);
        let index = index.ok_or_else(|| ControlError::NotFound {
            what: format!("calculation {calculation}"),
        })?;
        let algorithm = self.program.calculations[index].algorithm;
        let width_bits = match algorithm {
            Algorithm::Crc16Custom => 16,
            Algorithm::Crc32Custom => 32,
            _ => 0,
        };
        if parameters.width_bits != width_bits {
            return Err(ControlError::InvalidArgument {
                what: format!("algorithm for calculation {calculation}"),
                value: format!("a CRC of {} bits", parameters.width_bits),
                bound: match width_bits {
                    0 => format!("none; the program says {algorithm:?}"),
                    _ => format!("a CRC of {width_bits} bits"),
                },
            });
        }
        let most = u32::MAX >> (32 - width_bits);
        let wide = [
            ("polynomial", parameters.polynomial),
            ("initial value", parameters.initial),
            ("final exclusive or", parameters.final_xor),
        ];
        if let Some((what, value)) = wide.into_iter().find(|(_, value)| *value > most) {
            return Err(ControlError::InvalidArgument {
                what: format!("{what} of calculation {calculation}"),
                value: format!("{value:#x}"),
                bound: format!("0x0 to {most:#x}"),
            });
        }
        self.machine.custom_crcs[index] = Some(Box::new(CustomCrc::new(parameters)));
        Ok(())
    }
}
