//! Which of the routes to a child its packets take. All packets of a message take one route, so
//! that only messages overtake each other, not packets of one. A route is named by its place
//! among those to the child.

use crate::time::Instant;
use std::collections::VecDeque;

/// Messages under way to a child that have a route of their own; a further one takes that of
/// the message before it.
const MESSAGES_MAX: usize = 1024;
/// Changes of route that are remembered; delays of packets sent before are not measured.
const CHANGES_MAX: usize = 1024;

/// Which routes the messages to one child take.
#[derive(Debug, Default)]
pub(crate) struct MessageRoutes {
    /// Where messages begin, ascending, and their route. The last that begins at a packet or
    /// before is the packet's.
    messages: VecDeque<(u64, u8)>,
    /// When packets began to leave by another route than before, and by which.
    changes: VecDeque<(Instant, u8)>,
}

impl MessageRoutes {
    /// The route of a packet, which is the `first` of its message or not. The child has
    /// everything before `cumulative`. For a message that has no route yet, `choose` gives one.
    pub fn of(
        &mut self,
        position: u64,
        first: bool,
        cumulative: u64,
        choose: impl FnOnce() -> u8,
    ) -> u8 {
        while self
            .messages
            .get(1)
            .is_some_and(|next| next.0 <= cumulative)
        {
            self.messages.pop_front();
        }
        let after = self
            .messages
            .partition_point(|(start, _)| *start <= position);
        let known = after.checked_sub(1).map(|index| self.messages[index]);
        match known {
            Some((start, route)) if !first || start == position => route,
            Some((_, route)) if self.messages.len() >= MESSAGES_MAX => route,
            _ => {
                // Of a message whose begin the child has, all the rest takes one route.
                let start = if first { position } else { cumulative };
                let route = choose();
                self.messages.insert(after, (start.min(position), route));
                route
            }
        }
    }

    /// A packet leaves by a route.
    pub fn note_sent(&mut self, route: u8, now: Instant) {
        if self.changes.back().is_some_and(|(_, last)| *last == route) {
            return;
        }
        if self.changes.len() >= CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back((now, route));
    }

    /// The route by which packets left at a time; none if that is not known any more.
    pub fn at(&self, sent: Instant) -> Option<u8> {
        let after = self.changes.partition_point(|(since, _)| *since <= sent);
        Some(self.changes[after.checked_sub(1)?].1)
    }

    /// The routes have changed: what is still to be sent goes by one of the new ones.
    pub fn forget(&mut self) {
        *self = MessageRoutes::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_route_whatever_is_sent_again() {
        let mut routes = MessageRoutes::default();
        let mut next = 0..;
        let mut of = |routes: &mut MessageRoutes, position, first, cumulative| {
            routes.of(position, first, cumulative, || next.next().unwrap())
        };
        // Messages begin at 10, 13 and 14.
        let sent = [
            (10, true),
            (11, false),
            (12, false),
            (13, true),
            (14, true),
            (15, false),
        ];
        let first: Vec<u8> = sent
            .map(|(at, first)| of(&mut routes, at, first, 10))
            .into();
        assert_eq!(first, [0, 0, 0, 1, 2, 2]);
        let again: Vec<u8> = sent
            .map(|(at, first)| of(&mut routes, at, first, 10))
            .into();
        assert_eq!(again, first);
        assert_eq!(
            of(&mut routes, 15, false, 14),
            2,
            "what is done is forgotten"
        );
        assert_eq!(routes.messages.len(), 1);
    }

    #[test]
    fn one_that_joins_in_the_middle_of_a_message_gets_the_rest_by_one_route() {
        let mut routes = MessageRoutes::default();
        assert_eq!(routes.of(25, false, 20, || 4), 4);
        assert_eq!(routes.of(21, false, 20, || 5), 4);
        assert_eq!(routes.of(26, true, 20, || 6), 6);
        assert_eq!(routes.of(25, false, 20, || 7), 4);
        assert_eq!(
            routes.of(12, false, 10, || 8),
            8,
            "the child forgot what it had"
        );
    }

    #[test]
    fn more_messages_than_are_remembered_go_with_the_one_before() {
        let mut routes = MessageRoutes::default();
        for message in 0..MESSAGES_MAX as u64 + 10 {
            routes.of(message, true, 0, || (message % 7) as u8);
        }
        assert_eq!(routes.messages.len(), MESSAGES_MAX);
        let last = ((MESSAGES_MAX - 1) % 7) as u8;
        assert_eq!(routes.of(MESSAGES_MAX as u64 + 5, true, 0, || 99), last);
    }

    #[test]
    fn the_route_at_a_time_is_known_since_the_first_change_that_is_remembered() {
        let mut routes = MessageRoutes::default();
        let at = Instant::from_micros;
        for (time, route) in [(10, 3), (11, 3), (20, 1), (30, 3)] {
            routes.note_sent(route, at(time));
        }
        assert_eq!(routes.at(at(9)), None);
        let found = [10, 19, 20, 29, 30, 99].map(|time| routes.at(at(time)));
        assert_eq!(found, [3, 3, 1, 1, 3, 3].map(Some));
    }
}
