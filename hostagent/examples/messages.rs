//! Messages of 64 bytes over the agent's local API: how long until every member has one, and how many a second.
//!
//! `messages send SOCKET GROUP COUNT`, `messages receive SOCKET GROUP`.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures and prints"
)]

use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;
use wormcast_agent::client::{Client, ClientError, Incoming};
use wormcast_agent_core::api::{GroupSelector, Notice, Request};

const BYTES: usize = 64;
const SINGLE: usize = 2_000;
/// Requests that may wait for an answer at a time.
const ASKED_MAX: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, socket, group, rest @ ..] = words.as_slice() else {
        return Err("messages send SOCKET GROUP COUNT, or messages receive SOCKET GROUP".into());
    };
    let client = Client::connect(Path::new(socket))?;
    let group = GroupSelector::Number(group.parse()?);
    match (what.as_str(), rest) {
        ("send", [count]) => Ok(send(client, group, count.parse()?)?),
        ("receive", []) => Ok(receive(client, group)?),
        _ => Err(format!("{what} is not send or receive, or has other words behind it").into()),
    }
}

fn send(mut client: Client, group: GroupSelector, count: usize) -> Result<(), ClientError> {
    let sender = client.open_sender(group)?.handle;
    let message = [7; BYTES];
    let mut took = Vec::new();
    // The first ones open windows and routes.
    for number in 0..SINGLE.min(count) + 1 {
        let begun = Instant::now();
        client.write(sender, &message)?;
        let sent = client.end_message(sender)?;
        whole(&client.wait_stable(sender, sent, None)?.failed);
        if number > 0 {
            took.push(begun.elapsed());
        }
    }
    took.sort();
    let begun = Instant::now();
    let mut asked = Asked::default();
    for _ in 0..count {
        client.write(sender, &message)?;
        asked.ask(&mut client, &Request::EndMessage { handle: sender })?;
    }
    let last = asked.last(&mut client)?["message"].as_u64();
    let last = last.expect("the number of a message");
    whole(&client.wait_stable(sender, last, None)?.failed);
    println!(
        "{{\"rate\": {:.0}, \"p50_us\": {}, \"p99_us\": {}}}",
        count as f64 / begun.elapsed().as_secs_f64(),
        took[took.len() / 2].as_micros(),
        took[took.len() * 99 / 100].as_micros(),
    );
    Ok(())
}

/// Requests whose answers have not been waited for.
#[derive(Default)]
struct Asked(VecDeque<u64>);

impl Asked {
    fn ask(&mut self, client: &mut Client, request: &Request) -> Result<(), ClientError> {
        self.0.push_back(client.begin(request, None)?);
        if self.0.len() > ASKED_MAX
            && let Some(first) = self.0.pop_front()
        {
            client.answer(first)?;
        }
        Ok(())
    }

    /// The answer to the last of them.
    fn last(&mut self, client: &mut Client) -> Result<Value, ClientError> {
        let mut answer = Value::Null;
        for asked in self.0.drain(..) {
            answer = client.answer(asked)?;
        }
        Ok(answer)
    }
}

fn whole(failed: &usize) {
    assert_eq!(*failed, 0, "every member has the message");
}

fn receive(mut client: Client, group: GroupSelector) -> Result<(), ClientError> {
    client.open_receiver(group, None)?;
    let mut asked = Asked::default();
    loop {
        if let Some(Incoming::Notice(Notice::MessageEnd { handle, .. })) = client.receive(None)? {
            asked.ask(&mut client, &Request::Confirm { handle })?;
        }
    }
}
