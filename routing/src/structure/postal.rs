//! The optimum of the postal model (Bar-Noy and Kipnis, NIC §5.5): a message takes λ send
//! times to be received, and every host that has it keeps sending.

/// λ by default. λ is how long it takes until a message has been received, in
/// times between two sends, rounded up: 2 if the flight takes any time at all, but no
/// longer than a send.
pub const LAMBDA_DEFAULT: u32 = 2;
/// Largest λ: a message that is a thousand sends under way comes late whatever the tree.
pub const LAMBDA_MAX: u32 = 1024;

fn next_informed(informed: &[u64], lambda: u32) -> u64 {
    match informed.len().checked_sub(lambda as usize) {
        Some(before) => informed[informed.len() - 1].saturating_add(informed[before]),
        None => 1,
    }
}

/// How the tree divides the hosts.
#[derive(Clone, Debug)]
pub(super) struct Postal {
    lambda: usize,
    /// F(0), F(1), … up to the first that is no less than the hosts.
    informed: Vec<u64>,
}

impl Postal {
    pub(super) fn new(hosts: usize, lambda: u32) -> Postal {
        let mut informed = vec![1u64];
        while informed[informed.len() - 1] < hosts as u64 {
            informed.push(next_informed(&informed, lambda));
        }
        Postal {
            lambda: lambda as usize,
            informed,
        }
    }

    pub(super) fn lambda(&self) -> u32 {
        self.lambda as u32
    }

    pub(super) fn time(&self, hosts: usize) -> usize {
        self.informed
            .partition_point(|&informed| informed < hosts as u64)
    }

    /// Whoever gets the message in send number `send` has it λ send times later, and what
    /// is left of `time` then.
    pub(super) fn part(&self, time: usize, send: usize) -> usize {
        match time.checked_sub(send + self.lambda) {
            Some(left) => usize::try_from(self.informed[left]).unwrap_or(usize::MAX),
            None => 0,
        }
    }
}
