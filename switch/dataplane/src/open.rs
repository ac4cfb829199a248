//! Opening the ports of one switch.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use super::clock::Clock;
use super::input::{Input, Source};
use super::layout::LinkPort;
use super::messages::MessageLink;
use super::port::{Capture, Link, Port};
use super::settings::{Attachment, PortSettings, SwitchSettings};
use super::start_error::StartError;
use wormcast_switch_flow::PrioritySet;
use wormcast_switch_flow::headroom::WIRE_OVERHEAD_BYTES;
use wormcast_switch_flow::{BitRate, TokenBucket};
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::{
    EgressQueue, Impairment, Interface, InterfaceError, PcapWriter, ReceiveMode, ReceiveRing,
    TransmitQueue,
};

/// Spreads the seeds of switches: 2^64 divided by the golden ratio. The switch with device
/// id 0 has the seed itself.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Ethernet header and VLAN tag.
const FRAMING_BYTES: usize = 18;

/// Most ports that are opened at a time.
const OPENED_AT_ONCE_MAX: usize = 64;

/// Both ends of what leads out of the process.
pub(super) type Attached = (Link, Source);

/// Opens what leads out of the process, of each switch in order, many at a time: for each ring the kernel
/// waits until no processor uses the socket as it was, and all who wait at a time wait once.
pub(super) fn attach_all(openings: &[Opening<'_>]) -> Result<Vec<Vec<Attached>>, StartError> {
    let ports = |opening| move |port| (opening, port);
    let ports = openings
        .iter()
        .flat_map(|opening| opening.switch.ports.iter().map(ports(opening)));
    let ports: Vec<(&Opening<'_>, &PortSettings)> = ports.collect();
    let each = ports.len().div_ceil(OPENED_AT_ONCE_MAX).max(1);
    let attach = |part: &[(&Opening<'_>, &PortSettings)]| -> Vec<_> {
        let attached = part.iter().map(|(opening, port)| opening.attach(port));
        attached.collect()
    };
    let mut attached = thread::scope(|scope| {
        let begin = |part| thread::Builder::new().spawn_scoped(scope, move || attach(part));
        let threads: Result<Vec<_>, _> = ports.chunks(each).map(begin).collect();
        let threads = threads.map_err(|error| StartError::System {
            step: "starting a thread",
            error,
        })?;
        let ends = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ends.collect::<Result<Vec<_>, _>>()
    })?
    .into_iter();
    let of_each = openings.iter().map(|opening| {
        let ports = opening.switch.ports.len();
        attached.by_ref().take(ports).collect()
    });
    Ok(of_each.collect())
}

/// A switch whose ports are to be opened.
pub(super) struct Opening<'a> {
    switch: &'a SwitchSettings,
    seed: u64,
    clock: Clock,
}

impl<'a> Opening<'a> {
    /// `seed`: that of the whole data plane.
    pub(super) fn new(switch: &'a SwitchSettings, seed: u64, clock: Clock) -> Self {
        Self {
            switch,
            seed: seed.wrapping_add(switch.device_id.wrapping_mul(SEED_STEP)),
            clock,
        }
    }

    /// Both halves of the ports: those that lead out of the process and those of links, in
    /// order; among the sending halves follow the one to the controller, if there is one,
    /// and the one that stands for all others.
    pub(super) fn open(
        &self,
        attached: Vec<Attached>,
        links: Vec<LinkPort>,
    ) -> Result<(Vec<Port>, Vec<Input>), StartError> {
        let mut ports = Vec::new();
        let mut inputs = Vec::new();
        for (settings, (link, source)) in self.switch.ports.iter().zip(attached) {
            let name = settings.attachment.name().to_owned();
            let (port, input) = self.join(settings.number, name, link, source)?;
            ports.push(port);
            inputs.push(input);
        }
        for end in links {
            let link = Link::Memory(end.output);
            let source = Source::Link(end.input);
            let (port, input) = self.join(end.port, end.peer, link, source)?;
            ports.push(port);
            inputs.push(input);
        }
        if let Some(number) = self.switch.cpu_port {
            ports.push(Port::new(number, Link::Cpu, self.queue()));
        }
        let others = match &self.switch.message_ports {
            Some(ports) => Link::Messages(MessageLink::new(ports.clone(), true)),
            None => Link::Unattached,
        };
        ports.push(Port::new(PortId(0), others, self.queue()));
        Ok((ports, inputs))
    }

    /// Both ends of what leads out of the process, one after the other.
    pub(super) fn attach_own(&self) -> Result<Vec<Attached>, StartError> {
        let ports = self.switch.ports.iter();
        ports.map(|port| self.attach(port)).collect()
    }

    /// Both ends of what leads out of the process.
    pub(super) fn attach(&self, port: &PortSettings) -> Result<Attached, StartError> {
        match &port.attachment {
            Attachment::Interface(name) => {
                let interface = Interface::find(name)?;
                let link = Link::Interface(TransmitQueue::open(&interface)?);
                let source = Source::Interface {
                    index: interface.index(),
                    ring: Some(self.ring(&interface, port.number)?),
                };
                Ok((link, source))
            }
            Attachment::Files(name) => {
                let file = PathBuf::from(format!("{name}_out.pcap"));
                let file = PcapWriter::create(&file).map_err(|error| InterfaceError::Open {
                    name: name.clone(),
                    step: "creating the file that frames are written to",
                    error,
                })?;
                let source = Source::Replayed {
                    frames: 0,
                    bytes: 0,
                };
                Ok((Link::File(file), source))
            }
        }
    }

    fn queue<T>(&self) -> EgressQueue<T> {
        let queueing = &self.switch.queueing;
        let lossless = queueing.lossless.as_ref();
        EgressQueue::new(self.switch.priorities, self.switch.queue_frames)
            .scheduled(queueing.scheduler)
            .lossless(lossless.map_or(PrioritySet::NONE, |settings| settings.priorities))
    }

    /// How fast a port sends. A lossless link goes by its rate on the wire; a slower port
    /// is slower.
    fn bucket(&self, number: PortId, given: Option<BitRate>) -> Option<TokenBucket> {
        let now_us = self.clock.now_us();
        let Some(lossless) = &self.switch.queueing.lossless else {
            return given.map(|rate| TokenBucket::new(rate, now_us));
        };
        let link = lossless.link_of(number.0).rate;
        let rate = given.map_or(link, |rate| rate.min(link));
        Some(TokenBucket::new(rate, now_us).with_overhead(WIRE_OVERHEAD_BYTES as usize))
    }

    /// Opens a ring that has room for what may come before the switch looks.
    fn ring(&self, interface: &Interface, number: PortId) -> Result<ReceiveRing, StartError> {
        let mode = self.switch.receive;
        let Some(lossless) = &self.switch.queueing.lossless else {
            return Ok(self.switch.open_ring(interface, number)?);
        };
        if mode != ReceiveMode::Slots {
            let text = "--lossless needs --receive v2: a pause frame must not wait for a block";
            return Err(StartError::Settings(text.to_owned()));
        }
        let lossless_frame = lossless.frame_bytes_max as usize;
        let needed = lossless
            .plan_port(number.0)
            .map_err(|error| StartError::Settings(error.to_string()))?;
        let frames = usize::try_from(needed.ring_frames).unwrap_or(usize::MAX);
        let ring = self.switch.open_ring(interface, number)?;
        let longest = ring.mtu() + FRAMING_BYTES;
        if longest > lossless_frame {
            return Err(StartError::Settings(format!(
                "port {} ({}): its MTU of {} allows frames of {longest} bytes, but --frame-max is \
                 {lossless_frame}: give --frame-max {longest}, or the interface a smaller MTU",
                number.0,
                interface.name(),
                ring.mtu(),
            )));
        }
        if ring.slots() < frames {
            return Err(StartError::Settings(format!(
                "port {} ({}): within a response time of {} us {} frames may arrive at {} bit/s, \
                 but a receive ring has room for at most {}: give a shorter --response-time or a \
                 lower --link-rate",
                number.0,
                interface.name(),
                needed.response_us,
                frames,
                needed.link.rate.bits_per_s(),
                ring.slots()
            )));
        }
        Ok(ring)
    }

    /// Both halves of a port, with what stands between them and the link.
    pub(super) fn join(
        &self,
        number: PortId,
        name: String,
        link: Link,
        source: Source,
    ) -> Result<(Port, Input), InterfaceError> {
        let mut port = Port::new(number, link, self.queue());
        let impairment = self.switch.impairments.settings(number.0);
        let rate = impairment.rate.or(self.switch.port_rate);
        port.bucket = self.bucket(number, rate);
        port.impairment = (!impairment.leaves_frames_alone())
            .then(|| Impairment::new(impairment, self.seed, number.0));
        // What a link carries has a port of this process at its other end; the port itself
        // names the file.
        let file = match &source {
            Source::Interface { .. } => name.clone(),
            _ => self.switch.port_name(number),
        };
        port.capture = self.capture(&file, "out")?;
        let input = Input {
            number,
            name,
            source,
            capture: self.capture(&file, "in")?,
            blocked_until_us: 0,
            thread: 0,
        };
        Ok((port, input))
    }

    fn capture(&self, name: &str, direction: &str) -> Result<Option<Capture>, InterfaceError> {
        let Some(directory) = &self.switch.capture_directory else {
            return Ok(None);
        };
        create(directory, name, direction)
            .map(Some)
            .map_err(|error| InterfaceError::Open {
                name: name.to_owned(),
                step: "creating a capture file",
                error,
            })
    }
}

fn create(directory: &Path, name: &str, direction: &str) -> std::io::Result<Capture> {
    PcapWriter::create(&directory.join(format!("{name}_{direction}.pcap")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    fn switch(device_id: u64, attachments: impl IntoIterator<Item = Attachment>) -> SwitchSettings {
        let ports = attachments.into_iter().zip(0..);
        let ports = ports.map(|(attachment, number)| PortSettings {
            number: PortId(number),
            attachment,
        });
        SwitchSettings {
            ports: ports.collect(),
            ..SwitchSettings::without_ports(device_id, 16)
        }
    }

    fn attach(switches: &[SwitchSettings]) -> Result<Vec<usize>, StartError> {
        let opening = |switch| Opening::new(switch, 1, Clock::start());
        let openings: Vec<_> = switches.iter().map(opening).collect();
        Ok(attach_all(&openings)?.iter().map(Vec::len).collect())
    }

    /// A pipe is opened once its reader is there, and the readers come in the opposite order.
    #[test]
    fn no_port_waits_for_another_that_opens_slowly() {
        let directory = tempfile::tempdir().unwrap();
        let name = |number: u64| {
            directory
                .path()
                .join(number.to_string())
                .display()
                .to_string()
        };
        let pipe = |number| format!("{}_out.pcap", name(number));
        for number in 0..12 {
            assert!(
                Command::new("mkfifo")
                    .arg(pipe(number))
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let files = |ports: std::ops::Range<u64>| ports.map(|port| Attachment::Files(name(port)));
        let switches = [
            switch(0, files(0..5)),
            switch(1, []),
            switch(2, files(5..12)),
        ];
        let (sender, attached) = mpsc::channel();
        thread::spawn(move || sender.send(attach(&switches).unwrap()));
        let pipes: Vec<_> = (0..12).rev().map(pipe).collect();
        let (opened, readers) = mpsc::channel();
        thread::spawn(move || {
            let open = |path| File::open(path).unwrap();
            opened.send(pipes.into_iter().map(open).collect::<Vec<_>>())
        });
        let limit = Duration::from_secs(600);
        assert_eq!(attached.recv_timeout(limit).unwrap(), [5, 0, 7]);
        readers.recv_timeout(limit).unwrap();
    }

    #[test]
    fn of_several_interfaces_that_are_not_there_the_first_is_named() {
        let missing = |name: &str| Attachment::Interface(name.to_owned());
        let of_each = ["none-b", "none-a", "none-c"].map(|name| vec![missing(name); 30]);
        let switches: Vec<_> = (0..)
            .zip(of_each)
            .map(|(id, ports)| switch(id, ports))
            .collect();
        let error = attach(&switches).unwrap_err().to_string();
        assert!(error.contains("`none-b`"), "{error}");
    }
}
