//! The routes to one host, and which of them the next message takes.

use crate::plan::PlanError;
use std::sync::Arc;
use wormcast_wire::{ALTERNATIVES_MAX, HostId, ROUTE_LENGTH_MAX, SHARES_WHOLE};

/// One of the routes to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Port bytes, ejection to in-transit hosts included.
    pub ports: Vec<u8>,
    /// How many of [`SHARES_WHOLE`] messages take it.
    pub share: u32,
}

/// The routes to one host, in the order of their turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternatives {
    /// One to [`ALTERNATIVES_MAX`]; their shares add up to [`SHARES_WHOLE`].
    pub routes: Vec<Alternative>,
    /// Whether a message takes one at random, by share (rmit and pit, ITB §IV.D); else they
    /// take turns: after as many messages as bring all shares to whole numbers, each has had
    /// its share exactly.
    pub at_random: bool,
}

impl From<Vec<u8>> for Alternatives {
    fn from(ports: Vec<u8>) -> Alternatives {
        Alternatives {
            routes: vec![Alternative {
                ports,
                share: SHARES_WHOLE,
            }],
            at_random: false,
        }
    }
}

impl Alternatives {
    /// Whether these can be the routes to a host.
    pub(crate) fn check(&self, host: HostId, port_max: u8) -> Result<(), PlanError> {
        let count = self.routes.len();
        if !(1..=ALTERNATIVES_MAX).contains(&count) {
            return Err(PlanError::Alternatives { host, count });
        }
        let shares = self.routes.iter().map(|route| u64::from(route.share)).sum();
        let none = self.routes.iter().any(|route| route.share == 0);
        if none || shares != u64::from(SHARES_WHOLE) {
            return Err(PlanError::Shares { host, shares });
        }
        self.routes
            .iter()
            .try_for_each(|route| check_ports(host, &route.ports, port_max))
    }
}

/// Whether a route can be one.
pub(crate) fn check_ports(host: HostId, ports: &[u8], port_max: u8) -> Result<(), PlanError> {
    let (length, most) = (ports.len(), ROUTE_LENGTH_MAX);
    if !(1..=most).contains(&length) {
        return Err(PlanError::RouteLength { host, length, most });
    }
    match ports.iter().find(|port| **port > port_max) {
        Some(&port) => Err(PlanError::RoutePort { host, port }),
        None => Ok(()),
    }
}

/// The routes to one host, and whose turn it is. A route is named by its place among
/// them.
#[derive(Debug)]
pub(crate) struct Turns {
    pub alternatives: Arc<Alternatives>,
    /// What each route is owed, in shares of a message.
    owed: Vec<i64>,
    /// Messages that took each route.
    taken: Vec<u64>,
}

impl Turns {
    pub fn new(alternatives: Arc<Alternatives>) -> Turns {
        let count = alternatives.routes.len();
        Turns {
            alternatives,
            owed: vec![0; count],
            taken: vec![0; count],
        }
    }

    /// Messages that took each route.
    pub fn taken(&self) -> &[u64] {
        &self.taken
    }

    /// The route of the next message; `draw` gives numbers drawn evenly.
    pub fn choose(&mut self, draw: impl FnOnce() -> u64) -> u8 {
        let place = if self.alternatives.at_random {
            self.at_random(draw())
        } else {
            self.in_turn()
        };
        self.taken[place] += 1;
        place as u8
    }

    /// By share; `number` is spread over 64 bits.
    fn at_random(&self, number: u64) -> usize {
        let mut point = ((u128::from(number) * u128::from(SHARES_WHOLE)) >> 64) as u32;
        let routes = &self.alternatives.routes;
        for (place, route) in routes.iter().enumerate() {
            match point.checked_sub(route.share) {
                Some(left) => point = left,
                None => return place,
            }
        }
        routes.len() - 1
    }

    /// The one that is owed most, the first of equals (smooth weighted round robin, as in
    /// nginx): each gets its share exactly, and no route waits longer than it must.
    fn in_turn(&mut self) -> usize {
        for (owed, route) in self.owed.iter_mut().zip(&self.alternatives.routes) {
            *owed += i64::from(route.share);
        }
        let most = |best: usize, place: usize| {
            if self.owed[place] > self.owed[best] {
                place
            } else {
                best
            }
        };
        let place = (0..self.owed.len()).reduce(most).unwrap_or(0);
        self.owed[place] -= i64::from(SHARES_WHOLE);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(shares: &[u32], at_random: bool) -> Turns {
        let route = |&share: &u32| Alternative {
            ports: vec![1],
            share,
        };
        let routes = shares.iter().map(route).collect();
        Turns::new(Arc::new(Alternatives { routes, at_random }))
    }

    #[test]
    fn turns_give_each_route_its_share_exactly() {
        for shares in [
            vec![12_600],
            vec![6_300; 2],
            vec![1_260; 10],
            vec![10_080, 2_520],
        ] {
            let mut turns = turns(&shares, false);
            let least = *shares.iter().min().unwrap();
            for _ in 0..3 * SHARES_WHOLE / least {
                turns.choose(|| unreachable!());
            }
            let expected: Vec<u64> = shares
                .iter()
                .map(|share| 3 * u64::from(share / least))
                .collect();
            assert_eq!(turns.taken(), expected, "{shares:?}");
        }
        let mut pit = turns(&[10_080, 2_520], false);
        let routes: Vec<u8> = (0..10).map(|_| pit.choose(|| 0)).collect();
        assert_eq!(
            routes,
            [0, 0, 1, 0, 0, 0, 0, 1, 0, 0],
            "spread, not in a row"
        );
    }

    #[test]
    fn a_draw_gives_each_route_its_share() {
        let mut turns = turns(&[5_040, 5_040, 1_260, 1_260], true);
        let draws = 1_000u64;
        for number in 0..draws {
            let middle = (2 * u128::from(number) + 1) * (1 << 63) / u128::from(draws);
            turns.choose(|| middle as u64);
        }
        assert_eq!(turns.taken(), [400, 400, 100, 100]);
    }

    #[test]
    fn what_cannot_be_the_routes_to_a_host_is_refused() {
        let refused = |shares: &[u32]| {
            let check = turns(shares, false).alternatives.check(HostId(7), 254);
            check.expect_err("refused").to_string()
        };
        assert_eq!(refused(&[]), "host 7 has 0 routes; it must have 1 to 20");
        assert_eq!(
            refused(&[600; 21]),
            "host 7 has 21 routes; it must have 1 to 20"
        );
        assert_eq!(
            refused(&[12_000, 500]),
            "the shares of the routes to host 7 add up to 12500; each must be 1 or more, and all together 12600"
        );
        assert!(refused(&[12_600, 0]).contains("each must be 1 or more"));
    }
}
