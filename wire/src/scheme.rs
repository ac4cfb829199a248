//! The list of schemes: plans, REST, CLI, agents and demo take theirs from here.

/// Who copies a message on its way to the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Hosts pass it on as UNICAST worms.
    Hosts,
    /// Switches copy a TREE worm.
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
    /// By TREE routes (WORM §3); members acknowledge to the origin.
    Switch,
}

impl SchemeName {
    /// All of them.
    pub const ALL: [SchemeName; 10] = [
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
        }
    }

    /// The scheme of that name.
    pub fn from_name(name: &str) -> Option<SchemeName> {
        SchemeName::ALL
            .into_iter()
            .find(|scheme| scheme.name() == name)
    }

    /// Who copies a message.
    pub const fn replication(self) -> Replication {
        match self {
            SchemeName::Switch => Replication::Switches,
            _ => Replication::Hosts,
        }
    }

    /// As agents carry it; `None` where it is planned, replayed and measured only.
    pub const fn carried(self) -> Option<Scheme> {
        match self {
            SchemeName::Repeat => Some(Scheme::Repeat),
            SchemeName::Circuit => Some(Scheme::Circuit),
            SchemeName::Tree => Some(Scheme::Tree),
            SchemeName::KBinomial => Some(Scheme::KBinomial),
            SchemeName::Switch => Some(Scheme::Switch),
            SchemeName::Postal
            | SchemeName::UTorus
            | SchemeName::STorus
            | SchemeName::MdTorus
            | SchemeName::MuTorus => None,
        }
    }
}

/// The schemes by which agents carry groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// [`SchemeName::Repeat`].
    Repeat,
    /// [`SchemeName::Circuit`].
    Circuit,
    /// [`SchemeName::Tree`].
    Tree,
    /// [`SchemeName::KBinomial`].
    KBinomial,
    /// [`SchemeName::Switch`].
    Switch,
}

impl Scheme {
    /// All of them, in the order of the list.
    pub const ALL: [Scheme; 5] = [
        Scheme::Repeat,
        Scheme::Circuit,
        Scheme::Tree,
        Scheme::KBinomial,
        Scheme::Switch,
    ];

    /// Its place in the list.
    pub const fn in_list(self) -> SchemeName {
        match self {
            Scheme::Repeat => SchemeName::Repeat,
            Scheme::Circuit => SchemeName::Circuit,
            Scheme::Tree => SchemeName::Tree,
            Scheme::KBinomial => SchemeName::KBinomial,
            Scheme::Switch => SchemeName::Switch,
        }
    }

    /// As plans, REST, CLI and agents write it.
    pub const fn name(self) -> &'static str {
        self.in_list().name()
    }

    /// The scheme of that name.
    pub fn from_name(name: &str) -> Option<Scheme> {
        SchemeName::from_name(name)?.carried()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_carry_is_in_the_list_in_its_order() {
        let carried: Vec<Scheme> = SchemeName::ALL
            .into_iter()
            .filter_map(SchemeName::carried)
            .collect();
        assert_eq!(carried, Scheme::ALL);
        for scheme in Scheme::ALL {
            assert_eq!(Scheme::from_name(scheme.name()), Some(scheme));
            assert_eq!(scheme.in_list().carried(), Some(scheme));
        }
        for scheme in SchemeName::ALL {
            assert_eq!(SchemeName::from_name(scheme.name()), Some(scheme));
        }
    }
}
