//! Sleeping for many sockets at once.

use super::{Ready, Waker};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Descriptors reported by one wait at most; the others follow with the next.
const REPORTED_MAX: usize = 256;

/// An epoll set with a socket and an event for each place.
///
/// A socket is reported once and then left alone until it is asked for again: whoever gathers
/// frames for some time would be woken by each of them otherwise.
pub struct Poller {
    epoll: OwnedFd,
    armed: Vec<Armed>,
    reported: Vec<libc::epoll_event>,
}

/// What the kernel was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Armed {
    socket: RawFd,
    events: i32,
}

const UNARMED: Armed = Armed {
    socket: -1,
    events: 0,
};

impl Poller {
    /// For places 0 to `places` - 1.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(places: usize) -> io::Result<Self> {
        // SAFETY: plain system call; the result is checked before it becomes an OwnedFd.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: fd is open and owned by nobody else.
            epoll: unsafe { OwnedFd::from_raw_fd(fd) },
            armed: vec![UNARMED; places],
            reported: vec![libc::epoll_event { events: 0, u64: 0 }; REPORTED_MAX],
        })
    }

    /// Has the event of a place end waits from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_event(&self, place: usize, waker: &Waker) -> io::Result<()> {
        let key = place as u64 * 2 + 1;
        self.control(
            libc::EPOLL_CTL_ADD,
            waker.as_fd().as_raw_fd(),
            libc::EPOLLIN,
            key,
        )
    }

    /// What is wanted of a place's socket from now on, until it is reported once.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch(
        &mut self,
        place: usize,
        socket: Option<BorrowedFd<'_>>,
        read: bool,
        write: bool,
    ) -> io::Result<()> {
        let wanted = Armed {
            socket: socket.map_or(-1, |socket| socket.as_raw_fd()),
            events: if read { libc::EPOLLIN } else { 0 } | if write { libc::EPOLLOUT } else { 0 },
        };
        let armed = self.armed[place];
        let known = armed.socket == wanted.socket;
        // Errors are reported whatever is asked for: an unwanted report costs a turn, and disarms.
        if wanted.socket < 0 || (known && (armed.events == wanted.events || wanted.events == 0)) {
            if wanted.socket < 0 {
                self.armed[place] = UNARMED;
            }
            return Ok(());
        }
        let how = if known {
            libc::EPOLL_CTL_MOD
        } else {
            libc::EPOLL_CTL_ADD
        };
        let events = wanted.events | libc::EPOLLONESHOT;
        self.control(how, wanted.socket, events, place as u64 * 2)?;
        self.armed[place] = wanted;
        Ok(())
    }

    /// Sleeps until something that is watched is ready or `timeout` is over, and tells of each.
    ///
    /// # Errors
    /// Only for a bug of ours: a bad descriptor.
    pub fn wait(
        &mut self,
        timeout: Duration,
        mut tell: impl FnMut(usize, Ready),
    ) -> io::Result<()> {
        let mut set = libc::pollfd {
            fd: self.epoll.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let limit = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
        };
        // epoll_wait() knows milliseconds only.
        // SAFETY: the pollfd and the timespec outlive the call; no signal mask is given.
        let slept = unsafe { libc::ppoll(&raw mut set, 1, &raw const limit, std::ptr::null()) };
        if slept <= 0 {
            return interrupted(slept);
        }
        // SAFETY: the array has REPORTED_MAX entries and outlives the call.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.reported.as_mut_ptr(),
                REPORTED_MAX as i32,
                0,
            )
        };
        if count < 0 {
            return interrupted(count);
        }
        for event in &self.reported[..count.unsigned_abs() as usize] {
            let (key, events) = (event.u64, event.events.cast_signed());
            let place = (key / 2) as usize;
            if key % 2 == 1 {
                let woken = Ready {
                    woken: true,
                    ..Ready::default()
                };
                tell(place, woken);
                continue;
            }
            self.armed[place].events = 0;
            let trouble = libc::EPOLLERR | libc::EPOLLHUP;
            let ready = Ready {
                readable: events & (libc::EPOLLIN | trouble) != 0,
                writable: events & (libc::EPOLLOUT | trouble) != 0,
                woken: false,
            };
            tell(place, ready);
        }
        Ok(())
    }

    fn control(&self, how: i32, fd: RawFd, events: i32, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: events.cast_unsigned(),
            u64: key,
        };
        // SAFETY: the event outlives the call; both descriptors are the caller's.
        let done = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), how, fd, &raw mut event) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

fn interrupted(result: i32) -> io::Result<()> {
    let error = io::Error::last_os_error();
    if result == 0 || error.kind() == io::ErrorKind::Interrupted {
        return Ok(());
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn reported(poller: &mut Poller) -> Vec<(usize, Ready)> {
        let mut all = Vec::new();
        let wait = Duration::from_millis(20);
        poller
            .wait(wait, |place, ready| all.push((place, ready)))
            .unwrap();
        all
    }

    #[test]
    fn a_socket_is_reported_once_for_each_time_it_is_asked_for() {
        let mut poller = Poller::new(2).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        poller.watch(1, Some(ours.as_fd()), true, false).unwrap();
        assert_eq!(reported(&mut poller), []);
        theirs.write_all(b"x").unwrap();
        let readable = Ready {
            readable: true,
            ..Ready::default()
        };
        assert_eq!(reported(&mut poller), [(1, readable)]);
        assert_eq!(reported(&mut poller), []);
        poller.watch(1, Some(ours.as_fd()), false, false).unwrap();
        assert_eq!(reported(&mut poller), []);
        poller.watch(1, Some(ours.as_fd()), true, true).unwrap();
        let both = Ready {
            writable: true,
            ..readable
        };
        assert_eq!(reported(&mut poller), [(1, both)]);
    }

    #[test]
    fn an_event_and_another_socket_in_the_same_place_are_told_apart() {
        let mut poller = Poller::new(1).unwrap();
        let waker = Waker::new().unwrap();
        poller.add_event(0, &waker).unwrap();
        let (first, _first_end) = UnixStream::pair().unwrap();
        let (second, mut second_end) = UnixStream::pair().unwrap();
        poller.watch(0, Some(first.as_fd()), true, false).unwrap();
        poller.watch(0, Some(second.as_fd()), true, false).unwrap();
        drop(first);
        second_end.write_all(b"x").unwrap();
        waker.handle().wake();
        let mut all = reported(&mut poller);
        all.sort_by_key(|(_, ready)| ready.woken);
        assert_eq!(all.len(), 2);
        assert!(all[0].1.readable && all[1].1.woken);
        waker.clear();
        assert_eq!(reported(&mut poller), []);
    }
}
