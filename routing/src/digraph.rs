//! Directed graphs: topological order, shortest cycle.

/// A directed graph; nodes are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Digraph {
    next: Vec<Vec<u32>>,
}

impl Digraph {
    /// One more node, and its number.
    pub fn add_node(&mut self) -> u32 {
        self.next.push(Vec::new());
        self.next.len() as u32 - 1
    }

    /// An arc between nodes that there are.
    pub fn add_arc(&mut self, from: u32, to: u32) {
        self.next[from as usize].push(to);
    }

    /// All nodes so that every arc leads onward; `None` if there is a cycle. Of nodes
    /// that are free at the same time, those that became free first come first.
    pub fn topological_order(&self) -> Option<Vec<u32>> {
        let mut into = vec![0u32; self.next.len()];
        for &to in self.next.iter().flatten() {
            into[to as usize] += 1;
        }
        let mut order: Vec<u32> = (0..into.len() as u32)
            .filter(|&node| into[node as usize] == 0)
            .collect();
        let mut done = 0;
        while let Some(&node) = order.get(done) {
            done += 1;
            for &to in &self.next[node as usize] {
                into[to as usize] -= 1;
                if into[to as usize] == 0 {
                    order.push(to);
                }
            }
        }
        (order.len() == into.len()).then_some(order)
    }

    /// A cycle with the fewest nodes, as its nodes in order; `None` if there is no cycle.
    /// Of several, one through the lowest node.
    pub fn shortest_cycle(&self) -> Option<Vec<u32>> {
        let component = self.strong_components();
        let mut best: Option<Vec<u32>> = None;
        let mut search = Search::new(self.next.len());
        for start in 0..self.next.len() as u32 {
            if component[start as usize] != NO_COMPONENT {
                let limit = best.as_ref().map_or(usize::MAX, Vec::len);
                best = search
                    .cycle_through(self, &component, start, limit)
                    .or(best);
            }
        }
        best
    }

    /// For each node the strong component it is in, or [`NO_COMPONENT`] if it is in no
    /// cycle. Tarjan's algorithm, without recursion.
    fn strong_components(&self) -> Vec<u32> {
        let nodes = self.next.len();
        let mut component = vec![NO_COMPONENT; nodes];
        let mut number = vec![u32::MAX; nodes];
        let mut low = vec![u32::MAX; nodes];
        let mut on_stack = vec![false; nodes];
        let (mut stack, mut calls) = (Vec::new(), Vec::new());
        let (mut numbers, mut components) = (0, 0);
        for start in 0..nodes as u32 {
            if number[start as usize] != u32::MAX {
                continue;
            }
            calls.push((start, 0usize));
            while let Some((node, arc)) = calls.last_mut() {
                let at = *node as usize;
                if *arc == 0 {
                    number[at] = numbers;
                    low[at] = numbers;
                    numbers += 1;
                    stack.push(*node);
                    on_stack[at] = true;
                }
                if let Some(&to) = self.next[at].get(*arc) {
                    *arc += 1;
                    if number[to as usize] == u32::MAX {
                        calls.push((to, 0));
                    } else if on_stack[to as usize] {
                        low[at] = low[at].min(number[to as usize]);
                    }
                    continue;
                }
                calls.pop();
                if let Some((above, _)) = calls.last() {
                    low[*above as usize] = low[*above as usize].min(low[at]);
                }
                if low[at] == number[at] {
                    let first = stack
                        .iter()
                        .rposition(|&node| node as usize == at)
                        .expect("on it");
                    let members = stack.split_off(first);
                    let cyclic = members.len() > 1 || self.next[at].contains(&(at as u32));
                    for member in members {
                        on_stack[member as usize] = false;
                        if cyclic {
                            component[member as usize] = components;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }
}

const NO_COMPONENT: u32 = u32::MAX;

/// Breadth-first search, with its space kept from one start to the next.
struct Search {
    from: Vec<u32>,
    queue: Vec<u32>,
}

impl Search {
    fn new(nodes: usize) -> Search {
        Search {
            from: vec![u32::MAX; nodes],
            queue: Vec::new(),
        }
    }

    /// A shortest cycle through `start`, if it has fewer nodes than `limit`.
    fn cycle_through(
        &mut self,
        graph: &Digraph,
        component: &[u32],
        start: u32,
        limit: usize,
    ) -> Option<Vec<u32>> {
        for node in self.queue.drain(..) {
            self.from[node as usize] = u32::MAX;
        }
        self.queue.push(start);
        let (mut next, mut level_end, mut length) = (0, 1, 1);
        while let Some(&node) = self.queue.get(next) {
            if next == level_end {
                level_end = self.queue.len();
                length += 1;
            }
            if length >= limit {
                return None;
            }
            next += 1;
            for &to in &graph.next[node as usize] {
                if to == start {
                    return Some(self.trace(start, node));
                }
                if component[to as usize] == component[start as usize]
                    && self.from[to as usize] == u32::MAX
                {
                    self.from[to as usize] = node;
                    self.queue.push(to);
                }
            }
        }
        None
    }

    fn trace(&self, start: u32, last: u32) -> Vec<u32> {
        let mut cycle = vec![last];
        let mut node = last;
        while node != start {
            node = self.from[node as usize];
            cycle.push(node);
        }
        cycle.reverse();
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::Digraph;

    fn graph(nodes: u32, arcs: &[(u32, u32)]) -> Digraph {
        let mut graph = Digraph::default();
        for _ in 0..nodes {
            graph.add_node();
        }
        for &(from, to) in arcs {
            graph.add_arc(from, to);
        }
        graph
    }

    #[test]
    fn order_exists_exactly_where_no_cycle_does() {
        // All directed graphs of four nodes without arcs to oneself.
        let all: Vec<(u32, u32)> = (0..4)
            .flat_map(|a| (0..4).filter(move |b| a != *b).map(move |b| (a, b)))
            .collect();
        for chosen in 0u32..1 << all.len() {
            let arcs: Vec<(u32, u32)> = all
                .iter()
                .enumerate()
                .filter(|(bit, _)| chosen >> bit & 1 == 1)
                .map(|(_, arc)| *arc)
                .collect();
            let graph = graph(4, &arcs);
            match (graph.topological_order(), graph.shortest_cycle()) {
                (Some(order), None) => {
                    let place = |node| order.iter().position(|at| *at == node).unwrap();
                    assert!(arcs.iter().all(|&(from, to)| place(from) < place(to)));
                }
                (None, Some(cycle)) => check_cycle(&arcs, &cycle),
                both => panic!("{arcs:?}: {both:?}"),
            }
        }
    }

    fn check_cycle(arcs: &[(u32, u32)], cycle: &[u32]) {
        for (place, &from) in cycle.iter().enumerate() {
            assert!(arcs.contains(&(from, cycle[(place + 1) % cycle.len()])));
        }
        // None is shorter: the powers of the adjacency matrix have no trace before.
        let mut reach: Vec<(u32, u32)> = arcs.to_vec();
        for _ in 1..cycle.len() {
            assert!(
                reach.iter().all(|(from, to)| from != to),
                "{arcs:?}: {cycle:?}"
            );
            reach = reach
                .iter()
                .flat_map(|&(from, over)| {
                    arcs.iter()
                        .filter(move |arc| arc.0 == over)
                        .map(move |arc| (from, arc.1))
                })
                .collect();
        }
    }

    #[test]
    fn an_arc_to_oneself_is_a_cycle() {
        assert_eq!(graph(2, &[(0, 1), (1, 1)]).shortest_cycle(), Some(vec![1]));
        assert_eq!(graph(2, &[(0, 1), (1, 1)]).topological_order(), None);
    }
}
