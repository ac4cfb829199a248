//! The schemes by which hosts carry a group.

/// How a group carries a stream from its origin to its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// The origin sends to each member (TORUS §3, separate addressing).
    Repeat,
    /// Along the Hamiltonian circuit in ID order (WORM §5).
    Circuit,
    /// On the rooted tree, from wherever the origin is (WORM §6).
    Tree,
    /// On the k-binomial tree, first packet first served (PACKET §4).
    KBinomial,
    /// Replicated in the switches by a TREE route (WORM §3); members acknowledge
    /// to the origin.
    Switch,
}

impl Scheme {
    /// All schemes, in the order of their names in plans.
    pub const ALL: [Scheme; 5] = [
        Scheme::Repeat,
        Scheme::Circuit,
        Scheme::Tree,
        Scheme::KBinomial,
        Scheme::Switch,
    ];

    /// The name plans and the API use.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Repeat => "repeat",
            Scheme::Circuit => "circuit",
            Scheme::Tree => "tree",
            Scheme::KBinomial => "k-binomial",
            Scheme::Switch => "switch",
        }
    }

    /// The scheme of that name.
    pub fn from_name(name: &str) -> Option<Scheme> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)
    }
}
