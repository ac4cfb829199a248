//! Ids for nodes that a file names by words.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// An id for each of these distinct words; see [`super::Document::names`]. Which id a word
/// gets depends on the words, not on their order.
pub(super) fn number<'w>(words: &[&'w str], largest: u16) -> BTreeMap<&'w str, usize> {
    if let Some(numbered) = by_their_numbers(words, largest) {
        return numbered;
    }
    let mut sorted = words.to_vec();
    sorted.sort_by(|a, b| natural(a, b));
    sorted.into_iter().zip(0..).collect()
}

/// The numbers at the end of the words, if all else is the same in all of them.
fn by_their_numbers<'w>(words: &[&'w str], largest: u16) -> Option<BTreeMap<&'w str, usize>> {
    if words.iter().any(|word| is_guid(word)) {
        return None; // their last digits are no numbers
    }
    let stem = split_number(words.first()?).0;
    let mut owner = BTreeMap::new();
    for &word in words {
        let (front, digits) = split_number(word);
        let id = digits.parse::<u16>().ok().filter(|id| *id <= largest)?;
        let canonical = digits == id.to_string();
        if front != stem || !canonical || owner.insert(id, word).is_some() {
            return None;
        }
    }
    Some(
        owner
            .into_iter()
            .map(|(id, word)| (word, usize::from(id)))
            .collect(),
    )
}

fn split_number(word: &str) -> (&str, &str) {
    let front = word.trim_end_matches(|character: char| character.is_ascii_digit());
    (front, &word[front.len()..])
}

/// Orders words with numbers in them compared as numbers: leaf2 before leaf10. Words made
/// of a GUID come first, by GUID.
fn natural(a: &str, b: &str) -> Ordering {
    is_guid(b)
        .cmp(&is_guid(a))
        .then_with(|| {
            if is_guid(a) {
                Ordering::Equal
            } else {
                Runs(a).compare(Runs(b))
            }
        })
        .then_with(|| a.cmp(b))
}

/// As in net lists: `S-0002c90200412345`, `0x0002c90200412345`.
fn is_guid(word: &str) -> bool {
    word.len() == 18
        && matches!(word.as_bytes()[1], b'-' | b'x')
        && word.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit())
}

/// Runs of digits and of other characters.
struct Runs<'a>(&'a str);

impl<'a> Runs<'a> {
    fn compare(mut self, mut other: Runs<'a>) -> Ordering {
        loop {
            let ordering = match (self.next(), other.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (Some(a), Some(b)) => compare_runs(a, b),
            };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let digit = self.0.chars().next()?.is_ascii_digit();
        let end = self
            .0
            .find(|character: char| character.is_ascii_digit() != digit)
            .unwrap_or(self.0.len());
        let (run, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(run)
    }
}

/// Numbers by value (by length without leading zeros, as they may be long), else characters.
fn compare_runs(a: &str, b: &str) -> Ordering {
    let digits = |run: &str| run.starts_with(|character: char| character.is_ascii_digit());
    if !(digits(a) && digits(b)) {
        return a.cmp(b);
    }
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}
