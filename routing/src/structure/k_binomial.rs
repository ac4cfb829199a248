//! k-binomial tree (PACKET §4): a recursively doubling tree in which no host has more
//! than k children, optimal for messages of several packets.

/// T1(n,k): steps until one packet has reached n hosts, the source included.
///
/// # Panics
/// If `k` is 0.
pub fn steps_of_one(hosts: usize, k: u32) -> u32 {
    assert!(k > 0, "k is 0");
    Cover::new(hosts, k).covered.len() as u32 - 1
}

/// T1(n,k) + (m−1)·k: steps until m packets have reached n hosts; 0 if there is nobody
/// to send to, or nothing to send.
///
/// # Panics
/// If `k` is 0.
pub fn steps(hosts: usize, packets: u32, k: u32) -> u64 {
    match (hosts, packets) {
        (0 | 1, _) | (_, 0) => 0,
        _ => u64::from(steps_of_one(hosts, k)) + u64::from(packets - 1) * u64::from(k),
    }
}

/// The k in 1 … ⌈log2 n⌉ that takes the fewest [`steps`], the smaller on a tie; 1 for
/// groups of one or two.
pub fn optimal_k(hosts: usize, packets: u32) -> u32 {
    let most = hosts.max(2).next_power_of_two().trailing_zeros();
    (1..=most)
        .min_by_key(|&k| steps(hosts, packets, k))
        .unwrap_or(1)
}

fn next_covered(covered: &[u64], k: u32) -> u64 {
    let window = covered.len().min(k as usize);
    covered[covered.len() - window..]
        .iter()
        .fold(1u64, |sum, &part| sum.saturating_add(part))
}

/// How the tree divides the hosts.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    k: usize,
    /// N(0,k), N(1,k), … up to the first that is no less than the hosts.
    covered: Vec<u64>,
}

impl Cover {
    pub(super) fn new(hosts: usize, k: u32) -> Cover {
        let mut covered = vec![1u64];
        while *covered.last().expect("never empty") < hosts as u64 {
            covered.push(next_covered(&covered, k));
        }
        Cover {
            k: k as usize,
            covered,
        }
    }

    pub(super) fn time(&self, hosts: usize) -> usize {
        self.covered
            .partition_point(|&covered| covered < hosts as u64)
    }

    /// The first part is N(s−1,k) hosts at the right end, the next N(s−2,k) to the left
    /// of them, and so on, k times.
    pub(super) fn part(&self, time: usize, send: usize) -> usize {
        match time.checked_sub(send + 1) {
            Some(left) if send < self.k => {
                usize::try_from(self.covered[left]).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }
}
