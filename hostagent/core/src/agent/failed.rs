//! Members that fail: the controller, status and the operator are told.

use super::{Agent, MemberReport};
use crate::figures::FailedMember;
use wormcast_protocol::{Event, Instant, Unread};
use wormcast_wire::FailReason;

/// Failures kept for status, which shows the last ones; outcomes of messages do not come from here.
const FAILED_MEMBERS_MAX: usize = 64;
/// The controller is told again that a member is slow after this long, µs.
const SLOW_AGAIN_US: u64 = 10_000_000;
/// Slow members that are told in this time; of more the controller is not told.
const SLOW_MEMBERS_MAX: usize = 1_024;

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

impl Agent {
    /// Tells the controller, and status, of members that fail.
    pub(super) fn report(&mut self, event: &Event, now: Instant) {
        let (group, origin, host, reason, text) = match event {
            Event::MemberSilent {
                group,
                origin,
                host,
                silent_ms,
            } => {
                let text = format!("silent for {}", seconds(*silent_ms));
                self.note(format!(
                    "group {group}, stream of host {origin}: host {host} is {text}; it stays a member"
                ));
                self.reports.push_back(MemberReport {
                    group: *group,
                    origin: *origin,
                    host: *host,
                    reason: text,
                    host_dead: true,
                    slow: false,
                });
                return;
            }
            Event::MemberFailed {
                group,
                origin,
                host,
                reason,
                silent_ms,
            } => {
                let text = match reason {
                    FailReason::Silent => {
                        format!("{reason} for {}, given up", seconds(*silent_ms))
                    }
                    _ => reason.to_string(),
                };
                (*group, *origin, *host, *reason, text)
            }
            Event::MemberAborted {
                group,
                host,
                reason,
                ..
            } => {
                let Some(origin) = self.host else { return };
                (*group, origin, *host, *reason, reason.to_string())
            }
            Event::StructureRejected {
                group,
                origin,
                children,
                limit,
            } => {
                self.warn(format!(
                    "the structure of group {group} from host {origin} gives this host {children} children; at most {limit}"
                ));
                return;
            }
            _ => return,
        };
        self.note(format!(
            "group {group}, stream of host {origin}: host {host} failed: {text}"
        ));
        let host_dead = reason.is_host_dead();
        self.reports.push_back(MemberReport {
            group,
            origin,
            host,
            reason: text.clone(),
            host_dead,
            slow: false,
        });
        if self.failed.len() == FAILED_MEMBERS_MAX {
            self.failed.pop_front();
        }
        self.failed.push_back(FailedMember {
            group: group.0,
            origin: origin.0,
            host: host.0,
            reason: text,
            host_dead,
            at_us: now.as_micros(),
        });
    }

    /// Tells the controller of a member that takes what this host sends slower than it comes.
    pub(super) fn report_slow(&mut self, unread: &Unread, now: Instant) {
        let (group, host) = (unread.group, unread.host);
        let Some(origin) = self.host.filter(|_| unread.slow) else {
            return;
        };
        self.slow
            .retain(|_, told| told.plus_us(SLOW_AGAIN_US) > now);
        if self.slow.contains_key(&(group, host)) || self.slow.len() >= SLOW_MEMBERS_MAX {
            return;
        }
        self.slow.insert((group, host), now);
        self.note(format!(
            "group {group}: the application on host {host} takes what this host sends slower than it comes"
        ));
        self.reports.push_back(MemberReport {
            group,
            origin,
            host,
            reason: "its application is slow".to_owned(),
            host_dead: false,
            slow: true,
        });
    }
}
