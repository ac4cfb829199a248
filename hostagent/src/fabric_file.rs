//! Many agents in one process: the file of `--fabric`.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Most agents of a process.
pub const AGENTS_MAX: usize = 4_096;

/// One agent of a process: what differs between them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Unique name.
    pub name: String,
    /// Network interface that leads to the fabric.
    pub interface: String,
    /// Network namespace of that interface, by name or path; `None`: that of the process.
    pub namespace: Option<String>,
    /// Where the local API is to be.
    pub socket: PathBuf,
    /// Host ID to ask the controller for.
    pub host_id: Option<u16>,
    /// Have no worms of others routed through this host.
    #[serde(default)]
    pub no_transit: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    agents: Vec<Place>,
}

/// Reads the text of such a file.
///
/// # Errors
/// What is wrong, in words.
pub fn parse(text: &str) -> Result<Vec<Place>, String> {
    let File { agents } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if agents.is_empty() || agents.len() > AGENTS_MAX {
        return Err(format!(
            "{} agents; a process has 1 to {AGENTS_MAX}",
            agents.len()
        ));
    }
    let (mut names, mut sockets) = (BTreeSet::new(), BTreeSet::new());
    for agent in &agents {
        if !names.insert(&agent.name) {
            return Err(format!("two agents have the name \"{}\"", agent.name));
        }
        if !sockets.insert(&agent.socket) {
            let socket = agent.socket.display();
            return Err(format!("two agents have the socket {socket}"));
        }
    }
    Ok(agents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_read_in_order() {
        let text = r#"{"agents": [
            {"name": "a", "interface": "eth0", "namespace": "one", "socket": "/run/a.sock", "host_id": 3},
            {"name": "b", "interface": "eth0", "socket": "/run/b.sock", "no_transit": true}]}"#;
        let agents = parse(text).unwrap();
        assert_eq!((agents[0].name.as_str(), agents[0].host_id), ("a", Some(3)));
        assert_eq!(agents[0].namespace.as_deref(), Some("one"));
        assert!(agents[1].no_transit && agents[1].namespace.is_none());
    }

    #[test]
    fn what_cannot_be_is_named() {
        let agent = |name: &str, socket: &str| {
            format!(r#"{{"name": "{name}", "interface": "e", "socket": "{socket}"}}"#)
        };
        for (agents, want) in [
            (String::new(), "0 agents; a process has 1 to 4096"),
            (
                [agent("a", "/a"), agent("a", "/b")].join(","),
                "the name \"a\"",
            ),
            (
                [agent("a", "/a"), agent("b", "/a")].join(","),
                "the socket /a",
            ),
            (
                r#"{"name": "a", "colour": 1}"#.to_owned(),
                "unknown field `colour`",
            ),
            (r#"{"name": "a"}"#.to_owned(), "missing field `interface`"),
        ] {
            let error = parse(&format!(r#"{{"agents": [{agents}]}}"#)).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }
}
