//! Frames over a pair of nanomsg sockets.

use std::convert::Infallible;
use std::io;

use tokio::sync::mpsc;

use super::MessageSwitch;
use super::message::PortMessage;
use crate::nanomsg::{Connection, Pair};
use wormcast_switch_dataplane::{PortChange, SentFrame, Stopped};

/// Serves whoever connects, one at a time, until the data plane ends. What leaves while
/// nobody is connected waits, as far as there is room.
///
/// # Errors
/// The data plane has ended.
pub async fn serve_pair(
    pair: Pair,
    switch: MessageSwitch,
    mut frames: mpsc::Receiver<SentFrame>,
) -> Result<Infallible, Stopped> {
    loop {
        let connection = pair.accept().await;
        let mut served = Served {
            switch: &switch,
            connection,
            frames: &mut frames,
        };
        served.run().await?;
    }
}

struct Served<'s> {
    switch: &'s MessageSwitch,
    connection: Connection,
    frames: &'s mut mpsc::Receiver<SentFrame>,
}

impl Served<'_> {
    async fn run(&mut self) -> Result<(), Stopped> {
        loop {
            let gone = tokio::select! {
                // What leaves goes first: then there is room for what the next one leads to.
                biased;
                frame = self.frames.recv() => match frame {
                    Some(frame) => self.send(frame).await,
                    None => return Err(Stopped),
                },
                message = self.connection.receive() => match message {
                    Some(message) => self.take(&message).await?,
                    None => return Ok(()),
                },
            };
            if gone.is_err() {
                return Ok(());
            }
        }
    }

    async fn send(&mut self, sent: SentFrame) -> io::Result<()> {
        let message = PortMessage::Out {
            port: sent.port.0.into(),
            frame: sent.frame,
        };
        self.connection.send(&message.to_bytes()).await
    }

    /// The inner error is one of the connection.
    async fn take(&mut self, message: &[u8]) -> Result<io::Result<()>, Stopped> {
        let switch = self.switch;
        let done = match PortMessage::from_bytes(message) {
            Ok(PortMessage::In { port, frame }) => {
                switch.bring(port, frame, 0).await?;
                return Ok(Ok(()));
            }
            Ok(PortMessage::Add { port }) => switch.change(port, PortChange::Add).await?,
            Ok(PortMessage::Remove { port }) => switch.change(port, PortChange::Remove).await?,
            Ok(PortMessage::Status { port, up: true }) => {
                switch.change(port, PortChange::Up).await?
            }
            Ok(PortMessage::Status { port, up: false }) => {
                switch.change(port, PortChange::Down).await?
            }
            Ok(PortMessage::Question { port, question }) => {
                let answer = PortMessage::NotSupported { port, question };
                return Ok(self.connection.send(&answer.to_bytes()).await);
            }
            Ok(PortMessage::Out { .. } | PortMessage::NotSupported { .. }) => {
                Err("a message that only a switch sends".to_owned())
            }
            Err(problem) => Err(problem),
        };
        switch.complain(done);
        Ok(Ok(()))
    }
}
