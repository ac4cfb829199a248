//! Topologies as files: our own JSON, the net lists of ibsim and ibnetdiscover, edge lists
//! and GraphML, each read and written.
//!
//! A [`Document`] is a topology with the names its file gave to switches and hosts. Whatever
//! is refused says where in the file (line, column), what is there and what may be; a code
//! tells one kind of mistake from another.
//!
//! Other tools name their nodes by words or GUIDs. Ids follow from these names alone, never
//! from the order of the file: see [`Document::names`].

mod detect;
mod document;
mod draft;
mod edges;
mod error;
mod graphml;
mod graphml_arcs;
mod graphml_parse;
mod infiniband;
mod infiniband_lines;
mod infiniband_ports;
mod infiniband_write;
mod json;
mod numbering;
mod place;

pub use document::{Document, Format, Names, Reading};
pub use error::FormatError;
pub use infiniband::{Addresses, Owner};
pub use place::Place;
pub(crate) use place::lines;

/// Reads a topology in any format.
///
/// # Errors
/// [`FormatError`]: whatever is wrong first, with its place.
pub fn read(text: &str, reading: &Reading) -> Result<Document, FormatError> {
    read_with_addresses(text, reading).map(|(document, _)| document)
}

/// As [`read`], with the addresses of a net list, whose ports count from 1; `None` for the
/// other formats.
///
/// # Errors
/// As [`read`].
pub fn read_with_addresses(
    text: &str,
    reading: &Reading,
) -> Result<(Document, Option<Addresses>), FormatError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut addresses = None;
    let format = reading.format.unwrap_or_else(|| detect::detect(text));
    let mut reading = *reading;
    // Our own files say that there are none.
    reading.give_hosts &= format != Format::Json;
    let draft = match format {
        Format::Json => json::read(text),
        Format::Ibsim | Format::Ibnetdiscover => infiniband::read(text).map(|(draft, found)| {
            addresses = Some(found);
            draft
        }),
        Format::Edges => edges::read(text),
        Format::Graphml => graphml::read(text),
    };
    let document = draft.and_then(|draft| draft.finish(text, &reading))?;
    Ok((document, addresses))
}

/// Writes a topology. Net lists have no place for a grid and for a kind; all else is read
/// back as it was.
///
/// # Errors
/// [`FormatError`] with the code `unsupported` if a name has characters that the format
/// cannot hold.
pub fn write(document: &Document, format: Format) -> Result<String, FormatError> {
    match format {
        Format::Json => Ok(json::write(document)),
        Format::Ibsim => infiniband_write::write(document, infiniband_write::Header::Short),
        Format::Ibnetdiscover => infiniband_write::write(document, infiniband_write::Header::Full),
        Format::Edges => edges::write(document),
        Format::Graphml => graphml::write(document),
    }
}
