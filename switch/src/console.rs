//! What is printed for whoever watches. That nobody does any more, because the pipe was
//! closed, must not end a switch, as it would by `println!`.

use std::fmt;
use std::io::{self, Write};

use wormcast_words::plain;

/// A line to standard output.
pub fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// A line to standard error, with the name of the program and without numbers of errors.
pub fn complain(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    let _ = writeln!(io::stderr().lock(), "wormcast-switch: {}", plain(&text));
}
