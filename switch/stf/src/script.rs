//! Reads a script.

use super::keys::parse_number;
use super::statement::{Call, Comparison, CountKind, KeyMatch, Line, Statement};

/// All commands, for messages.
const COMMANDS: &str = "add, remove, setdefault, packet, expect, no_packet, wait, mirroring_add, \
     mirroring_add_mc, mirroring_delete, mirroring_get, mc_mgrp_create, mc_node_create, \
     mc_node_update, mc_node_associate, register_write, register_read, register_reset, \
     counter_write, counter_read, check_counter, meter_set_rates, meter_array_set_rates, \
     meter_get_rates, member, group, expect_digest, check_drops";

/// Reads a script.
///
/// # Errors
/// The number of the first line that cannot be read, and what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<Line>, (usize, String)> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let statement = parse_line(line).map_err(|error| (number, error))?;
        lines.push(Line { number, statement });
    }
    Ok(lines)
}

/// The words behind a command.
struct Words<'t>(Vec<&'t str>);

impl Words<'_> {
    fn name(&self, index: usize, what: &str) -> Result<String, String> {
        let word = self.0.get(index);
        word.map(|word| unquote(word))
            .ok_or_else(|| format!("{what} is missing"))
    }

    fn number(&self, index: usize, what: &str) -> Result<u64, String> {
        let word = self.name(index, what)?;
        parse_number(&word).ok_or_else(|| format!("{what}: `{word}` is not a number"))
    }

    fn small(&self, index: usize, what: &str) -> Result<u16, String> {
        let number = self.number(index, what)?;
        u16::try_from(number).map_err(|_| format!("{what}: {number} is above 65535"))
    }

    fn index(&self, index: usize, what: &str) -> Result<usize, String> {
        Ok(self.number(index, what)? as usize)
    }

    fn ports(&self, from: usize) -> Result<Vec<u16>, String> {
        (from..self.0.len())
            .map(|at| self.small(at, "port"))
            .collect()
    }

    fn comparison(&self, index: usize) -> Result<Comparison, String> {
        Comparison::parse(&self.name(index, "the comparison")?)
    }

    /// Nothing may follow the first words.
    fn end(&self, count: usize) -> Result<(), String> {
        match self.0.get(count) {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` is too much")),
        }
    }
}

fn parse_line(line: &str) -> Result<Statement, String> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words = Words(rest.split_whitespace().collect());
    let (statement, count) = match command.to_ascii_lowercase().as_str() {
        "add" => return parse_add(rest.trim()),
        "setdefault" => {
            let (table, call) = split_name(rest, "the action")?;
            let call = parse_call(call)?;
            return Ok(Statement::SetDefault { table, call });
        }
        "member" => {
            let (profile, rest) = split_name(rest, "the number of the member")?;
            let (member, call) = split_name(rest, "the action")?;
            let number = parse_number(&member).and_then(|number| u32::try_from(number).ok());
            let member = number.ok_or_else(|| format!("member: `{member}` is not a number"))?;
            let call = parse_call(call)?;
            return Ok(Statement::Member {
                profile,
                member,
                call,
            });
        }
        "check_counter" => return parse_check_counter(rest.trim()),
        "packet" => {
            let bytes = parse_hex(&words.0.get(1..).unwrap_or_default().concat())?;
            let port = words.small(0, "port")?;
            return Ok(Statement::Packet { port, bytes });
        }
        "expect" => {
            let pattern = words.0.get(1..).unwrap_or_default().concat();
            let port = words.small(0, "port")?;
            check_pattern(&pattern)?;
            let pattern = (!pattern.is_empty()).then_some(pattern);
            return Ok(Statement::Expect { port, pattern });
        }
        "no_packet" => (Statement::NoPacket, 0),
        "wait" => match words.0.first() {
            None => (Statement::Wait { us: 0 }, 0),
            Some(_) => {
                let us = words.number(0, "microseconds")?;
                (Statement::Wait { us }, 1)
            }
        },
        "remove" => {
            let handle = words.name(0, "`all` or a handle")?;
            let handle = (!handle.eq_ignore_ascii_case("all")).then_some(handle);
            (Statement::Remove { handle }, 1)
        }
        "check_drops" => (
            Statement::CheckDrops {
                cause: words.name(0, "the cause")?,
                comparison: words.comparison(1)?,
                packets: words.number(2, "packets")?,
            },
            3,
        ),
        "expect_digest" => (
            Statement::ExpectDigest {
                digest: words.name(0, "the digest")?,
                values: words.0[1..].iter().map(|word| (*word).to_owned()).collect(),
            },
            words.0.len(),
        ),
        other => match parse_replication(other, &words)? {
            Some(parsed) => parsed,
            None => parse_cells(other, &words)?
                .ok_or_else(|| format!("there is no command `{other}`; there are {COMMANDS}"))?,
        },
    };
    words.end(count)?;
    Ok(statement)
}

/// Commands about groups and sessions, with the number of words they take.
fn parse_replication(
    command: &str,
    words: &Words<'_>,
) -> Result<Option<(Statement, usize)>, String> {
    let all = words.0.len();
    let session = || words.small(0, "session");
    let group = || words.small(0, "group");
    Ok(Some(match command {
        "mirroring_add" => {
            let port = words.small(1, "port")?;
            let session = session()?;
            (Statement::MirroringAdd { session, port }, 2)
        }
        "mirroring_add_mc" => {
            let group = words.small(1, "group")?;
            let session = session()?;
            (Statement::MirroringAddGroup { session, group }, 2)
        }
        "mirroring_delete" => (
            Statement::MirroringDelete {
                session: session()?,
            },
            1,
        ),
        "mirroring_get" => (
            Statement::MirroringGet {
                session: session()?,
            },
            1,
        ),
        "mc_mgrp_create" => (Statement::GroupCreate { group: group()? }, 1),
        "mc_node_create" => {
            let instance = words.small(0, "instance")?;
            let ports = words.ports(1)?;
            (Statement::NodeCreate { instance, ports }, all)
        }
        "mc_node_update" => {
            let node = words.index(0, "node")?;
            let ports = words.ports(1)?;
            (Statement::NodeUpdate { node, ports }, all)
        }
        "mc_node_associate" => {
            let node = words.index(1, "node")?;
            let group = group()?;
            (Statement::NodeAssociate { group, node }, 2)
        }
        "group" => {
            let small = |at| {
                let number = words.number(at, "the number of a group or member")?;
                u32::try_from(number).map_err(|_| format!("{number} is above 4294967295"))
            };
            let profile = words.name(0, "the action profile")?;
            let members = (2..all).map(small).collect::<Result<_, _>>()?;
            let group = small(1)?;
            let statement = Statement::Group {
                profile,
                group,
                members,
            };
            (statement, all)
        }
        _ => return Ok(None),
    }))
}

/// Commands about registers, counters and meters, with the number of words they take.
fn parse_cells(command: &str, words: &Words<'_>) -> Result<Option<(Statement, usize)>, String> {
    let name = || words.name(0, "the name");
    let index = || words.index(1, "index");
    Ok(Some(match command {
        "register_write" => {
            let (register, index) = (name()?, index()?);
            let value = words.name(2, "the value")?;
            let statement = Statement::RegisterWrite {
                register,
                index,
                value,
            };
            (statement, 3)
        }
        "register_read" => {
            let (register, index) = (name()?, index()?);
            let check = match words.0.len() {
                0..=2 => None,
                _ => Some((words.comparison(2)?, words.name(3, "the value")?)),
            };
            let count = if check.is_some() { 4 } else { 2 };
            let statement = Statement::RegisterRead {
                register,
                index,
                check,
            };
            (statement, count)
        }
        "register_reset" => (Statement::RegisterReset { register: name()? }, 1),
        "counter_write" => {
            let (counter, index) = (name()?, index()?);
            let packets = words.number(2, "packets")?;
            let bytes = words.number(3, "bytes")?;
            let statement = Statement::CounterWrite {
                counter,
                index,
                packets,
                bytes,
            };
            (statement, 4)
        }
        "counter_read" => {
            let (counter, index) = (name()?, index()?);
            (Statement::CounterRead { counter, index }, 2)
        }
        "meter_set_rates" => {
            let (meter, index) = (name()?, Some(index()?));
            let rates = [rate(words, 2)?, rate(words, 3)?];
            let statement = Statement::MeterSetRates {
                meter,
                index,
                rates,
            };
            (statement, 4)
        }
        "meter_array_set_rates" => {
            let meter = name()?;
            let rates = [rate(words, 1)?, rate(words, 2)?];
            let statement = Statement::MeterSetRates {
                meter,
                index: None,
                rates,
            };
            (statement, 3)
        }
        "meter_get_rates" => {
            let (meter, index) = (name()?, index()?);
            (Statement::MeterGetRates { meter, index }, 2)
        }
        _ => return Ok(None),
    }))
}

/// `RATE:BURST`, the rate in units a microsecond; gives units a second.
fn rate(words: &Words<'_>, index: usize) -> Result<(u64, u64), String> {
    let word = words.name(index, "a rate")?;
    let error = || format!("`{word}` is not RATE:BURST with a rate in units a microsecond");
    let (rate, burst) = word.split_once(':').ok_or_else(error)?;
    let rate: f64 = rate.parse().map_err(|_| error())?;
    let burst = parse_number(burst).ok_or_else(error)?;
    if !(0.0..=1e12).contains(&rate) {
        return Err(error());
    }
    Ok(((rate * 1e6) as u64, burst))
}

fn split_name<'t>(text: &'t str, next: &str) -> Result<(String, &'t str), String> {
    let text = text.trim();
    let (name, rest) = text
        .split_once(char::is_whitespace)
        .ok_or_else(|| format!("{next} is missing"))?;
    Ok((unquote(name), rest.trim()))
}

fn unquote(name: &str) -> String {
    name.trim_matches('"').to_owned()
}

fn parse_add(rest: &str) -> Result<Statement, String> {
    let (head, after) = rest.split_once(')').ok_or("no closing parenthesis")?;
    let open = head.rfind('(').ok_or("no opening parenthesis")?;
    let before = head[..open].trim_end();
    let (fields, action) = before
        .rsplit_once(char::is_whitespace)
        .ok_or("the action is missing")?;
    let mut words = fields.split_whitespace().peekable();
    let table = unquote(words.next().ok_or("the table is missing")?);
    let priority = words.next_if(|word| !word.contains(':'));
    let priority = match priority {
        Some(word) => Some(
            word.parse()
                .map_err(|_| format!("`{word}` is not a priority"))?,
        ),
        None => None,
    };
    // A key may be written with spaces around its colon.
    let joined = words
        .collect::<Vec<&str>>()
        .join(" ")
        .replace(": ", ":")
        .replace(" :", ":");
    let key = joined
        .split_whitespace()
        .map(|word| {
            let (field, value) = word
                .rsplit_once(':')
                .ok_or(format!("`{word}` is not FIELD:VALUE"))?;
            Ok(KeyMatch {
                field: unquote(field),
                value: value.to_owned(),
            })
        })
        .collect::<Result<_, String>>()?;
    let call = parse_call(&format!("{action}({})", &head[open + 1..]))?;
    let after = after.trim();
    let handle = match after.strip_prefix('=') {
        // p4c's oldest scripts leave the `$` out here.
        Some(handle) => Some(format!("${}", handle.trim().trim_start_matches('$'))),
        None if after.is_empty() => None,
        None => return Err(format!("`{after}` is too much")),
    };
    Ok(Statement::Add {
        table,
        priority,
        key,
        call,
        handle,
    })
}

fn parse_call(text: &str) -> Result<Call, String> {
    let (action, rest) = text.split_once('(').ok_or("no opening parenthesis")?;
    let (arguments, _) = rest.split_once(')').ok_or("no closing parenthesis")?;
    let arguments = arguments
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty())
        .map(|argument| {
            let (name, value) = argument
                .split_once(':')
                .ok_or_else(|| format!("`{argument}` is not NAME:VALUE"))?;
            Ok((unquote(name.trim()), value.trim().to_owned()))
        })
        .collect::<Result<_, String>>()?;
    Ok((unquote(action.trim()), arguments))
}

fn parse_check_counter(rest: &str) -> Result<Statement, String> {
    let (head, after) = rest.split_once(')').ok_or("no closing parenthesis")?;
    let (counter, cell) = head.split_once('(').ok_or("no opening parenthesis")?;
    let words = Words(after.split_whitespace().collect());
    let check = match words.0.first() {
        None => None,
        Some(kind) => {
            let kind = match kind.to_ascii_lowercase().as_str() {
                "packets" => CountKind::Packets,
                "bytes" => CountKind::Bytes,
                _ => return Err(format!("`{kind}` is neither packets nor bytes")),
            };
            words.end(3)?;
            Some((kind, words.comparison(1)?, words.number(2, "the count")?))
        }
    };
    Ok(Statement::CheckCounter {
        counter: unquote(counter.trim()),
        cell: cell.trim().to_owned(),
        check,
    })
}

fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("`{text}` is not hexadecimal"));
    }
    if !text.len().is_multiple_of(2) {
        return Err(format!("`{text}` has an odd number of digits"));
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
    let pairs = text.as_bytes().chunks_exact(2);
    Ok(pairs
        .map(|pair| nibble(pair[0]) << 4 | nibble(pair[1]))
        .collect())
}

fn check_pattern(pattern: &str) -> Result<(), String> {
    let digits = pattern.strip_suffix('$').unwrap_or(pattern);
    let fits = |digit: u8| digit == b'*' || digit.is_ascii_hexdigit();
    if digits.bytes().all(fits) {
        return Ok(());
    }
    Err(format!(
        "`{pattern}` is not hexadecimal digits and `*`, with `$` at the end or not"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        match parse(&format!("\n# comment\n{line}")) {
            Err((3, error)) => error,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn an_entry_with_everything() {
        let lines = parse("add t 7 \"a.b\":0x1* c : 5 act(x:1, \"y\":0xff) = $A # why").unwrap();
        let key = |field: &str, value: &str| KeyMatch {
            field: field.to_owned(),
            value: value.to_owned(),
        };
        let arguments = [("x", "1"), ("y", "0xff")];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = Statement::Add {
            table: "t".to_owned(),
            priority: Some(7),
            key: vec![key("a.b", "0x1*"), key("c", "5")],
            call: ("act".to_owned(), arguments.to_vec()),
            handle: Some("$A".to_owned()),
        };
        assert_eq!(lines[0].statement, expected);
        let bare = parse("add t 7 \"a.b\":0x1* c : 5 act(x:1, \"y\":0xff) = A").unwrap();
        assert_eq!(bare[0].statement, expected);
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_line() {
        for (line, expected) in [
            ("fly 3", "there is no command `fly`; there are add, remove,"),
            ("packet", "port is missing"),
            ("packet 1 0g", "`0g` is not hexadecimal"),
            ("packet 1 0", "`0` has an odd number of digits"),
            ("packet 1 é0", "`é0` is not hexadecimal"),
            ("packet 70000 00", "port: 70000 is above 65535"),
            ("expect 1 0x", "`0x` is not hexadecimal digits and `*`"),
            ("expect 1 $0", "`$0` is not hexadecimal digits"),
            ("add t a:1", "no closing parenthesis"),
            ("add t x a:1 f()", "`x` is not a priority"),
            ("add t a:1 f(1)", "`1` is not NAME:VALUE"),
            ("add t a:1 f() A", "`A` is too much"),
            ("setdefault t", "the action is missing"),
            ("mirroring_add 1", "port is missing"),
            ("mirroring_add 1 2 3", "`3` is too much"),
            ("register_write r 1", "the value is missing"),
            ("register_read r 1 = 2", "`=` is no comparison"),
            ("meter_set_rates m 0 1 2", "`1` is not RATE:BURST"),
            (
                "check_counter c(0) frames == 1",
                "`frames` is neither packets nor bytes",
            ),
            ("check_counter c", "no closing parenthesis"),
            ("check_drops a == b", "packets: `b` is not a number"),
            ("expect_digest", "the digest is missing"),
        ] {
            let error = error(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
