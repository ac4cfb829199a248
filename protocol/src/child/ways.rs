//! By which of the routes to a child its packets go. All packets of a message go one way, so
//! that only messages overtake each other, not packets of one.

use crate::time::Instant;
use std::collections::VecDeque;

/// Messages on their way to a child that have a way of their own; a further one takes that of
/// the message before it.
const MESSAGES_MAX: usize = 1024;
/// Changes of way that are remembered; delays of packets sent before are not measured.
const CHANGES_MAX: usize = 1024;

/// Which way the messages to one child take.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// Where messages begin, ascending, and their way. The last that begins at a packet or
    /// before is the packet's.
    messages: VecDeque<(u64, u8)>,
    /// When packets began to leave by another way than before, and by which.
    changes: VecDeque<(Instant, u8)>,
}

impl Ways {
    /// The way of a packet, which is the `first` of its message or not. The child has
    /// everything before `cumulative`. For a message that has no way yet, `choose` gives one.
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
            Some((start, way)) if !first || start == position => way,
            Some((_, way)) if self.messages.len() >= MESSAGES_MAX => way,
            _ => {
                // Of a message whose begin the child has, all the rest goes one way.
                let start = if first { position } else { cumulative };
                let way = choose();
                self.messages.insert(after, (start.min(position), way));
                way
            }
        }
    }

    /// A packet leaves by a way.
    pub fn note_sent(&mut self, way: u8, now: Instant) {
        if self.changes.back().is_some_and(|(_, last)| *last == way) {
            return;
        }
        if self.changes.len() >= CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back((now, way));
    }

    /// The way by which packets left at a time; none if that is not known any more.
    pub fn at(&self, sent: Instant) -> Option<u8> {
        let after = self.changes.partition_point(|(since, _)| *since <= sent);
        Some(self.changes[after.checked_sub(1)?].1)
    }

    /// The routes have changed: what is still to be sent goes by one of the new ones.
    pub fn forget(&mut self) {
        *self = Ways::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_way_whatever_is_sent_again() {
        let mut ways = Ways::default();
        let mut next = 0..;
        let mut of = |ways: &mut Ways, position, first, cumulative| {
            ways.of(position, first, cumulative, || next.next().unwrap())
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
        let first: Vec<u8> = sent.map(|(at, first)| of(&mut ways, at, first, 10)).into();
        assert_eq!(first, [0, 0, 0, 1, 2, 2]);
        let again: Vec<u8> = sent.map(|(at, first)| of(&mut ways, at, first, 10)).into();
        assert_eq!(again, first);
        assert_eq!(of(&mut ways, 15, false, 14), 2, "what is done is forgotten");
        assert_eq!(ways.messages.len(), 1);
    }

    #[test]
    fn one_that_joins_in_the_middle_of_a_message_gets_the_rest_one_way() {
        let mut ways = Ways::default();
        assert_eq!(ways.of(25, false, 20, || 4), 4);
        assert_eq!(ways.of(21, false, 20, || 5), 4);
        assert_eq!(ways.of(26, true, 20, || 6), 6);
        assert_eq!(ways.of(25, false, 20, || 7), 4);
        assert_eq!(
            ways.of(12, false, 10, || 8),
            8,
            "the child forgot what it had"
        );
    }

    #[test]
    fn more_messages_than_are_remembered_go_with_the_one_before() {
        let mut ways = Ways::default();
        for message in 0..MESSAGES_MAX as u64 + 10 {
            ways.of(message, true, 0, || (message % 7) as u8);
        }
        assert_eq!(ways.messages.len(), MESSAGES_MAX);
        let last = ((MESSAGES_MAX - 1) % 7) as u8;
        assert_eq!(ways.of(MESSAGES_MAX as u64 + 5, true, 0, || 99), last);
    }

    #[test]
    fn the_way_at_a_time_is_known_since_the_first_change_that_is_remembered() {
        let mut ways = Ways::default();
        let at = Instant::from_micros;
        for (time, way) in [(10, 3), (11, 3), (20, 1), (30, 3)] {
            ways.note_sent(way, at(time));
        }
        assert_eq!(ways.at(at(9)), None);
        let found = [10, 19, 20, 29, 30, 99].map(|time| ways.at(at(time)));
        assert_eq!(found, [3, 3, 1, 1, 3, 3].map(Some));
    }
}
