//! Costs as a file.

use serde_json::{Map, Value, json};

use super::{Channel, ChannelLoad, CostError, Costs};
use wormcast_wire::{
    HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SchemeName, SwitchId,
};

/// Longest time that is taken, 1000 s, so that sums of times stay far from overflow.
const NS_MAX: f64 = 1e12;
const NS_PER_BYTE_MAX: f64 = 1e6;
/// Fastest link.
const BITS_PER_S_MAX: u64 = 1_000_000_000_000_000;
/// Slowest link.
const BITS_PER_S_LEAST: u64 = 1_000;
/// Most bytes of payload and header of a packet.
const BYTES_MAX: u32 = 1 << 24;
/// Largest share of a channel that other traffic can take.
const UTILISATION_MAX: f64 = 0.99;

enum Slot<'c> {
    Time(&'c mut f64, f64),
    Rate(&'c mut u64),
    Count(&'c mut u32, u32, u32),
    Flag(&'c mut bool),
    Share(&'c mut f64),
}

impl Costs {
    /// Reads `{"set":…, …}`: a set of costs by name (default `agents`) and what differs
    /// from it, by the names of the fields of [`Costs`];
    /// `"scheme_message_forward_ns":{"u-torus":629000}`, `"channels":[{"switch":3,
    /// "port":4,"utilisation":0.5},{"host":7,"utilisation":0.2}]`.
    ///
    /// # Errors
    /// What is no cost or outside its bounds.
    pub fn from_json(text: &str) -> Result<Costs, CostError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong("costs", error.to_string()))?;
        Costs::from_value(&value)
    }

    /// As [`Costs::from_json`], from JSON that has been read.
    pub(crate) fn from_value(value: &Value) -> Result<Costs, CostError> {
        if let Value::String(set) = value {
            return Costs::named(set);
        }
        let Value::Object(fields) = value else {
            return Err(wrong(
                "costs",
                format!("{value} is neither an object nor a name"),
            ));
        };
        let mut costs = match fields.get("set") {
            None | Some(Value::Null) => Costs::default(),
            Some(Value::String(set)) => Costs::named(set)?,
            Some(other) => return Err(wrong("costs.set", format!("{other} is not a name"))),
        };
        for (name, value) in fields {
            match name.as_str() {
                "set" => {}
                "scheme_message_forward_ns" => costs.read_schemes(value)?,
                "channels" => costs.channels = read_channels(value)?,
                _ => costs.read_field(name, value)?,
            }
        }
        Ok(costs)
    }

    /// Writes every field; the file reads back as the same costs.
    pub fn to_json(&self) -> String {
        let mut copy = self.clone();
        let mut fields = Map::new();
        for (name, slot) in copy.slots() {
            let value = match slot {
                Slot::Time(time, _) | Slot::Share(time) => json!(time),
                Slot::Rate(rate) => json!(rate),
                Slot::Count(count, ..) => json!(count),
                Slot::Flag(flag) => json!(flag),
            };
            fields.insert(name.to_owned(), value);
        }
        fields.insert(
            "scheme_message_forward_ns".into(),
            json!(self.scheme_message_forward_ns),
        );
        let channels = self.channels.iter().map(|load| match load.channel {
            Channel::Port(switch, port) => {
                json!({"switch": switch.0, "port": port.get(), "utilisation": load.utilisation})
            }
            Channel::Host(host) => json!({"host": host.0, "utilisation": load.utilisation}),
        });
        fields.insert("channels".into(), channels.collect());
        format!("{}\n", Value::Object(fields))
    }

    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
        vec![
            (
                "message_send_ns",
                Slot::Time(&mut self.message_send_ns, NS_MAX),
            ),
            (
                "message_receive_ns",
                Slot::Time(&mut self.message_receive_ns, NS_MAX),
            ),
            (
                "message_copy_ns",
                Slot::Time(&mut self.message_copy_ns, NS_MAX),
            ),
            (
                "message_forward_ns",
                Slot::Time(&mut self.message_forward_ns, NS_MAX),
            ),
            (
                "message_confirm_ns",
                Slot::Time(&mut self.message_confirm_ns, NS_MAX),
            ),
            (
                "packet_send_ns",
                Slot::Time(&mut self.packet_send_ns, NS_MAX),
            ),
            (
                "packet_receive_ns",
                Slot::Time(&mut self.packet_receive_ns, NS_MAX),
            ),
            (
                "send_ns_per_byte",
                Slot::Time(&mut self.send_ns_per_byte, NS_PER_BYTE_MAX),
            ),
            (
                "receive_ns_per_byte",
                Slot::Time(&mut self.receive_ns_per_byte, NS_PER_BYTE_MAX),
            ),
            ("send_gap_ns", Slot::Time(&mut self.send_gap_ns, NS_MAX)),
            (
                "forward_packet_ns",
                Slot::Time(&mut self.forward_packet_ns, NS_MAX),
            ),
            (
                "forward_ns_per_byte",
                Slot::Time(&mut self.forward_ns_per_byte, NS_PER_BYTE_MAX),
            ),
            (
                "acknowledgement_ns",
                Slot::Time(&mut self.acknowledgement_ns, NS_MAX),
            ),
            ("switch_hop_ns", Slot::Time(&mut self.switch_hop_ns, NS_MAX)),
            (
                "switch_copy_ns",
                Slot::Time(&mut self.switch_copy_ns, NS_MAX),
            ),
            ("in_transit_ns", Slot::Time(&mut self.in_transit_ns, NS_MAX)),
            ("wire_ns", Slot::Time(&mut self.wire_ns, NS_MAX)),
            ("link_bits_per_s", Slot::Rate(&mut self.link_bits_per_s)),
            (
                "host_link_bits_per_s",
                Slot::Rate(&mut self.host_link_bits_per_s),
            ),
            (
                "link_burst_bytes",
                Slot::Count(&mut self.link_burst_bytes, 0, 1 << 30),
            ),
            (
                "shared_crossing_ns",
                Slot::Time(&mut self.shared_crossing_ns, NS_MAX),
            ),
            (
                "packet_payload_bytes",
                Slot::Count(&mut self.packet_payload_bytes, 1, BYTES_MAX),
            ),
            (
                "packet_header_bytes",
                Slot::Count(&mut self.packet_header_bytes, 0, BYTES_MAX),
            ),
            (
                "route_bytes_per_hop",
                Slot::Count(&mut self.route_bytes_per_hop, 0, 255),
            ),
            (
                "tree_bytes_per_branch",
                Slot::Count(&mut self.tree_bytes_per_branch, 0, 255),
            ),
            ("cut_through", Slot::Flag(&mut self.cut_through)),
            (
                "host_buffer_packets",
                Slot::Count(&mut self.host_buffer_packets, 1, 1 << 20),
            ),
            ("utilisation", Slot::Share(&mut self.utilisation)),
        ]
    }

    fn read_field(&mut self, name: &str, value: &Value) -> Result<(), CostError> {
        let mut slots = self.slots();
        let Some(place) = slots.iter().position(|(known, _)| *known == name) else {
            let mut choices: Vec<&'static str> = slots.iter().map(|(known, _)| *known).collect();
            choices.extend(["scheme_message_forward_ns", "channels", "set"]);
            return Err(CostError::UnknownField {
                name: name.to_owned(),
                choices,
            });
        };
        let at = format!("costs.{name}");
        match &mut slots[place].1 {
            Slot::Time(time, most) => **time = real(&at, value, *most)?,
            Slot::Share(share) => **share = real(&at, value, UTILISATION_MAX)?,
            Slot::Rate(rate) => **rate = integer(&at, value, BITS_PER_S_LEAST, BITS_PER_S_MAX)?,
            Slot::Count(count, least, most) => {
                **count = integer(&at, value, (*least).into(), (*most).into())? as u32;
            }
            Slot::Flag(flag) => {
                **flag = value
                    .as_bool()
                    .ok_or_else(|| wrong(&at, format!("{value} is neither true nor false")))?;
            }
        }
        Ok(())
    }

    fn read_schemes(&mut self, value: &Value) -> Result<(), CostError> {
        let at = "costs.scheme_message_forward_ns";
        let Value::Object(schemes) = value else {
            return Err(wrong(at, format!("{value} is not an object")));
        };
        self.scheme_message_forward_ns.clear();
        for (scheme, time) in schemes {
            if SchemeName::from_name(scheme).is_none() {
                let known = SchemeName::ALL.map(SchemeName::name).join(", ");
                let reason = format!("there is no scheme \"{scheme}\"; choices are {known}");
                return Err(wrong(at, reason));
            }
            let time = real(&format!("{at}.{scheme}"), time, NS_MAX)?;
            self.scheme_message_forward_ns.insert(scheme.clone(), time);
        }
        Ok(())
    }
}

fn read_channels(value: &Value) -> Result<Vec<ChannelLoad>, CostError> {
    let Value::Array(channels) = value else {
        return Err(wrong("costs.channels", format!("{value} is not a list")));
    };
    channels
        .iter()
        .enumerate()
        .map(|(place, load)| read_channel(place, load))
        .collect()
}

fn read_channel(place: usize, load: &Value) -> Result<ChannelLoad, CostError> {
    let at = format!("costs.channels[{place}]");
    let field = |name: &str| load.get(name).unwrap_or(&Value::Null);
    let number = |name: &str, most: u64| integer(&format!("{at}.{name}"), field(name), 0, most);
    let channel = if load.get("host").is_some() {
        Channel::Host(HostId(number("host", HOST_ID_MAX.into())? as u16))
    } else {
        let switch = SwitchId(number("switch", SWITCH_ID_MAX.into())? as u16);
        let port = number("port", PORT_ID_MAX.into())? as u8;
        Channel::Port(switch, PortId::new(port).expect("bounded"))
    };
    let utilisation = real(
        &format!("{at}.utilisation"),
        field("utilisation"),
        UTILISATION_MAX,
    )?;
    Ok(ChannelLoad {
        channel,
        utilisation,
    })
}

fn wrong(at: &str, reason: String) -> CostError {
    CostError::Value {
        at: at.to_owned(),
        reason,
    }
}

fn real(at: &str, value: &Value, most: f64) -> Result<f64, CostError> {
    match value.as_f64() {
        Some(found) if (0.0..=most).contains(&found) => Ok(found),
        _ => Err(wrong(
            at,
            format!("{value} is not a number from 0 to {most}"),
        )),
    }
}

fn integer(at: &str, value: &Value, least: u64, most: u64) -> Result<u64, CostError> {
    match value.as_u64() {
        Some(found) if (least..=most).contains(&found) => Ok(found),
        _ => Err(wrong(
            at,
            format!("{value} is not an integer from {least} to {most}"),
        )),
    }
}
