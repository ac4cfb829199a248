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
const SIGNS: [&str; 5] = ["->", "→", ">", ";", "|"];

/// The elements of a field, or the place and reason of the first mistake.
pub(super) fn elements<'a>(
    field: &'a str,
    network: Option<&'a Network>,
) -> Result<Vec<Element<'a>>, (usize, String)> {
    let is_signed = SIGNS.iter().any(|sign| field.contains(sign));
    let pieces = match is_signed {
        true => split_at_signs(field),
        false => field
            .split_whitespace()
            .map(|word| (word, word.as_ptr() as usize - field.as_ptr() as usize))
            .collect(),
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
