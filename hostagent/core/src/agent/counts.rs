//! What an agent counts, for the controller and for status.

use super::Agent;
use crate::clients::Serving;
use crate::figures::Figures;
use crate::plan::AUTO;
use wormcast_protocol::Instant;
use wormcast_wire::BufferClass;

impl Agent {
    /// Adds what the agent counts, and with `with_groups` its groups.
    pub fn fill(&self, figures: &mut Figures, with_groups: bool, now: Instant) {
        figures.host = self.host.map(|host| host.0);
        figures.plan_epoch = self.plan.as_ref().map_or(0, |plan| plan.epoch);
        figures.uptime_us = now.as_micros();
        figures.failed = self.failed.iter().cloned().collect();
        for (name, value) in self.applications.counters() {
            figures.push(name, value);
        }
        let (transit, flow) = (self.transit.counters(), self.flow.counters());
        let (trains, arrivals) = (self.trains.counters(), self.arrivals.counters());
        let fragments = self.arrivals.fragments();
        for (name, value) in [
            ("transit.frames", transit.frames),
            ("transit.bytes", transit.bytes),
            ("transit.spilled", transit.spilled),
            ("transit.held_bytes", self.transit.held_bytes() as u64),
            ("transit.held_bytes_most", transit.held_bytes_most as u64),
            ("drops.transit_full", transit.dropped),
            ("flow.stops", flow.stops),
            ("flow.stopped_us", self.flow.stopped_us(now)),
            ("flow.overdue", flow.overdue),
            ("flow.resets", flow.resets),
            ("drops.signal_refused", flow.refused),
            ("pacing.waits", self.pacing.waits()),
            ("trains.sent", trains.sent),
            ("trains.frames", trains.frames),
            ("trains.multicasts", fragments.multicasts),
            ("trains.numbered", fragments.numbered),
            ("trains.resumed", fragments.resumed),
            ("trains.broken", fragments.broken),
            ("trains.out_of_order", fragments.out_of_order),
            ("trains.number", fragments.number.into()),
            ("drops.train_headless", arrivals.headless),
            ("drops.train_cut", arrivals.cut),
        ] {
            figures.push(name, value);
        }
        if let Some(engine) = &self.engine {
            for (name, value) in engine.counters().entries() {
                figures.push(name, value);
            }
            for (name, class) in [
                ("pool_class1_bytes", BufferClass::One),
                ("pool_class2_bytes", BufferClass::Two),
            ] {
                figures.push(name, engine.pool_bytes(class) as u64);
            }
            figures.set_routes(engine.routes_taken().map(|(host, taken)| (host.0, taken)));
            for (group, origin, statistics) in engine.statistics() {
                for (name, value) in statistics.entries() {
                    figures.push_stream(name, group.0, origin.0, value);
                }
                if with_groups {
                    figures.push_behind(group.0, origin.0, engine.behind(group, origin));
                }
                let own = engine.progress(group).filter(|_| Some(origin) == self.host);
                let planned = self.plan.as_ref().and_then(|plan| plan.groups.get(&group));
                let chosen = planned
                    .filter(|group| group.scheme_name() == AUTO || group.structures.len() > 1);
                let choices = chosen.map_or(0, |group| group.structures.len());
                for (number, taken) in own
                    .iter()
                    .flat_map(|own| own.messages_by_choice.iter().enumerate())
                {
                    if number < choices {
                        let name = format!("messages_by_structure.{number}");
                        figures.push_stream(&name, group.0, origin.0, *taken);
                    }
                }
            }
        }
        if with_groups {
            let serving = Serving {
                engine: None,
                host: self.host,
                groups: self.plan.as_ref().map(|plan| &plan.groups),
                now,
            };
            (figures.groups, figures.groups_left_out) = self
                .applications
                .describe_groups(&serving, None)
                .unwrap_or_default();
        }
    }
}
