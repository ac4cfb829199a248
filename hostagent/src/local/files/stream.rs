//! A stream socket that a client has handed over in place of a file.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::os::fd::OwnedFd;

/// As long as nobody is looked for who has given the content up.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Its other end may be as slow as it likes.
#[derive(Debug)]
pub(super) struct Stream(OwnedFd);

impl Stream {
    pub(super) fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Some bytes; 0: there are no more. `None`: `stop` says that nobody wants any.
    pub(super) fn read(
        &self,
        bytes: &mut [u8],
        stop: impl Fn() -> bool,
    ) -> io::Result<Option<usize>> {
        loop {
            match recv(&self.0, &mut *bytes, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(Some(count)),
                Err(error) => self.wait(error, PollFlags::IN)?,
            }
            if stop() {
                return Ok(None);
            }
        }
    }

    /// All bytes. False: `stop` says that nobody wants them.
    pub(super) fn write_all(&self, mut bytes: &[u8], stop: impl Fn() -> bool) -> io::Result<bool> {
        while !bytes.is_empty() {
            match send(&self.0, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => self.wait(error, PollFlags::OUT)?,
            }
            if stop() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whoever reads finds the end, whatever copies of this end there are.
    pub(super) fn finish(&self) {
        let _ = shutdown(&self.0, Shutdown::Write);
    }

    fn wait(&self, error: Errno, ready: PollFlags) -> io::Result<()> {
        match error {
            Errno::AGAIN => match poll(&mut [PollFd::new(&self.0, ready)], Some(&LOOK)) {
                Ok(_) | Err(Errno::INTR) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Errno::INTR => Ok(()),
            error => Err(error.into()),
        }
    }
}
