//! The elements of a path in a CSV file: `leaf1:3@1` is node leaf1, left by port 3 on
//! virtual channel 1.

use super::network::Network;

/// One element of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub node: &'a str,
    /// Port by which the node is left.
    pub port: Option<&'a str>,
    /// Virtual channel on which it is left.
    pub vc: Option<&'a str>,
    /// Byte of the field at which it stands.
    pub offset: usize,
}

/// Signs that stand between elements; where one is there, spaces are parts of names.
const SIGNS: [&str; 6] = ["->", "→", ">", ";", "|", ","];

/// The elements of a field, or the place and reason of the first mistake.
pub(super) fn elements<'a>(
    field: &'a str,
    network: Option<&'a Network>,
) -> Result<Vec<Element<'a>>, (usize, String)> {
    let is_signed = SIGNS.iter().any(|sign| field.contains(sign));
    let pieces = if is_signed {
        split_at_signs(field)
    } else {
        field
            .split_whitespace()
            .map(|word| (word, word.as_ptr() as usize - field.as_ptr() as usize))
            .collect()
    };
    pieces
        .into_iter()
        .map(|(piece, offset)| element(piece, offset, network))
        .collect()
}

fn split_at_signs(field: &str) -> Vec<(&str, usize)> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    loop {
        let found = SIGNS
            .iter()
            .filter_map(|sign| Some((field[begin..].find(sign)?, sign.len())));
        let (end, length) = found
            .min_by_key(|(at, length)| (*at, usize::MAX - length))
            .unwrap_or((field.len() - begin, 0));
        let piece = &field[begin..begin + end];
        let space = piece.len() - piece.trim_start().len();
        pieces.push((piece.trim(), begin + space));
        if length == 0 {
            return pieces;
        }
        begin += end + length;
    }
}

/// What a path may look like, for refusals.
const SEPARATORS: &str = "nodes stand between spaces, or between ->, →, >, ;, | or commas";

/// Whether it begins and ends as a name does. Brackets, quotes and other signs are of some notation that is not
/// known here: taken for parts of names they would hide that two names are of one node.
fn is_plain_name(piece: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || character == '_';
    piece.starts_with(is_plain) && piece.ends_with(is_plain)
}

/// Why a path without a network is perhaps of more nodes than were read: it has one element alone, with signs in it,
/// or is written as links, each with the node that the last one ends at.
pub(super) fn doubt(path: &[Element<'_>]) -> Option<(usize, String)> {
    let sign = |character: char| !character.is_alphanumeric();
    if let [only] = path
        && only.node.contains(sign)
    {
        let node = only.node;
        let reason = format!(
            "\"{node}\" may be one node or several: {SEPARATORS}; if it is one, name the ends too, as in h0 {node} h1, \
             or give --topology"
        );
        return Some((only.offset, reason));
    }
    path.windows(2).find_map(|pair| {
        let ((a, b), (c, d)) = (pair[0].node.split_once(sign)?, pair[1].node.split_once(sign)?);
        let is_chain = b == c && ![a, b, d].iter().any(|part| part.contains(sign));
        is_chain.then(|| {
            let reason = format!(
                "\"{}\" and \"{}\" look like links that meet at {b}; a path names nodes: {SEPARATORS}",
                pair[0].node, pair[1].node
            );
            (pair[0].offset, reason)
        })
    })
}

/// The nodes that a name would be of if a sign in it stood between them, all of which are known; none if there is
/// no such sign.
pub(super) fn parts(name: &str, is_known: impl Fn(&str) -> bool) -> Option<Vec<&str>> {
    let mut signs: Vec<char> = name
        .chars()
        .filter(|sign| !sign.is_alphanumeric())
        .collect();
    signs.sort_unstable();
    signs.dedup();
    signs.into_iter().find_map(|sign| {
        let parts: Vec<&str> = name.split(sign).map(str::trim).collect();
        parts.iter().all(|part| is_known(part)).then_some(parts)
    })
}

fn element<'a>(
    piece: &'a str,
    offset: usize,
    network: Option<&'a Network>,
) -> Result<Element<'a>, (usize, String)> {
    let whole = Element {
        node: piece,
        port: None,
        vc: None,
        offset,
    };
    if piece.is_empty() {
        return Err((offset, "a node is missing between two signs".to_owned()));
    }
    if let Some(node) = known(piece, network) {
        return Ok(Element { node, ..whole });
    }
    let (front, vc) = split_last(piece, '@');
    if let Some(node) = known(front, network) {
        return Ok(Element { node, vc, ..whole });
    }
    let (node, port) = split_last(front, ':');
    let node = known(node, network).unwrap_or(node);
    for (part, what) in [
        (Some(node), "node"),
        (port, "port"),
        (vc, "virtual channel"),
    ] {
        if part == Some("") {
            let reason = format!(
                "\"{piece}\" has no {what}; it is written as node:port@channel, as in s1:3@0"
            );
            return Err((offset, reason));
        }
        if let Some(part) = part.filter(|part| network.is_none() && !is_plain_name(part)) {
            let reason = format!(
                "\"{part}\" is not read as a {what}: {SEPARATORS}; without --topology a name begins and ends with a \
                 letter, a digit or _"
            );
            return Err((offset, reason));
        }
    }
    Ok(Element {
        node,
        port,
        vc,
        offset,
    })
}

/// The name that a network has for a node.
pub(super) fn known<'a>(name: &str, network: Option<&'a Network>) -> Option<&'a str> {
    network.and_then(|network| Some(network.name_of(network.find(name)?)))
}

fn split_last(piece: &str, sign: char) -> (&str, Option<&str>) {
    match piece.rsplit_once(sign) {
        Some((front, back)) => (front, Some(back)),
        None => (piece, None),
    }
}
