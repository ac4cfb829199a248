//! Ports without interfaces: frames come in messages, and go out in messages.

use super::input::Source;
use super::messages::MessageLink;
use super::open::Opening;
use super::port::Link;
use super::switch::Switch;
use wormcast_switch_pipeline::PortId;

/// Highest number of such a port, as of those with interfaces.
pub const MESSAGE_PORT_MAX: u16 = 511;

/// What a message does to a port without an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// It is there from now on, and up. It may be there already.
    Add,
    /// It is down: backups take its place. What the program sends to it all the same leaves,
    /// as in BMv2.
    Down,
    Up,
    Remove,
}

impl Switch {
    /// Takes a frame that a message has brought to a port, which is added if it is not there,
    /// and what it leads to through the switch before it returns, as
    /// [`replay`](Self::replay) does. Frames that it leads to have its mark.
    ///
    /// # Errors
    /// A port that cannot be added.
    pub fn bring(&mut self, number: PortId, frame: &[u8], mark: u64) -> Result<(), String> {
        self.change_message_port(number, PortChange::Add)?;
        if let Some(ports) = &self.settings.message_ports {
            ports.set_mark(mark);
        }
        self.replay(number, frame);
        if let Some(ports) = &self.settings.message_ports {
            ports.set_mark(0);
        }
        Ok(())
    }

    /// Adds, removes, or changes a port without an interface.
    ///
    /// # Errors
    /// A number out of range, or of another port; a switch whose ports have interfaces; with
    /// [`PortChange::Up`] and [`PortChange::Down`], a port that is not there.
    pub fn change_message_port(
        &mut self,
        number: PortId,
        change: PortChange,
    ) -> Result<(), String> {
        let Some(ports) = &self.settings.message_ports else {
            return Err("the ports of this switch have interfaces".to_owned());
        };
        if number.0 > MESSAGE_PORT_MAX || self.settings.cpu_port == Some(number) {
            let cpu = self.settings.cpu_port;
            let but = cpu.map_or(String::new(), |cpu| {
                format!(", not {}, the CPU port", cpu.0)
            });
            return Err(format!(
                "there is no port {}; possible: 0 to {MESSAGE_PORT_MAX}{but}",
                number.0
            ));
        }
        let known = self.inputs.iter().position(|input| {
            input.number == number && matches!(input.source, Source::Replayed { .. })
        });
        match (change, known) {
            (PortChange::Add, None) => {
                let link = Link::Messages(MessageLink::new(ports.clone(), false));
                let source = Source::Replayed {
                    frames: 0,
                    bytes: 0,
                };
                let name = format!("port{}", number.0);
                let opening = Opening::new(&self.settings, 0, self.clock);
                let (port, input) = opening
                    .join(number, name, link, source)
                    .map_err(|error| error.to_string())?;
                self.place_port(port, input);
            }
            (PortChange::Up | PortChange::Down, Some(position)) => {
                self.traffic.ports[position].up = change == PortChange::Up;
                self.update_ports();
            }
            (PortChange::Up | PortChange::Down, None) => {
                return Err(format!("port {} was not added", number.0));
            }
            (PortChange::Remove, Some(position)) => self.take_port(position),
            (PortChange::Add, Some(_)) | (PortChange::Remove, None) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DetachedSwitch, MessagePorts, SENT_FRAMES_MAX, SwitchSettings};
    use std::sync::Arc;
    use wormcast_switch_pipeline::LoadedProgram;
    use wormcast_switch_pipeline::{Backups, Pipeline, PipelineConfig, Replica};

    /// A switch that sends every frame to port 1.
    fn switch(ports: Option<MessagePorts>) -> DetachedSwitch {
        switch_with(include_str!("../../tests/programs/passes.json"), ports)
    }

    fn switch_with(text: &str, ports: Option<MessagePorts>) -> DetachedSwitch {
        let settings = SwitchSettings {
            message_ports: ports,
            cpu_port: Some(PortId(64)),
            ..SwitchSettings::without_ports(7, 64)
        };
        let mut switch = DetachedSwitch::new(&settings, 0, &[]).unwrap();
        let program = Arc::new(LoadedProgram::from_json(text).unwrap());
        let pipeline = Pipeline::new(program, PipelineConfig::default());
        switch.switch.install(pipeline);
        switch
    }

    #[test]
    fn frames_that_nobody_takes_are_lost_and_counted() {
        let (ports, mut frames) = MessagePorts::new();
        let mut switch = switch(Some(ports));
        for mark in 1..=SENT_FRAMES_MAX as u64 + 10 {
            switch.switch.bring(PortId(3), &[0; 60], mark).unwrap();
        }
        let snapshot = switch.switch.snapshot();
        // Port 1 was not added: what leaves by it is counted with all such ports.
        let counts = |port| {
            let port = snapshot.ports.iter().find(|other| other.port == port);
            let port = port.unwrap();
            (port.received_frames, port.sent_frames, port.no_link)
        };
        let max = SENT_FRAMES_MAX as u64;
        assert_eq!(counts(Some(3)), (max + 10, 0, 0));
        assert_eq!(counts(None), (0, max, 10));
        for mark in 1..=max {
            let sent = frames.try_recv().unwrap();
            assert_eq!(
                (sent.mark, sent.port, sent.frame.len()),
                (mark, PortId(1), 60)
            );
        }
        assert!(frames.try_recv().is_err());
    }

    #[test]
    fn backups_take_the_place_of_a_port_that_is_down() {
        let (ports, mut frames) = MessagePorts::new();
        let mut switch = switch_with(
            include_str!("../../tests/programs/multicast.json"),
            Some(ports),
        );
        let [replica, backup] = [1, 2].map(|port| Replica {
            port: PortId(port),
            instance: 5,
        });
        let backups = Backups::from([(replica, vec![backup])]);
        let pipeline = switch.switch.pipeline().unwrap();
        pipeline
            .insert_multicast_group_with(9, &[replica], &backups)
            .unwrap();
        let mut leaves_by = |port, change| {
            let switch = &mut switch.switch;
            switch.change_message_port(PortId(port), change).unwrap();
            let frame = [0, 9, 0, 0, 0, 0, 0, 0, 0, 0];
            switch.bring(PortId(3), &frame, 0).unwrap();
            frames.try_recv().unwrap().port.0
        };
        for (port, change, leaves) in [
            (1, PortChange::Add, 1),
            (1, PortChange::Down, 2),
            (1, PortChange::Up, 1),
            (1, PortChange::Down, 2),
            (1, PortChange::Remove, 2),
            // It is up again, whatever it was before.
            (1, PortChange::Add, 1),
            (1, PortChange::Remove, 2),
            // Another port takes its place in the switch.
            (4, PortChange::Add, 2),
        ] {
            assert_eq!(leaves_by(port, change), leaves, "{change:?}");
        }
        // Both are there again, each in the place of the other.
        for (port, change) in [(2, PortChange::Add), (1, PortChange::Add)] {
            leaves_by(port, change);
        }
        for (port, change, leaves) in [
            (1, PortChange::Remove, 2),
            (2, PortChange::Remove, 1),
            (2, PortChange::Add, 2),
            (1, PortChange::Add, 1),
        ] {
            assert_eq!(leaves_by(port, change), leaves, "{port} {change:?}");
        }
    }

    #[test]
    fn a_port_that_is_gone_is_down_for_the_next_program_too() {
        let (ports, mut frames) = MessagePorts::new();
        let text = include_str!("../../tests/programs/multicast.json");
        let mut switch = switch_with(text, Some(ports));
        let switch = &mut switch.switch;
        for change in [PortChange::Add, PortChange::Remove] {
            switch.change_message_port(PortId(1), change).unwrap();
        }
        let program = Arc::new(LoadedProgram::from_json(text).unwrap());
        switch.install(Pipeline::new(program, PipelineConfig::default()));
        let [replica, backup] = [1, 2].map(|port| Replica {
            port: PortId(port),
            instance: 5,
        });
        let backups = Backups::from([(replica, vec![backup])]);
        let pipeline = switch.pipeline().unwrap();
        pipeline
            .insert_multicast_group_with(9, &[replica], &backups)
            .unwrap();
        switch
            .bring(PortId(3), &[0, 9, 0, 0, 0, 0, 0, 0, 0, 0], 0)
            .unwrap();
        assert_eq!(frames.try_recv().unwrap().port, PortId(2));
    }

    /// What stands for the ports that are not there has no number, and no state.
    #[test]
    fn port_0_is_down_too() {
        let (ports, mut frames) = MessagePorts::new();
        let text = include_str!("../../tests/programs/multicast.json");
        let mut switch = switch_with(text, Some(ports));
        let [replica, backup] = [0, 2].map(|port| Replica {
            port: PortId(port),
            instance: 5,
        });
        let backups = Backups::from([(replica, vec![backup])]);
        let switch = &mut switch.switch;
        let pipeline = switch.pipeline().unwrap();
        pipeline
            .insert_multicast_group_with(9, &[replica], &backups)
            .unwrap();
        for change in [PortChange::Add, PortChange::Down] {
            switch.change_message_port(PortId(0), change).unwrap();
        }
        switch
            .bring(PortId(3), &[0, 9, 0, 0, 0, 0, 0, 0, 0, 0], 0)
            .unwrap();
        assert_eq!(frames.try_recv().unwrap().port, PortId(2));
    }

    #[test]
    fn ports_that_cannot_be() {
        let (ports, _frames) = MessagePorts::new();
        let mut with = switch(Some(ports));
        for number in [64, 512] {
            let error = with.switch.bring(PortId(number), &[0; 60], 0).unwrap_err();
            let expected =
                format!("there is no port {number}; possible: 0 to 511, not 64, the CPU port");
            assert_eq!(error, expected);
        }
        let error = with.switch.change_message_port(PortId(5), PortChange::Up);
        assert_eq!(error.unwrap_err(), "port 5 was not added");
        let mut without = switch(None);
        assert!(without.switch.bring(PortId(5), &[0; 60], 0).is_err());
    }
}
