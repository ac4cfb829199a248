//! Changes to the ports of a running switch, and what they are.

use super::input::{Input, Source};
use super::open::Opening;
use super::port::{Link, Port};
use super::port_set::PortSet;
use super::settings::{Attachment, PortSettings};
use super::switch::Switch;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::Pace;

/// A port as its switch sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    pub number: PortId,
    /// Name of the interface, of the captures, or of the port itself on a link in memory.
    pub interface: String,
    /// Whether there is somewhere for frames to go.
    pub up: bool,
}

/// Egress queues that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    pub port: Option<PortId>,
    pub priority: Option<u8>,
}

impl Switch {
    /// Microseconds since the switch started.
    pub fn elapsed_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Microseconds since the start of 1970.
    pub fn unix_us(&self) -> u64 {
        self.clock.unix_us(self.clock.now_us())
    }

    /// Ports that lead out of the switch, by number.
    pub fn port_statuses(&self) -> Vec<PortStatus> {
        let ports = self.inputs.iter().zip(&self.traffic.ports);
        let statuses = ports.filter_map(|(input, port)| {
            let interface = match &input.source {
                Source::Nothing => return None,
                Source::Link(_) => self.settings.port_name(input.number),
                Source::Interface { .. } | Source::Replayed { .. } => input.name.clone(),
            };
            Some(PortStatus {
                number: input.number,
                interface,
                up: port.state().up,
            })
        });
        let mut statuses: Vec<PortStatus> = statuses.collect();
        statuses.sort_by_key(|status| status.number);
        statuses
    }

    /// The same, with interfaces as they are now rather than when they were last looked
    /// after.
    pub fn look_at_ports(&mut self) -> Vec<PortStatus> {
        for (input, port) in self.inputs.iter().zip(&mut self.traffic.ports) {
            if matches!(input.source, Source::Interface { .. }) {
                let found = self.asker.find(&input.name);
                port.saw(found.map(|(_, look)| look).unwrap_or_default());
            }
        }
        self.update_ports();
        self.port_statuses()
    }

    /// Attaches an interface to a port that has none. The port has the settings of the
    /// others, but no seed of its own for its impairments.
    ///
    /// # Errors
    /// A port or an interface that is in use, an interface that cannot be opened; with
    /// lossless priorities, whose buffers are shared out at the start.
    pub fn add_port(&mut self, number: PortId, interface: &str) -> Result<(), String> {
        if self.traffic.lossless.is_some() {
            return Err("with lossless priorities the ports are those of the start".to_owned());
        }
        if self.settings.cpu_port == Some(number) {
            return Err(format!("port {} is the CPU port", number.0));
        }
        for status in self.port_statuses() {
            if status.number == number || status.interface == interface {
                return Err(format!(
                    "port {} is attached to {}",
                    status.number.0, status.interface
                ));
            }
        }
        let settings = PortSettings {
            number,
            attachment: Attachment::Interface(interface.to_owned()),
        };
        let opening = Opening::new(&self.settings, 0, self.clock);
        let (link, source) = opening
            .attach(&settings)
            .map_err(|error| error.to_string())?;
        let (port, input) = opening
            .join(number, interface.to_owned(), link, source)
            .map_err(|error| error.to_string())?;
        self.place_port(port, input);
        self.look_at_ports();
        Ok(())
    }

    /// Puts a new port in.
    pub(super) fn place_port(&mut self, port: Port, input: Input) {
        // The place of a port that was removed, else a new one behind the others: places
        // of links must not change.
        let free = |input: &Input| matches!(input.source, Source::Nothing);
        match self.inputs.iter().position(free) {
            Some(position) => {
                self.inputs[position] = input;
                self.traffic.ports[position] = port;
            }
            None => {
                self.traffic.ports.insert(self.inputs.len(), port);
                self.inputs.push(input);
            }
        }
        self.ports_changed();
        self.update_ports();
    }

    /// Detaches the interface of a port; packets that wait for it are dropped.
    ///
    /// # Errors
    /// A port without an interface; with lossless priorities.
    pub fn remove_port(&mut self, number: PortId) -> Result<(), String> {
        if self.traffic.lossless.is_some() {
            return Err("with lossless priorities the ports are those of the start".to_owned());
        }
        let position = self.inputs.iter().position(|input| {
            input.number == number && matches!(input.source, Source::Interface { .. })
        });
        let Some(position) = position else {
            return Err(format!("port {} has no interface", number.0));
        };
        self.take_port(position);
        Ok(())
    }

    /// Takes a port out; packets that wait for it are dropped.
    pub(super) fn take_port(&mut self, position: usize) {
        let input = &mut self.inputs[position];
        input.source = Source::Nothing;
        input.name.clear();
        if let Some(mut capture) = input.capture.take() {
            // A full disk must not stop the switch; the capture ends short.
            let _ = capture.flush();
        }
        let port = &mut self.traffic.ports[position];
        port.link = Link::Unattached;
        port.impairment = None;
        if let Some(mut capture) = port.capture.take() {
            let _ = capture.flush();
        }
        while let Some(waiting) = self.traffic.ports[position].queue.pop() {
            self.traffic.release(waiting.item.hold);
            self.traffic.ports[position].no_link += 1;
        }
        self.ports_changed();
        self.update_ports();
    }

    fn ports_changed(&mut self) {
        self.traffic.ports_changed();
        self.ready = PortSet::new(self.inputs.len());
        (0..self.inputs.len()).for_each(|position| self.ready.insert(position));
        self.inputs_changed = true;
    }

    /// Positions of the ports that queues belong to.
    fn ports_of(&self, which: Queues) -> Result<Vec<usize>, String> {
        let priorities = self.settings.priorities;
        if let Some(priority) = which.priority
            && priority >= priorities
        {
            return Err(format!(
                "priority {priority}; valid: 0 to {}",
                priorities.saturating_sub(1)
            ));
        }
        let Some(number) = which.port else {
            return Ok((0..self.traffic.ports.len()).collect());
        };
        let position = self.traffic.position(number);
        if position + 1 == self.traffic.ports.len() {
            return Err(format!("there is no port {}", number.0));
        }
        Ok(vec![position])
    }

    /// Bounds egress queues anew, in packets; what is in them stays. Queues of lossless
    /// priorities have no bound.
    ///
    /// # Errors
    /// A port or a priority that is not there.
    pub fn set_queue_depth(&mut self, which: Queues, frames: usize) -> Result<(), String> {
        for position in self.ports_of(which)? {
            let queue = &mut self.traffic.ports[position].queue;
            queue.set_frames_max(which.priority, frames);
        }
        Ok(())
    }

    /// Sets the packet rate of egress queues; 0 sets none.
    ///
    /// # Errors
    /// A port or a priority that is not there.
    pub fn set_queue_rate(&mut self, which: Queues, frames_a_second: u64) -> Result<(), String> {
        for position in self.ports_of(which)? {
            let port = &mut self.traffic.ports[position];
            let mut pace = port
                .pace
                .take()
                .unwrap_or_else(|| Box::new(Pace::default()));
            pace.set(which.priority, frames_a_second);
            port.pace = (!pace.is_empty()).then_some(pace);
            self.traffic.active.insert(position);
        }
        Ok(())
    }
}
