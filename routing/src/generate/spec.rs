//! Topologies by name, as on the command line: `torus:4`, `irregular:8:1`.

use super::{
    Clos3, Dragonfly, Irregular, Torus, clos2, clos3, dragonfly, fat_tree, full_mesh, irregular,
    line, mesh, ring, shufflenet, star, testbed, torus,
};
use crate::topology::{SWITCHES_MAX, Topology, TopologyError};

/// Every kind, with its parameters; those in brackets may be left out. `RADIX` is one
/// number k for k×k, or one number for each dimension, as in `4x4x2`.
pub const KINDS: &[&str] = &[
    "testbed",
    "line:SWITCHES[:HOSTS]",
    "ring:SWITCHES[:HOSTS]",
    "star:SWITCHES[:HOSTS]",
    "full-mesh:SWITCHES[:HOSTS]",
    "torus:RADIX[:HOSTS]",
    "unidirectional-torus:RADIX[:HOSTS]",
    "mesh:RADIX[:HOSTS]",
    "fat-tree:K",
    "clos2:LEAVES:SPINES[:HOSTS]",
    "clos3:PODS:LEAVES:SPINES:CORES[:HOSTS]",
    "dragonfly:A:P:H[:GROUPS[:ARRANGEMENT]]",
    "shufflenet:P:K[:HOSTS]",
    "irregular:SWITCHES:SEED[:HOSTS[:LINKS]]",
];

/// The topology named by a kind and its parameters. HOSTS is for each switch, in Clos
/// networks for each leaf, by default 1, in irregular networks 4, as is LINKS. LEAVES and
/// SPINES are for each pod, CORES are all. A dragonfly has A switches a group, P hosts and
/// H global links a switch, by default A·H + 1 GROUPS, ARRANGEMENT palmtree or
/// consecutive.
///
/// # Errors
/// [`TopologyError::Parameter`], naming the choices.
pub fn from_spec(spec: &str) -> Result<Topology, TopologyError> {
    let mut fields = spec.split(':');
    let kind = fields.next().unwrap_or_default();
    let values: Vec<&str> = fields.collect();
    let shape = KINDS
        .iter()
        .find(|shape| shape.split(':').next() == Some(kind));
    let Some(shape) = shape else {
        let reason = format!("no such topology; choices are {}", KINDS.join(", "));
        return Err(TopologyError::Parameter {
            kind: kind.to_owned(),
            reason,
        });
    };
    let fields = Fields {
        kind,
        shape,
        values: &values,
    };
    fields.check_count()?;
    let hosts = |place| fields.number(place, Some(1)).map(|hosts| hosts as usize);
    let count = |place| fields.number(place, None).map(|count| count as usize);
    match kind {
        "testbed" => Ok(testbed()),
        "line" => line(count(0)?, hosts(1)?),
        "ring" => ring(count(0)?, hosts(1)?),
        "star" => star(count(0)?, hosts(1)?),
        "full-mesh" => full_mesh(count(0)?, hosts(1)?),
        "torus" | "unidirectional-torus" => torus(&Torus {
            radix: fields.radix(0)?,
            hosts: hosts(1)?,
            unidirectional: kind == "unidirectional-torus",
        }),
        "mesh" => mesh(&fields.radix(0)?, hosts(1)?),
        "fat-tree" => fat_tree(count(0)?),
        "clos2" => clos2(count(0)?, count(1)?, hosts(2)?),
        "clos3" => clos3(&Clos3 {
            pods: count(0)?,
            leaves: count(1)?,
            spines: count(2)?,
            cores: count(3)?,
            hosts: hosts(4)?,
        }),
        "dragonfly" => {
            let largest = Dragonfly::largest(count(0)?, count(1)?, count(2)?);
            dragonfly(&Dragonfly {
                groups: fields.number(3, Some(largest.groups as u64))? as usize,
                arrangement: match values.get(4) {
                    Some(name) => name.parse()?,
                    None => largest.arrangement,
                },
                ..largest
            })
        }
        "shufflenet" => shufflenet(count(0)?, count(1)?, hosts(2)?),
        _ => {
            let hosts = fields.number(2, Some(4))? as usize;
            let links = fields.number(3, Some(4))? as usize;
            let seed = fields.number(1, None)?;
            let ports = hosts.saturating_add(links).max(8);
            irregular(&Irregular {
                switches: count(0)?,
                ports,
                hosts,
                links,
                seed,
            })
        }
    }
}

struct Fields<'a> {
    kind: &'a str,
    shape: &'a str,
    values: &'a [&'a str],
}

impl Fields<'_> {
    fn refuse<T>(&self, reason: String) -> Result<T, TopologyError> {
        Err(TopologyError::Parameter {
            kind: self.kind.to_owned(),
            reason,
        })
    }

    fn check_count(&self) -> Result<(), TopologyError> {
        let most = self.shape.matches(':').count();
        let least = most - self.shape.matches('[').count();
        if (least..=most).contains(&self.values.len()) {
            return Ok(());
        }
        self.refuse(format!(
            "{} parameters given; it is written {}",
            self.values.len(),
            self.shape
        ))
    }

    fn number(&self, place: usize, default: Option<u64>) -> Result<u64, TopologyError> {
        match (self.values.get(place), default) {
            (None, Some(default)) => Ok(default),
            (value, _) => {
                let value = value.copied().unwrap_or_default();
                let what = self.shape.split(':').nth(place + 1).unwrap_or_default();
                let what = what.trim_matches(['[', ']']);
                if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
                    return self.refuse(format!(
                        "{what} \"{value}\" is not a number of 0 or more; it is written {}",
                        self.shape
                    ));
                }
                value.parse().or_else(|_| {
                    self.refuse(format!("{what} {value} is outside 0 to {}", u64::MAX))
                })
            }
        }
    }

    fn radix(&self, place: usize) -> Result<Vec<u16>, TopologyError> {
        let value = self.values.get(place).copied().unwrap_or_default();
        let mut radix = Vec::new();
        for part in value.split('x') {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return self.refuse(format!(
                    "\"{value}\" is not a radix such as 4 (4 by 4 switches) or 4x4x2"
                ));
            }
            match part.parse() {
                Ok(radix_of) if usize::from(radix_of) <= SWITCHES_MAX => radix.push(radix_of),
                _ => {
                    return self.refuse(format!(
                        "a dimension of {part} switches; all together may be {SWITCHES_MAX} at most"
                    ));
                }
            }
        }
        match radix.as_slice() {
            [both] => Ok(vec![*both, *both]),
            _ => Ok(radix),
        }
    }
}
