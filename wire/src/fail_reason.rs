//! Why a member does not have a message (SPEC §5.3).

use core::fmt;

/// Why a member does not have, or will not get, a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FailReason {
    /// No acknowledgement for long.
    Silent = 1,
    /// A new plan no longer has it.
    Removed = 2,
    /// It started anew or joined too late to have the start of the message.
    Late = 3,
    /// Its application: no space left on device.
    NoSpace = 4,
    /// Its application: some other input or output error.
    Storage = 5,
    /// Its application gave up, or there is none.
    Cancelled = 6,
    /// There is no route to it, or one too long for the packets.
    NoRoute = 7,
    /// It hangs below a host that failed, and no new plan came.
    Orphaned = 8,
    /// At the origin of a circuit that returns: what came back is not what it sent.
    Differs = 9,
    /// Its application took it slower than the sender lets others wait.
    TooSlow = 10,
}

impl FailReason {
    pub const ALL: [FailReason; 10] = [
        FailReason::Silent,
        FailReason::Removed,
        FailReason::Late,
        FailReason::NoSpace,
        FailReason::Storage,
        FailReason::Cancelled,
        FailReason::NoRoute,
        FailReason::Orphaned,
        FailReason::Differs,
        FailReason::TooSlow,
    ];

    /// The reason with that code on the wire.
    pub fn from_code(code: u8) -> Option<FailReason> {
        FailReason::ALL
            .into_iter()
            .find(|reason| *reason as u8 == code)
    }

    /// True if the member itself is gone, false if its application gave up.
    pub fn is_host_dead(self) -> bool {
        matches!(
            self,
            FailReason::Silent | FailReason::Removed | FailReason::NoRoute | FailReason::Orphaned
        )
    }
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailReason::Silent => "no acknowledgement",
            FailReason::Removed => "removed from the group",
            FailReason::Late => "joined or restarted after the message began",
            FailReason::NoSpace => "no space left on device",
            FailReason::Storage => "input/output error",
            FailReason::Cancelled => "application gave up",
            FailReason::NoRoute => "no usable route",
            FailReason::Orphaned => "below a failed host",
            FailReason::Differs => "returned other than it was sent",
            FailReason::TooSlow => "too slow",
        })
    }
}
