//! What the switch tells controllers unasked: packet-ins, digests, idle entries.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::cookies::CookieKey;
use super::digests::List;
use super::entry::write_key;
use super::forwarding::Verified;
use super::packet_io::packet_in_of_frame;
use super::proto::p4::v1::{
    DigestList, IdleTimeoutNotification, TableEntry, stream_message_response as outgoing,
};
use super::read::attach;
use super::shared::Shared;
use wormcast_switch_dataplane::ToController;
use wormcast_switch_dataplane::log::Level;
use wormcast_switch_pipeline::Expired;

/// Messages of the data plane that are handled before timers have their turn.
const MESSAGES_A_TURN: usize = 64;

/// Entries that are looked at in one operation of the data plane.
pub const AGES_A_TURN: usize = 1_024;

/// Least time between two looks at entries that age.
const AGES_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Most time between two looks; a write with a timeout causes one earlier.
const AGES_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Sends what the data plane has for controllers, until it ends.
pub async fn deliver(shared: Arc<Shared>, mut from_dataplane: mpsc::Receiver<ToController>) {
    let start = Instant::now();
    let now_us = || start.elapsed().as_micros() as u64;
    let mut messages = Vec::with_capacity(MESSAGES_A_TURN);
    loop {
        let due_us = shared.digests_due_us();
        let due = start + Duration::from_micros(due_us.unwrap_or_default());
        tokio::select! {
            count = from_dataplane.recv_many(&mut messages, MESSAGES_A_TURN) => {
                if count == 0 {
                    return; // the data plane has ended
                }
            }
            () = tokio::time::sleep_until(due), if due_us.is_some() => {}
        }
        for message in messages.drain(..) {
            shared.send_to_controllers(message, now_us());
        }
        if due_us.is_some() {
            shared.send_due_digests(now_us());
        }
    }
}

/// Tells controllers about idle entries, until the data plane ends.
pub async fn watch_ages(shared: Arc<Shared>) {
    loop {
        let wait = match shared.notify_idle().await {
            Ok(wait) => wait,
            Err(wormcast_switch_dataplane::Stopped) => return,
        };
        tokio::time::sleep(AGES_INTERVAL_MIN).await;
        let rest = wait.saturating_sub(AGES_INTERVAL_MIN);
        // A timeout means that nobody wrote one; either way it is time to look.
        let _ = tokio::time::timeout(rest, shared.ages.notified()).await;
    }
}

impl Shared {
    fn send_to_controllers(&self, message: ToController, now_us: u64) {
        if let ToController::Digest(digest) = &message {
            for observer in self.observers().iter() {
                observer.learn(digest);
            }
        }
        let Some(running) = self.running().clone() else {
            self.streams().no_primary += 1;
            return;
        };
        match message {
            ToController::PacketIn(frame) => {
                match packet_in_of_frame(&frame, &running.schema.packet_in) {
                    Some(packet) => self.streams().send_to_primaries(
                        |access| access.takes_packet(&packet),
                        &outgoing::Update::Packet(packet.clone()),
                    ),
                    None => {
                        self.streams().too_short += 1;
                        let text =
                            format_args!("a packet-in of {} bytes is too short", frame.len());
                        self.log.write(Level::Debug, text);
                    }
                }
            }
            ToController::Digest(message) => {
                let Some(id) = running
                    .schema
                    .digest_of(message.digest)
                    .map(|digest| digest.id)
                else {
                    return; // not in the P4Info, so no controller can want it
                };
                let list = running.digests().offer(id, &message.fields, now_us);
                if let Some(list) = list {
                    self.send_digests(&running, &list);
                }
            }
        }
    }

    fn digests_due_us(&self) -> Option<u64> {
        let running = self.running().clone()?;
        running.digests().due_us()
    }

    fn send_due_digests(&self, now_us: u64) {
        let Some(running) = self.running().clone() else {
            return;
        };
        let lists = running.digests().poll(now_us);
        for list in lists {
            self.send_digests(&running, &list);
        }
    }

    fn send_digests(&self, running: &Verified, list: &List) {
        let digest = running.schema.digest(list.digest_id);
        let Some(shape) = digest.and_then(|digest| digest.shape.as_ref().ok()) else {
            return;
        };
        let message = DigestList {
            digest_id: list.digest_id,
            list_id: list.list_id,
            data: list
                .messages
                .iter()
                .map(|fields| shape.data(fields))
                .collect(),
            timestamp: unix_ns(),
        };
        self.streams().send_to_primaries(
            |access| access.includes(list.digest_id),
            &outgoing::Update::Digest(message),
        );
    }

    /// Tells about idle entries; gives how long there will be none.
    async fn notify_idle(&self) -> Result<Duration, wormcast_switch_dataplane::Stopped> {
        let running = self.running().clone();
        let Some(running) = running.filter(|running| running.has_ages()) else {
            return Ok(AGES_INTERVAL_MAX);
        };
        let of_program = Arc::clone(&running);
        let looked = self.dataplane.run(move |switch| {
            let pipeline = switch.pipeline()?;
            if !of_program.runs_in(pipeline) {
                return None; // it was replaced just now
            }
            let expired = pipeline.take_expired(AGES_A_TURN);
            let next_us = pipeline.next_expiry_us();
            Some((
                expired,
                next_us.map(|us| us.saturating_sub(pipeline.now_us())),
            ))
        });
        let Some((expired, next_us)) = looked.await? else {
            return Ok(AGES_INTERVAL_MIN);
        };
        self.send_idle(&running, expired);
        let next = next_us.map_or(AGES_INTERVAL_MAX, Duration::from_micros);
        Ok(next.clamp(AGES_INTERVAL_MIN, AGES_INTERVAL_MAX))
    }

    /// One message for each table.
    fn send_idle(&self, running: &Verified, expired: Vec<Expired>) {
        let mut messages: Vec<(u32, IdleTimeoutNotification)> = Vec::new();
        for one in expired {
            let id = running.schema.table_ids.get(&one.table);
            let Some(table) = id.and_then(|id| running.schema.table(*id)) else {
                continue; // not in the P4Info
            };
            let key = CookieKey::Entry(one.table, one.entry.key, one.entry.priority);
            let CookieKey::Entry(_, of_entry, priority) = &key else {
                continue;
            };
            let mut entry = TableEntry {
                table_id: table.id,
                r#match: write_key(table, of_entry),
                priority: *priority,
                idle_timeout_ns: i64::try_from(one.timeout_ns).unwrap_or(i64::MAX),
                ..TableEntry::default()
            };
            attach(&running.cookies(), &key, &mut entry);
            match messages.last_mut() {
                Some((id, message)) if *id == table.id => message.table_entry.push(entry),
                _ => messages.push((
                    table.id,
                    IdleTimeoutNotification {
                        table_entry: vec![entry],
                        timestamp: unix_ns(),
                    },
                )),
            }
        }
        for (id, message) in messages {
            self.streams().send_to_primaries(
                |access| access.includes(id),
                &outgoing::Update::IdleTimeoutNotification(message),
            );
        }
    }
}

/// Nanoseconds since the start of 1970.
fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

impl Verified {
    /// What controllers attached.
    pub(super) fn cookies(&self) -> std::sync::MutexGuard<'_, super::cookies::Cookies> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Digests that controllers want.
    pub(super) fn digests(&self) -> std::sync::MutexGuard<'_, super::digests::Digests> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
