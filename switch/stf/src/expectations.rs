//! What shall come out, compared with what did.

use std::collections::BTreeMap;

use super::failure::Failure;

/// Packets that are expected, by port, in order.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    /// Patterns with their lines; `None`: any packet will do.
    by_port: BTreeMap<u16, Vec<(usize, Option<String>)>>,
}

impl Expectations {
    /// Expects one packet more.
    pub(super) fn add(&mut self, port: u16, line: usize, pattern: Option<String>) {
        let patterns = self.by_port.entry(port).or_default();
        patterns.push((line, pattern));
    }

    /// How many packets are expected.
    pub(super) fn count(&self) -> usize {
        self.by_port.values().map(Vec::len).sum()
    }

    /// Compares packets and their ports, in the order in which they came; says how many
    /// were right.
    ///
    /// # Errors
    /// The first packet that is missing, another one or one too many.
    pub(super) fn compare(&self, sent: &[(u16, Vec<u8>)]) -> Result<usize, Failure> {
        let mut by_port: BTreeMap<u16, Vec<&[u8]>> = BTreeMap::new();
        for (port, frame) in sent {
            by_port.entry(*port).or_default().push(frame);
        }
        for (port, patterns) in &self.by_port {
            let frames = by_port.remove(port).unwrap_or_default();
            for (number, (line, pattern)) in patterns.iter().enumerate() {
                let fail = |message: String| {
                    let line = Some(*line);
                    Err(Failure { line, message })
                };
                let Some(frame) = frames.get(number) else {
                    return fail(format!(
                        "port {port}: {} packets instead of {}",
                        frames.len(),
                        patterns.len(),
                    ));
                };
                if let Some(pattern) = pattern
                    && !fits(frame, pattern)
                {
                    return fail(format!("port {port}: {} instead of {pattern}", hex(frame)));
                }
            }
            if let Some(frame) = frames.get(patterns.len()) {
                return Err(Failure {
                    line: None,
                    message: format!(
                        "port {port}: {} packets instead of {}; the first too many: {}",
                        frames.len(),
                        patterns.len(),
                        hex(frame)
                    ),
                });
            }
        }
        match by_port.first_key_value() {
            Some((port, frames)) => Err(Failure {
                line: None,
                message: format!(
                    "port {port}: {} packets instead of none: {}",
                    frames.len(),
                    hex(frames[0])
                ),
            }),
            None => Ok(self.count()),
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a frame is what a pattern says: digits, `*` for any digit, and at the end `$` if
/// nothing may follow.
fn fits(frame: &[u8], pattern: &str) -> bool {
    let (pattern, exact) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let frame = hex(frame);
    let pattern = pattern.to_ascii_lowercase();
    let length_fits = if exact {
        frame.len() == pattern.len()
    } else {
        frame.len() >= pattern.len()
    };
    let mut pairs = pattern.chars().zip(frame.chars());
    length_fits && pairs.all(|(wanted, got)| wanted == '*' || wanted == got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let frame = [0x12, 0xab];
        for (pattern, expected) in [
            ("12ab", true),
            ("12AB$", true),
            ("1*", true),
            ("1*$", false),
            ("12ab00", false),
            ("", true),
            ("$", false),
            ("13", false),
        ] {
            assert_eq!(fits(&frame, pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn packets_are_missing_wrong_or_too_many() {
        let mut expected = Expectations::default();
        expected.add(1, 10, Some("aa$".to_owned()));
        expected.add(1, 11, None);
        let frame = |byte: u8| (1, vec![byte]);
        assert_eq!(expected.compare(&[frame(0xaa), frame(0)]), Ok(2));
        for (sent, line, message) in [
            (
                vec![frame(0xaa)],
                Some(11),
                "port 1: 1 packets instead of 2",
            ),
            (vec![frame(0xab)], Some(10), "port 1: ab instead of aa$"),
            (
                vec![frame(0xaa), frame(0), frame(7)],
                None,
                "port 1: 3 packets instead of 2; the first too many: 07",
            ),
            (
                vec![frame(0xaa), frame(0), (2, vec![8])],
                None,
                "port 2: 1 packets instead of none: 08",
            ),
        ] {
            let message = message.to_owned();
            assert_eq!(expected.compare(&sent), Err(Failure { line, message }));
        }
    }
}
