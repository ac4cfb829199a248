//! Groups as an operator asks for them.

use std::net::Ipv4Addr;

use wormcast_wire::{GroupId, HostId, Scheme};

/// Most children of a host in a rooted tree unless asked otherwise.
pub const FAN_OUT_DEFAULT: u64 = 3;
/// Largest limit of children in a rooted tree.
pub const FAN_OUT_MAX: u64 = 16;
/// Largest limit of children in a k-binomial tree.
pub const K_MAX: u64 = 16;
/// Most packets of a typical message.
pub const PACKETS_MAX: u64 = 1 << 32;

/// Shape of a group's structure; 0 lets the planner or the agents choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters {
    /// k-binomial: most children of a host (PACKET §4).
    pub k: u64,
    /// tree: most children of a host (WORM §6).
    pub fan_out: u64,
    /// k-binomial: packets in a typical message, from which the best k follows.
    pub packets: u64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            k: 0,
            fan_out: FAN_OUT_DEFAULT,
            packets: 0,
        }
    }
}

impl Parameters {
    /// Refuses what is outside its bounds.
    ///
    /// # Errors
    /// [`GroupError::Parameter`].
    pub fn check(self) -> Result<Parameters, GroupError> {
        let bounds = [
            ("k", self.k, 0, K_MAX),
            ("fan_out", self.fan_out, 1, FAN_OUT_MAX),
            ("packets", self.packets, 0, PACKETS_MAX),
        ];
        match bounds
            .into_iter()
            .find(|(_, value, low, high)| !(low..=high).contains(&value))
        {
            None => Ok(self),
            Some((name, value, low, high)) => Err(GroupError::Parameter {
                name,
                value,
                low,
                high,
            }),
        }
    }
}

/// A group that cannot exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A parameter is outside its bounds.
    #[error("parameter {name} is {value}")]
    Parameter {
        /// Its name.
        name: &'static str,
        /// What was given.
        value: u64,
        /// Least that is possible.
        low: u64,
        /// Most that is possible.
        high: u64,
    },
    /// The number of all hosts is no group's.
    #[error("group 255 is broadcast and cannot be configured")]
    Broadcast,
    /// Nobody is in it.
    #[error("a group without members")]
    NoMembers,
    /// Members out of order.
    #[error("members {0:?} are not ascending and distinct")]
    Order(Vec<u16>),
}

/// A group as configured; its members may be out of reach at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub id: GroupId,
    /// Its name.
    pub name: String,
    /// Its scheme.
    pub scheme: Scheme,
    /// Ascending.
    pub members: Vec<HostId>,
    /// Shape of its structure.
    pub parameters: Parameters,
    /// IP multicast address whose packets it carries (WORM §8.1).
    pub class_d: Option<Ipv4Addr>,
}

impl Group {
    /// Refuses a group that cannot exist.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn check(self) -> Result<Group, GroupError> {
        self.parameters.check()?;
        if self.id == GroupId::BROADCAST {
            return Err(GroupError::Broadcast);
        }
        if self.members.is_empty() {
            return Err(GroupError::NoMembers);
        }
        if !self.members.is_sorted_by(|a, b| a < b) {
            return Err(GroupError::Order(
                self.members.iter().map(|host| host.0).collect(),
            ));
        }
        Ok(self)
    }
}
