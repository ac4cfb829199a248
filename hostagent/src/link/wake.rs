//! Sleeping until there is something to do: a frame, a command, or a time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// Frames wait, or the socket has an error to report.
    pub readable: bool,
    /// Frames can be sent again.
    pub writable: bool,
    /// Another thread called [`WakeHandle::wake`].
    pub woken: bool,
}

/// The sleeping side; one thread owns it.
pub struct Waker {
    event: Arc<Event>,
}

/// Wakes the sleeper from any thread. Cheap while the sleeper is awake.
#[derive(Clone)]
pub struct WakeHandle {
    event: Arc<Event>,
}

struct Event {
    fd: OwnedFd,
    /// Set by a waker, cleared by the sleeper before it looks for work: spares the system
    /// call when a wake is on its way already.
    raised: AtomicBool,
}

impl Waker {
    /// Makes the pair; handles come from [`handle`](Self::handle).
    ///
    /// # Errors
    /// When the kernel has no file descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain system call; the result is checked before it becomes an OwnedFd.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: fd is open and owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self {
            event: Arc::new(Event {
                fd,
                raised: AtomicBool::new(false),
            }),
        })
    }

    /// A handle for another thread.
    pub fn handle(&self) -> WakeHandle {
        WakeHandle {
            event: Arc::clone(&self.event),
        }
    }

    /// Takes the wakes so far: who waits for the descriptor elsewhere calls this before it
    /// looks for work.
    pub fn clear(&self) {
        self.event.clear();
    }

    /// Sleeps until the socket is readable (if `socket` is given and `read`), writable (if
    /// `write`), a handle wakes, or `timeout` is over (`None`: no limit).
    ///
    /// # Errors
    /// Only for a bug of ours: a bad descriptor.
    pub fn wait(
        &self,
        socket: Option<BorrowedFd<'_>>,
        read: bool,
        write: bool,
        timeout: Option<Duration>,
    ) -> io::Result<Ready> {
        let mut events = 0;
        if read {
            events |= libc::POLLIN;
        }
        if write {
            events |= libc::POLLOUT;
        }
        let socket_fd = match socket {
            // poll() ignores negative descriptors; an error flag would else end every wait.
            Some(fd) if events != 0 => fd.as_raw_fd(),
            _ => -1,
        };
        let mut polled = [
            libc::pollfd {
                fd: self.event.fd.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            },
            libc::pollfd {
                fd: socket_fd,
                events,
                revents: 0,
            },
        ];
        let limit = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
        });
        let limit_pointer = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: both pollfds and the timespec outlive the call; no signal mask is given.
        let count = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, limit_pointer, std::ptr::null()) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(Ready::default())
            } else {
                Err(error)
            };
        }
        let woken = polled[0].revents != 0;
        if woken {
            self.clear();
        }
        let socket_events = polled[1].revents;
        let trouble = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        Ok(Ready {
            readable: socket_events & (libc::POLLIN | trouble) != 0,
            writable: socket_events & (libc::POLLOUT | trouble) != 0,
            woken,
        })
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.fd.as_fd()
    }
}

impl WakeHandle {
    /// Ends the sleeper's present or next wait.
    pub fn wake(&self) {
        if self.event.raised.swap(true, Ordering::AcqRel) {
            return;
        }
        let one = 1_u64;
        // SAFETY: writes the 8 bytes an eventfd takes, from a live u64. It cannot fail but by
        // overflow, and then the sleeper is being woken anyway.
        unsafe {
            libc::write(
                self.event.fd.as_fd().as_raw_fd(),
                (&raw const one).cast(),
                8,
            );
        }
    }
}

impl Event {
    fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: reads the 8 bytes an eventfd gives into a live u64.
        unsafe {
            libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), 8);
        }
        // After the read: a wake between the two writes again, so none is lost.
        self.raised.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_wake_from_another_thread_ends_the_wait_and_is_taken_once() {
        let waker = Waker::new().unwrap();
        let handle = waker.handle();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            handle.wake();
            handle.wake();
        });
        let ready = waker
            .wait(None, true, false, Some(Duration::from_secs(10)))
            .unwrap();
        assert!(ready.woken && !ready.readable && !ready.writable);
        thread.join().unwrap();
        let _ = waker.wait(None, true, false, Some(Duration::ZERO)).unwrap();
        let again = waker.wait(None, true, false, Some(Duration::ZERO)).unwrap();
        assert_eq!(again, Ready::default());
        waker.handle().wake();
        assert!(
            waker
                .wait(None, true, false, Some(Duration::ZERO))
                .unwrap()
                .woken
        );
    }

    #[test]
    fn waits_end_close_to_their_time() {
        let waker = Waker::new().unwrap();
        let start = Instant::now();
        let ready = waker
            .wait(None, true, false, Some(Duration::from_micros(700)))
            .unwrap();
        assert_eq!(ready, Ready::default());
        assert!(start.elapsed() >= Duration::from_micros(700));
    }
}
