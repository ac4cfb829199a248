//! Names of schemes, and the parameters each has.

use super::SwitchParameters;
use crate::structure::postal::LAMBDA_DEFAULT;
use crate::structure::{CircuitVariant, FAN_OUT_DEFAULT, StructureError, TreeVariant};

/// Length of an M_u-torus chain unless said otherwise. TORUS §6 finds chains as long as a
/// ring of the torus the best; that is what is taken on a grid, and this nowhere else.
pub const CHAIN_LENGTH_DEFAULT: u32 = 4;

/// How a group's messages reach its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Separate addressing: the source sends to each.
    Repeat,
    /// Hamiltonian circuit.
    Circuit(CircuitVariant),
    /// Rooted tree with at most so many children a host.
    Tree {
        /// How it is used.
        variant: TreeVariant,
        /// Most children of a host.
        fan_out: u32,
    },
    /// k-binomial tree; without `k`, the k that is best for the packets.
    KBinomial {
        /// Most children of a host.
        k: Option<u32>,
    },
    /// Optimal tree of the postal model (NIC §5.5).
    Postal {
        /// Send times until a message has been received, rounded up.
        lambda: u32,
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
    /// TREE routes along the spanning tree of the switches.
    Switch(SwitchParameters),
}

impl Scheme {
    /// Names of all of them.
    pub const NAMES: &'static [&'static str] = &[
        "repeat",
        "circuit",
        "tree",
        "k-binomial",
        "postal",
        "u-torus",
        "s-torus",
        "md-torus",
        "mu-torus",
        "switch",
    ];

    /// The scheme of that name, with default parameters; `separate` is `repeat`.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Scheme, StructureError> {
        match name {
            "repeat" | "separate" => Ok(Scheme::Repeat),
            "circuit" => Ok(Scheme::Circuit(CircuitVariant::OmitLast)),
            "tree" => Ok(Scheme::Tree {
                variant: TreeVariant::Unordered,
                fan_out: FAN_OUT_DEFAULT,
            }),
            "k-binomial" => Ok(Scheme::KBinomial { k: None }),
            "postal" => Ok(Scheme::Postal {
                lambda: LAMBDA_DEFAULT,
            }),
            "u-torus" => Ok(Scheme::UTorus),
            "s-torus" => Ok(Scheme::STorus),
            "md-torus" => Ok(Scheme::MdTorus),
            "mu-torus" => Ok(Scheme::MuTorus { r: None }),
            "switch" => Ok(Scheme::Switch(SwitchParameters::default())),
            _ => Err(StructureError::UnknownName {
                what: "scheme",
                name: name.to_owned(),
                choices: Scheme::NAMES,
            }),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Repeat => "repeat",
            Scheme::Circuit(_) => "circuit",
            Scheme::Tree { .. } => "tree",
            Scheme::KBinomial { .. } => "k-binomial",
            Scheme::Postal { .. } => "postal",
            Scheme::UTorus => "u-torus",
            Scheme::STorus => "s-torus",
            Scheme::MdTorus => "md-torus",
            Scheme::MuTorus { .. } => "mu-torus",
            Scheme::Switch(_) => "switch",
        }
    }

    /// Whether the order it works on is by coordinates, unless another is asked for.
    pub(super) const fn goes_by_coordinates(self) -> bool {
        matches!(
            self,
            Scheme::UTorus | Scheme::STorus | Scheme::MdTorus | Scheme::MuTorus { .. }
        )
    }
}
