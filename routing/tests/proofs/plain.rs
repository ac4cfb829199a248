//! Distances and directions once more, from the definitions, on plain matrices.

use std::collections::VecDeque;

use wormcast_routing::topology::Topology;
use wormcast_wire::SwitchId;

/// What a port leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Nothing,
    Switch(usize),
    Host(u16),
}

/// A network whose ids are dense, so that an id is an index.
pub struct Plain {
    pub switches: usize,
    /// What each port of each switch leads to.
    pub ends: Vec<Vec<End>>,
    /// Switch and port of each host.
    pub hosts: Vec<(usize, u8)>,
    pub neighbours: Vec<Vec<usize>>,
}

/// Shortest lengths in links between all switches; `NEVER` where there is no way.
pub type Lengths = Vec<Vec<u32>>;
pub const NEVER: u32 = u32::MAX;

impl Plain {
    pub fn new(topology: &Topology) -> Plain {
        let switches = topology.switches().len();
        let mut plain = Plain {
            switches,
            ends: vec![vec![End::Nothing; 256]; switches],
            hosts: Vec::new(),
            neighbours: vec![Vec::new(); switches],
        };
        for (index, host) in topology.hosts().iter().enumerate() {
            assert_eq!(usize::from(host.id.0), index, "dense ids");
            let at = usize::from(host.switch.0);
            plain.hosts.push((at, host.port.get()));
            plain.ends[at][usize::from(host.port.get())] = End::Host(host.id.0);
        }
        for link in topology.links() {
            let (a, b) = (usize::from(link.a.0), usize::from(link.b.0));
            plain.ends[a][usize::from(link.a_port.get())] = End::Switch(b);
            plain.ends[b][usize::from(link.b_port.get())] = End::Switch(a);
            plain.neighbours[a].push(b);
            plain.neighbours[b].push(a);
        }
        plain
    }

    pub fn levels(&self, root: SwitchId) -> Vec<u32> {
        self.lengths_from(usize::from(root.0))
    }

    pub fn lengths_from(&self, from: usize) -> Vec<u32> {
        let mut length = vec![NEVER; self.switches];
        length[from] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for &to in &self.neighbours[at] {
                if length[to] == NEVER {
                    length[to] = length[at] + 1;
                    queue.push_back(to);
                }
            }
        }
        length
    }

    /// Least cost between all switches of paths that are up\*/down\* between cuts: a link costs
    /// 1, a cut `cut`, `None` if cuts are not to be had.
    pub fn costs(&self, levels: &[u32], cut: Option<u32>) -> Lengths {
        (0..self.switches)
            .map(|from| self.costs_from(levels, (1, cut), from))
            .collect()
    }

    /// As [`Plain::costs`], a link costing `link`.
    pub fn weighed(&self, levels: &[u32], link: u32, cut: u32) -> Lengths {
        (0..self.switches)
            .map(|from| self.costs_from(levels, (link, Some(cut)), from))
            .collect()
    }

    fn costs_from(&self, levels: &[u32], (link, cut): (u32, Option<u32>), from: usize) -> Vec<u32> {
        // Bellman-Ford over (switch, has gone down): slow, but there is nothing to get wrong.
        let mut cost = vec![[NEVER; 2]; self.switches];
        cost[from][0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..self.switches {
                for down in [0, 1] {
                    let here = cost[at][down];
                    if here == NEVER {
                        continue;
                    }
                    if let (1, Some(cut)) = (down, cut)
                        && here + cut < cost[at][0]
                    {
                        cost[at][0] = here + cut;
                        changed = true;
                    }
                    for &to in &self.neighbours[at] {
                        let after = usize::from(!is_up(levels, at, to));
                        if (down == 0 || after == 1) && here + link < cost[to][after] {
                            cost[to][after] = here + link;
                            changed = true;
                        }
                    }
                }
            }
        }
        cost.iter().map(|[up, down]| *up.min(down)).collect()
    }
}

/// Whether a link leads up: to a lower level, or at one level to the lower id (WORM §2).
pub fn is_up(levels: &[u32], from: usize, to: usize) -> bool {
    (levels[to], to) < (levels[from], from)
}
