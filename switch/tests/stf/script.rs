//! The statements of an STF script, the packet test format of p4c.

/// What a key field is compared with.
#[derive(Clone, Debug)]
pub struct KeyMatch {
    pub field: String,
    pub value: String,
}

/// One statement.
#[derive(Clone, Debug)]
pub enum Statement {
    Add {
        table: String,
        priority: Option<i32>,
        key: Vec<KeyMatch>,
        action: String,
        arguments: Vec<(String, String)>,
    },
    SetDefault {
        table: String,
        action: String,
        arguments: Vec<(String, String)>,
    },
    Packet {
        port: u16,
        bytes: Vec<u8>,
    },
    /// Without a pattern any packet will do; without a port no packet must come out.
    Expect {
        port: Option<u16>,
        pattern: Option<String>,
    },
    MirroringAdd {
        session: u16,
        port: u16,
    },
    MirroringAddGroup {
        session: u16,
        group: u16,
    },
    GroupCreate {
        group: u16,
    },
    NodeCreate {
        instance: u16,
        ports: Vec<u16>,
    },
    NodeAssociate {
        group: u16,
        node: usize,
    },
    RegisterWrite {
        register: String,
        index: usize,
        value: u64,
    },
    RegisterReset {
        register: String,
    },
    CounterWrite {
        counter: String,
        index: usize,
    },
    /// Commands that only print, and waits.
    Nothing,
}

/// Reads a script; an error names the line.
pub fn parse(text: &str) -> Result<Vec<Statement>, String> {
    let mut statements = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let statement =
            parse_line(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        statements.push(statement);
    }
    Ok(statements)
}

fn parse_line(line: &str) -> Result<Statement, String> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| -> Result<u64, String> {
        let word = words.get(index).ok_or("an argument is missing")?;
        parse_number(word).ok_or_else(|| format!("{word} is not a number"))
    };
    let small = |index: usize| -> Result<u16, String> {
        u16::try_from(number(index)?).map_err(|_| "a number is above 65535".to_string())
    };
    Ok(match command.to_ascii_lowercase().as_str() {
        "add" => parse_add(rest)?,
        "setdefault" => {
            let (table, call) = rest
                .trim()
                .split_once(char::is_whitespace)
                .ok_or("no action")?;
            let (action, arguments) = parse_call(call)?;
            Statement::SetDefault {
                table: unquote(table),
                action,
                arguments,
            }
        }
        "packet" => Statement::Packet {
            port: small(0)?,
            bytes: parse_hex(&words[1..].concat())?,
        },
        "expect" => {
            let pattern = words[1..].concat();
            Statement::Expect {
                port: Some(small(0)?),
                pattern: (!pattern.is_empty()).then_some(pattern),
            }
        }
        "no_packet" => Statement::Expect {
            port: None,
            pattern: None,
        },
        "mirroring_add" => Statement::MirroringAdd {
            session: small(0)?,
            port: small(1)?,
        },
        "mirroring_add_mc" => Statement::MirroringAddGroup {
            session: small(0)?,
            group: small(1)?,
        },
        "mc_mgrp_create" => Statement::GroupCreate { group: small(0)? },
        "mc_node_create" => Statement::NodeCreate {
            instance: small(0)?,
            ports: (1..words.len()).map(small).collect::<Result<_, _>>()?,
        },
        "mc_node_associate" => Statement::NodeAssociate {
            group: small(0)?,
            node: number(1)? as usize,
        },
        "register_write" => Statement::RegisterWrite {
            register: unquote(words.first().ok_or("no register")?),
            index: number(1)? as usize,
            value: number(2)?,
        },
        "register_reset" => Statement::RegisterReset {
            register: unquote(words.first().ok_or("no register")?),
        },
        "counter_write" => Statement::CounterWrite {
            counter: unquote(words.first().ok_or("no counter")?),
            index: number(1)? as usize,
        },
        "wait"
        | "mirroring_get"
        | "register_read"
        | "counter_read"
        | "meter_get_rates"
        | "meter_set_rates"
        | "meter_array_set_rates"
        | "check_counter" => Statement::Nothing,
        other => return Err(format!("there is no command \"{other}\"")),
    })
}

fn unquote(name: &str) -> String {
    name.trim_matches('"').to_string()
}

fn parse_add(rest: &str) -> Result<Statement, String> {
    let rest = rest.trim();
    let (head, _) = rest.split_once(')').ok_or("no closing parenthesis")?;
    let open = head.rfind('(').ok_or("no arguments")?;
    let before = head[..open].trim_end();
    let (fields, action) = before
        .rsplit_once(char::is_whitespace)
        .ok_or("no action after the key")?;
    let mut words = fields.split_whitespace().peekable();
    let table = unquote(words.next().ok_or("no table")?);
    let priority = words.next_if(|word| !word.contains(':'));
    let priority = match priority {
        Some(word) => Some(
            word.parse()
                .map_err(|_| format!("{word} is not a priority"))?,
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
                .ok_or(format!("{word} is not a match"))?;
            Ok(KeyMatch {
                field: unquote(field),
                value: value.to_string(),
            })
        })
        .collect::<Result<_, String>>()?;
    let (action, arguments) = parse_call(&format!("{action}({})", &head[open + 1..]))?;
    Ok(Statement::Add {
        table,
        priority,
        key,
        action,
        arguments,
    })
}

type Call = (String, Vec<(String, String)>);

fn parse_call(text: &str) -> Result<Call, String> {
    let (action, rest) = text.split_once('(').ok_or("no arguments")?;
    let (arguments, _) = rest.split_once(')').ok_or("no closing parenthesis")?;
    let arguments = arguments
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty())
        .map(|argument| {
            let (name, value) = argument
                .split_once(':')
                .ok_or("an argument without a name")?;
            Ok((name.trim().to_string(), value.trim().to_string()))
        })
        .collect::<Result<_, &str>>()?;
    Ok((unquote(action.trim()), arguments))
}

/// A decimal, hexadecimal (`0x`) or binary (`0b`) number of at most 64 bits.
pub fn parse_number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        u64::from_str_radix(digits, 16).ok()
    } else if let Some(digits) = lower.strip_prefix("0b") {
        u64::from_str_radix(digits, 2).ok()
    } else {
        lower.parse().ok()
    }
}

fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    if !text.len().is_multiple_of(2) {
        return Err(format!("{text} has an odd number of digits"));
    }
    (0..text.len() / 2)
        .map(|index| {
            u8::from_str_radix(&text[index * 2..index * 2 + 2], 16)
                .map_err(|_| format!("{text} is not hexadecimal"))
        })
        .collect()
}
