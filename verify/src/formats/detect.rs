//! Which format a text is in.

use super::document::Format;
use super::infiniband_lines::is_net_list_line;
use super::infiniband_ports::is_row;
use super::place::lines;

/// By the first character for JSON and GraphML, by its lines for a net list; an edge list
/// otherwise.
pub(super) fn detect(text: &str) -> Format {
    let start = text.trim_start_matches([' ', '\t', '\r', '\n']);
    match start.as_bytes().first() {
        Some(b'{' | b'[') if !looks_like_port_line(start) => return Format::Json,
        Some(b'<') => return Format::Graphml,
        _ => {}
    }
    if lines(text).any(|line| is_net_list_line(line.text) || is_row(line.text)) {
        return Format::Ibnetdiscover;
    }
    Format::Edges
}

/// `[1] "H-…"[1]`, with which a net list cannot start, but a part of one does.
fn looks_like_port_line(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let port = line.trim_start_matches('[').split(']').next();
    line.starts_with('[')
        && line.contains('"')
        && port.is_some_and(|port| port.parse::<u8>().is_ok())
}
