//! The list of schemes: plans, REST, CLI, agents and demo take theirs from here.

/// Who copies a message on its way to the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Hosts pass it on as UNICAST worms.
    Hosts,
    /// Switches copy a TREE, GROUP or BROADCAST worm.
    Switches,
}

/// How a group's messages reach its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemeName {
    /// Separate addressing: the source sends to each member (TORUS §3).
    Repeat,
    /// Along the Hamiltonian circuit in ID order (WORM §5).
    Circuit,
    /// On the rooted tree, from wherever the origin is (WORM §6).
    Tree,
    /// On the k-binomial tree, first packet first served (PACKET §4).
    KBinomial,
    /// Optimal tree of the postal model (NIC §5.5).
    Postal,
    /// U-torus: recursive halving (TORUS §3).
    UTorus,
    /// S-torus: one chain along a Hamiltonian path (TORUS §3).
    STorus,
    /// M_d-torus: a chain on each ring of the last dimension (TORUS §3).
    MdTorus,
    /// M_u-torus: chains of equal length along a Hamiltonian path (TORUS §3).
    MuTorus,
    /// By TREE routes (WORM §3, Fig. 2); ACKs come up a tree of members, as for all that switches
    /// copy.
    Switch,
    /// By entries in switches: GROUP worms with a header of constant size.
    Table,
    /// Up to the root and down the spanning tree to all hosts: BROADCAST worms (WORM §3); who is no
    /// member drops them.
    Broadcast,
}

impl SchemeName {
    pub const ALL: [SchemeName; 12] = [
        SchemeName::Repeat,
        SchemeName::Circuit,
        SchemeName::Tree,
        SchemeName::KBinomial,
        SchemeName::Postal,
        SchemeName::UTorus,
        SchemeName::STorus,
        SchemeName::MdTorus,
        SchemeName::MuTorus,
        SchemeName::Switch,
        SchemeName::Table,
        SchemeName::Broadcast,
    ];

    /// As plans, REST, CLI and agents write it.
    pub const fn name(self) -> &'static str {
        match self {
            SchemeName::Repeat => "repeat",
            SchemeName::Circuit => "circuit",
            SchemeName::Tree => "tree",
            SchemeName::KBinomial => "k-binomial",
            SchemeName::Postal => "postal",
            SchemeName::UTorus => "u-torus",
            SchemeName::STorus => "s-torus",
            SchemeName::MdTorus => "md-torus",
            SchemeName::MuTorus => "mu-torus",
            SchemeName::Switch => "switch",
            SchemeName::Table => "table",
            SchemeName::Broadcast => "broadcast",
        }
    }

    pub fn from_name(name: &str) -> Option<SchemeName> {
        SchemeName::ALL
            .into_iter()
            .find(|scheme| scheme.name() == name)
    }

    /// Who copies a message.
    pub const fn replication(self) -> Replication {
        match self {
            SchemeName::Switch | SchemeName::Table | SchemeName::Broadcast => Replication::Switches,
            _ => Replication::Hosts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_schemes_are_found_again() {
        for scheme in SchemeName::ALL {
            assert_eq!(SchemeName::from_name(scheme.name()), Some(scheme));
        }
        assert_eq!(SchemeName::from_name("flood"), None);
    }
}
