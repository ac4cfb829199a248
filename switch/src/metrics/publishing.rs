//! What is published over nanomsg: notifications and the event log.

use super::exposition::{Family, Kind};
use wormcast_switch_dataplane::Snapshot;

/// Notifications, of a switch that publishes them.
pub(super) fn notification_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    let Some(counts) = &snapshot.notifications else {
        return;
    };
    let (published, learned) = (&counts.published, &counts.learned);
    let rows = [
        (
            Kind::Gauge,
            "wormcast_switch_notification_subscribers",
            "Subscribers to the socket of notifications.",
            published.subscribers,
        ),
        (
            Kind::Counter,
            "wormcast_switch_notifications_total",
            "Notifications published on the socket of this switch, whoever heard them.",
            published.published,
        ),
        (
            Kind::Counter,
            "wormcast_switch_notifications_delivered_total",
            "Notifications handed to subscribers, each once for each of them.",
            published.delivered,
        ),
        (
            Kind::Counter,
            "wormcast_switch_notifications_lost_total",
            "Notifications that found the queue of a subscriber full.",
            published.dropped,
        ),
        (
            Kind::Counter,
            "wormcast_switch_notification_connections_refused_total",
            "Connections that were one too many, or none of a subscriber.",
            published.refused,
        ),
        (
            Kind::Counter,
            "wormcast_switch_learned_samples_total",
            "Samples in notifications of what was learned.",
            learned.sent,
        ),
        (
            Kind::Counter,
            "wormcast_switch_learned_samples_known_total",
            "Samples left out since the same one waited to be sent or acknowledged.",
            learned.duplicates,
        ),
        (
            Kind::Counter,
            "wormcast_switch_learned_samples_forgotten_total",
            "Samples whose acknowledgement was no longer waited for, for want of room.",
            learned.forgotten,
        ),
    ];
    push_all(device, rows, families);
}

/// The event log, of a switch that has one.
pub(super) fn event_log_families(device: &str, snapshot: &Snapshot, families: &mut Vec<Family>) {
    let Some(counts) = &snapshot.event_log else {
        return;
    };
    let published = &counts.published;
    let rows = [
        (
            Kind::Gauge,
            "wormcast_switch_event_log_subscribers",
            "Subscribers to the socket of the event log.",
            published.subscribers,
        ),
        (
            Kind::Counter,
            "wormcast_switch_event_log_messages_total",
            "Events of packets published on the socket of this switch.",
            published.published,
        ),
        (
            Kind::Counter,
            "wormcast_switch_event_log_messages_lost_total",
            "Events that found the queue of a subscriber full.",
            published.dropped,
        ),
        (
            Kind::Counter,
            "wormcast_switch_event_log_records_lost_total",
            "Halves of packets' ways that have no events, since packets came faster.",
            counts.records_lost,
        ),
        (
            Kind::Counter,
            "wormcast_switch_event_log_connections_refused_total",
            "Connections that were one too many, or none of a subscriber.",
            published.refused,
        ),
    ];
    push_all(device, rows, families);
}

fn push_all<const N: usize>(
    device: &str,
    rows: [(Kind, &'static str, &'static str, u64); N],
    families: &mut Vec<Family>,
) {
    for (kind, name, help, value) in rows {
        let mut family = Family::new(kind, name, help);
        family.add(&[("device", device)], value as f64);
        families.push(family);
    }
}
