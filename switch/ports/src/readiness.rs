//! Waiting for frames, for room to send, or for another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Ends a [`wait`] from another thread.
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A new one, not woken.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; a result that is not negative is a new descriptor we own.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self {
                event: OwnedFd::from_raw_fd(fd),
            })
        }
    }

    /// Ends the wait that goes on, or else the next one.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: the pointer is to the eight bytes an eventfd takes. It fails only when
        // it has been woken 2^64 - 2 times already, which is as good.
        unsafe {
            libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len());
        }
    }

    /// Forgets that it was woken.
    pub fn reset(&self) {
        let mut count = [0u8; 8];
        // SAFETY: the pointer is to the eight bytes an eventfd gives.
        unsafe {
            libc::read(
                self.event.as_raw_fd(),
                count.as_mut_ptr().cast(),
                count.len(),
            );
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// What to wait for.
#[derive(Clone, Copy, Debug)]
pub enum Interest<'a> {
    Readable(BorrowedFd<'a>),
    Writable(BorrowedFd<'a>),
}

/// Why a [`wait`] ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// At least one of them is ready.
    pub ready: bool,
    /// At least one of them has an error.
    pub error: bool,
    /// The first one is ready.
    pub first: bool,
}

/// Waits until one of them is ready or has an error, or `timeout_us` microseconds have
/// passed (`None`: for ever). A signal ends the wait too.
pub fn wait(interests: &[Interest<'_>], timeout_us: Option<u64>) -> Woken {
    let mut polls: Vec<libc::pollfd> = interests
        .iter()
        .map(|interest| {
            let (fd, events) = match interest {
                Interest::Readable(fd) => (fd, libc::POLLIN),
                Interest::Writable(fd) => (fd, libc::POLLOUT),
            };
            libc::pollfd {
                fd: fd.as_raw_fd(),
                events,
                revents: 0,
            }
        })
        .collect();
    let timeout = timeout_us.map(|us| libc::timespec {
        tv_sec: (us / 1_000_000) as libc::time_t,
        tv_nsec: (us % 1_000_000 * 1_000) as libc::c_long,
    });
    let timeout = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the descriptors are borrowed for the call; both pointers are to values that
    // outlive it, the signal mask may be null.
    let ready = unsafe {
        libc::ppoll(
            polls.as_mut_ptr(),
            polls.len() as libc::nfds_t,
            timeout,
            std::ptr::null(),
        )
    };
    let bad = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
    Woken {
        ready: ready > 0,
        error: ready > 0 && polls.iter().any(|poll| poll.revents & bad != 0),
        first: ready > 0 && polls.first().is_some_and(|poll| poll.revents != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_wake_before_the_wait_is_not_lost() {
        let waker = Waker::new().unwrap();
        waker.wake();
        assert!(wait(&[Interest::Readable(waker.as_fd())], None).ready);
        waker.reset();
        let start = Instant::now();
        let woken = wait(&[Interest::Readable(waker.as_fd())], Some(2_000));
        assert_eq!(woken, Woken::default());
        assert!(start.elapsed() >= Duration::from_micros(2_000));
    }

    #[test]
    fn another_thread_ends_the_wait() {
        let waker = Waker::new().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            wait(&[Interest::Readable(waker.as_fd())], None);
        });
    }
}
