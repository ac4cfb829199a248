//! What the operating system refuses, in words. Rust adds the number of the error, which says nothing to a user.

use std::borrow::Cow;
use std::io;

/// What comes before the number, and after it.
const BEFORE: &str = " (os error ";
const AFTER: char = ')';

/// What the operating system says, without its number.
pub fn why(error: &io::Error) -> String {
    plain(&error.to_string()).into_owned()
}

/// A text without the numbers of errors: ` (os error 2)`. For what is printed last, whatever error is in it.
pub fn plain(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((said, number)) = next(rest) {
        kept.push_str(said);
        rest = number;
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// What is before the next number of an error, and what is after it.
fn next(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    loop {
        let start = at + text.get(at..)?.find(BEFORE)?;
        let number = start + BEFORE.len();
        let rest = text
            .get(number..)?
            .trim_start_matches(|it: char| it.is_ascii_digit());
        match rest.strip_prefix(AFTER) {
            Some(after) if !text[number..].starts_with(AFTER) => {
                return Some((&text[..start], after));
            }
            _ => at = number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_left_out_and_nothing_else() {
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(why(&missing), "No such file or directory");
        assert_eq!(why(&io::Error::other("it is no file")), "it is no file");
        for (text, expected) in [
            ("", ""),
            ("a: no (os error 2); b: no (os error 13)", "a: no; b: no"),
            ("cut (os error 2", "cut (os error 2"),
            ("none (os error ) (os error 7)", "none (os error )"),
            ("(os error 2)", "(os error 2)"),
            ("ä (os error x) ö (os error 98) ü", "ä (os error x) ö ü"),
        ] {
            assert_eq!(plain(text), expected);
        }
        assert!(matches!(plain("as it is"), Cow::Borrowed(_)));
    }
}
