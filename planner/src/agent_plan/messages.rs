//! Routes of agents as messages of agent.proto have them, encoded: a large fabric has a million of them.

use wormcast_wire::{HostId, ROUTE_LENGTH_MAX};

use crate::model::agent::{AgentPlan, PlannedRoute, RouteTable};

impl AgentPlan {
    /// The routes as fields of `Plan` in agent.proto, encoded.
    pub fn encode_routes(&self) -> Vec<u8> {
        let count = self.routes.0.len() + self.tree_routes.0.len();
        let mut bytes = Vec::with_capacity(24 * count);
        for (field, RouteTable(routes)) in [(3, &*self.routes), (4, &*self.tree_routes)] {
            routes
                .iter()
                .for_each(|route| route.encode(field, &mut bytes));
        }
        self.put_rest(6, 8, &mut bytes);
        bytes
    }

    /// What of the routes is other than in a plan before, as fields of `PlanChange` in agent.proto,
    /// encoded; none where that message cannot say it.
    pub fn encode_route_change(&self, before: &AgentPlan) -> Option<Vec<u8>> {
        if (self.host, self.at_random) != (before.host, before.at_random) {
            return None;
        }
        let mut bytes = Vec::new();
        self.routes.encode_change(&before.routes, 3, &mut bytes);
        self.tree_routes
            .encode_change(&before.tree_routes, 5, &mut bytes);
        self.put_rest(8, 11, &mut bytes);
        Some(bytes)
    }

    /// `routes_at_random` and `train_frames`, which are these fields, `root_route`, `tree_route_max`,
    /// `unicast_train_frames` and `rate_bytes`.
    fn put_rest(&self, at_random: u64, train_frames: u64, bytes: &mut Vec<u8>) {
        if self.at_random {
            put_varint(at_random << 3, bytes);
            bytes.push(1);
        }
        if let Some(route) = &self.root_route {
            put_varint(7 << 3 | 2, bytes);
            put_varint(route.len() as u64, bytes);
            bytes.extend_from_slice(route);
        }
        if self.train_frames > 1 {
            put_varint(train_frames << 3, bytes);
            put_varint(self.train_frames.into(), bytes);
        }
        if usize::from(self.tree_route_max) < ROUTE_LENGTH_MAX {
            put_varint(20 << 3, bytes);
            put_varint(self.tree_route_max.into(), bytes);
        }
        if self.unicast_train_frames > self.train_frames {
            put_varint(21 << 3, bytes);
            put_varint(self.unicast_train_frames.into(), bytes);
        }
        if let Some(rate) = self.rate_bytes {
            put_varint(60 << 3, bytes);
            put_varint(rate, bytes);
        }
    }
}

impl RouteTable {
    /// All routes to hosts to which they are other than before as this field, and in the field
    /// behind it the hosts to which there are none any more.
    fn encode_change(&self, before: &RouteTable, field: u64, bytes: &mut Vec<u8>) {
        let to = |routes: &[PlannedRoute]| routes[0].to;
        let mut old = before.0.chunk_by(|a, b| a.to == b.to).peekable();
        let mut gone: Vec<HostId> = Vec::new();
        for own in self.0.chunk_by(|a, b| a.to == b.to) {
            while let Some(lost) = old.next_if(|old| to(old) < to(own)) {
                gone.push(to(lost));
            }
            if old.next_if(|old| to(old) == to(own)) != Some(own) {
                own.iter().for_each(|route| route.encode(field, bytes));
            }
        }
        gone.extend(old.map(to));
        for host in gone {
            put_varint((field + 1) << 3, bytes);
            put_varint(host.0.into(), bytes);
        }
    }
}

impl PlannedRoute {
    /// As this field of a message (`Route` of agent.proto); fields that are zero are left out.
    fn encode(&self, field: u64, bytes: &mut Vec<u8>) {
        let number = |tag: u64, value: u32| (value != 0).then_some((tag << 3, value));
        let numbers = [number(1, self.to.0.into()), number(3, self.share)];
        let length: usize = (numbers.iter().flatten())
            .map(|&(_, value)| 1 + varint_length(value.into()))
            .sum();
        let ports = self.ports.len();
        put_varint(field << 3 | 2, bytes);
        put_varint(
            (length + 1 + varint_length(ports as u64) + ports) as u64,
            bytes,
        );
        let [to, share] = numbers;
        put_number(to, bytes);
        put_varint(2 << 3 | 2, bytes);
        put_varint(ports as u64, bytes);
        bytes.extend_from_slice(&self.ports);
        put_number(share, bytes);
    }
}

fn put_number(number: Option<(u64, u32)>, bytes: &mut Vec<u8>) {
    if let Some((tag, value)) = number {
        put_varint(tag, bytes);
        put_varint(value.into(), bytes);
    }
}

fn put_varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn varint_length(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}
