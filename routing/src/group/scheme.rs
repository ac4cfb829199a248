//! Schemes with the parameters each has.

use super::{Guard, SwitchMode, SwitchParameters};
use crate::structure::{CircuitVariant, FAN_OUT_DEFAULT, StructureError, TreeVariant};
use wormcast_wire::SchemeName;

/// Length of an M_u-torus chain by default. TORUS §6 finds chains as long as a
/// ring of the torus the best; that is what is taken on a grid, and this nowhere else.
pub const CHAIN_LENGTH_DEFAULT: u32 = 4;

/// How a group's messages reach its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Separate addressing: the source sends to each.
    Repeat,
    /// Hamiltonian circuit.
    Circuit(CircuitVariant),
    /// Rooted tree with at most so many children a host.
    Tree {
        variant: TreeVariant,
        /// Most children of a host.
        fan_out: u32,
    },
    /// k-binomial tree; without `k`, the k that is best for the packets.
    KBinomial {
        /// Most children of a host.
        k: Option<u32>,
    },
    /// Optimal tree of the postal model (NIC §5.5); without `lambda`, that of the fabric's costs where
    /// these are known, else
    /// [`LAMBDA_DEFAULT`](crate::structure::postal::LAMBDA_DEFAULT).
    Postal {
        /// Send times until a message has been received, rounded up.
        lambda: Option<u32>,
    },
    /// U-torus: recursive halving (TORUS §3).
    UTorus,
    /// S-torus: one chain along a Hamiltonian path (TORUS §3).
    STorus,
    /// M_d-torus: a chain on each ring of the last dimension (TORUS §3).
    MdTorus,
    /// M_u-torus: chains of equal length along a Hamiltonian path (TORUS §3).
    MuTorus {
        /// Members of a chain; unless given, as many as a ring of the first dimension
        /// has switches.
        r: Option<u32>,
    },
    /// The switches copy (WORM §3): schemes `switch`, `table`, `broadcast`.
    Switch(SwitchParameters),
}

impl Scheme {
    pub const NAMES: &'static [&'static str] = &{
        let mut names = [""; SchemeName::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = SchemeName::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The scheme of that name, with default parameters; `separate` is `repeat`.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Scheme, StructureError> {
        let in_list = match name {
            "separate" => Some(SchemeName::Repeat),
            _ => SchemeName::from_name(name),
        };
        let Some(in_list) = in_list else {
            return Err(StructureError::UnknownName {
                what: "scheme",
                name: name.to_owned(),
                choices: Scheme::NAMES,
            });
        };
        let switch = |mode| Scheme::Switch(SwitchParameters::new(mode, Guard::A));
        Ok(match in_list {
            SchemeName::Repeat => Scheme::Repeat,
            SchemeName::Circuit => Scheme::Circuit(CircuitVariant::OmitLast),
            SchemeName::Tree => Scheme::Tree {
                variant: TreeVariant::Unordered,
                fan_out: FAN_OUT_DEFAULT,
            },
            SchemeName::KBinomial => Scheme::KBinomial { k: None },
            SchemeName::Postal => Scheme::Postal { lambda: None },
            SchemeName::UTorus => Scheme::UTorus,
            SchemeName::STorus => Scheme::STorus,
            SchemeName::MdTorus => Scheme::MdTorus,
            SchemeName::MuTorus => Scheme::MuTorus { r: None },
            SchemeName::Switch => switch(SwitchMode::Tree),
            SchemeName::Table => switch(SwitchMode::Table),
            SchemeName::Broadcast => switch(SwitchMode::Broadcast),
        })
    }

    /// Its place in the list of schemes.
    pub const fn in_list(self) -> SchemeName {
        match self {
            Scheme::Repeat => SchemeName::Repeat,
            Scheme::Circuit(_) => SchemeName::Circuit,
            Scheme::Tree { .. } => SchemeName::Tree,
            Scheme::KBinomial { .. } => SchemeName::KBinomial,
            Scheme::Postal { .. } => SchemeName::Postal,
            Scheme::UTorus => SchemeName::UTorus,
            Scheme::STorus => SchemeName::STorus,
            Scheme::MdTorus => SchemeName::MdTorus,
            Scheme::MuTorus { .. } => SchemeName::MuTorus,
            Scheme::Switch(parameters) => parameters.mode.scheme(),
        }
    }

    pub const fn name(self) -> &'static str {
        self.in_list().name()
    }

    /// Every scheme, with default parameters.
    pub fn all() -> Vec<Scheme> {
        let all = SchemeName::ALL.into_iter();
        all.map(|scheme| Scheme::from_name(scheme.name()).expect("it is listed"))
            .collect()
    }

    /// Whether the order it works on is by coordinates, unless another is asked for.
    pub const fn goes_by_coordinates(self) -> bool {
        matches!(
            self,
            Scheme::UTorus | Scheme::STorus | Scheme::MdTorus | Scheme::MuTorus { .. }
        )
    }
}
