//! Many sockets that are waited for again and again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Weak};

/// Sockets that one look for errors tells of; of others the next one does.
const REPORTED_MAX: usize = 64;

/// Sockets that the kernel watches from one wait to the next. The set is readable while one of them is, or has
/// an error: a wait for it costs as much as is ready, not as much as is watched (`epoll`).
#[derive(Debug)]
pub struct ReadableSet {
    epoll: OwnedFd,
    /// A socket that is closed leaves the set by itself.
    places: Vec<Weak<OwnedFd>>,
    is_whole: bool,
}

impl ReadableSet {
    /// Without sockets.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; a result that is not negative is a new descriptor we own.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self {
            epoll,
            places: Vec::new(),
            is_whole: true,
        })
    }

    /// Has these watched, each in its place (`None`: nothing), and no others. What is the same in the same place
    /// as before costs next to nothing.
    pub fn watch<'s>(&mut self, wanted: impl Iterator<Item = Option<&'s Arc<OwnedFd>>>) {
        let mut new = Vec::new();
        let mut count = 0;
        for (place, socket) in wanted.enumerate() {
            count = place + 1;
            if place == self.places.len() {
                self.places.push(Weak::new());
            }
            let is_same = match socket {
                Some(socket) => self.places[place].as_ptr() == Arc::as_ptr(socket),
                None => self.places[place].strong_count() == 0,
            };
            if !is_same {
                self.leave(place);
                new.extend(socket.map(|socket| (place, socket)));
            }
        }
        (count..self.places.len()).for_each(|place| self.leave(place));
        self.places.truncate(count);
        // After all others have left: one may have moved to another place.
        self.is_whole = true;
        for (place, socket) in new {
            match self.control(libc::EPOLL_CTL_ADD, socket) {
                Ok(()) => self.places[place] = Arc::downgrade(socket),
                Err(_) => self.is_whole = false,
            }
        }
    }

    /// Whether the kernel watches all of them. It may have no memory for that; then look at them yourself.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether a socket that is ready has an error.
    pub fn has_error(&self) -> bool {
        let mut reported = [libc::epoll_event { events: 0, u64: 0 }; REPORTED_MAX];
        // SAFETY: the array has REPORTED_MAX entries and outlives the call.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                reported.as_mut_ptr(),
                REPORTED_MAX as i32,
                0,
            )
        };
        let bad = (libc::EPOLLERR | libc::EPOLLHUP).cast_unsigned();
        let reported = reported.iter().take(usize::try_from(count).unwrap_or(0));
        reported.into_iter().any(|event| event.events & bad != 0)
    }

    fn leave(&mut self, place: usize) {
        if let Some(socket) = std::mem::take(&mut self.places[place]).upgrade() {
            // It fails only for one that is not in the set.
            let _ = self.control(libc::EPOLL_CTL_DEL, &socket);
        }
    }

    fn control(&self, how: i32, socket: &OwnedFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN.cast_unsigned(),
            u64: 0,
        };
        let (set, socket) = (self.epoll.as_raw_fd(), socket.as_raw_fd());
        // SAFETY: the event outlives the call; both descriptors are open.
        match unsafe { libc::epoll_ctl(set, how, socket, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for ReadableSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::Interest;
    use crate::wait;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn pair() -> (Arc<OwnedFd>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        (Arc::new(ours.into()), theirs)
    }

    fn is_ready(set: &ReadableSet) -> bool {
        wait(&[Interest::Readable(set.as_fd())], Some(0)).ready
    }

    /// Which of them the set is ready for.
    fn watched(set: &ReadableSet, ends: &mut [(Arc<OwnedFd>, UnixStream)]) -> Vec<bool> {
        let mut found = Vec::new();
        for (ours, theirs) in ends {
            assert!(!is_ready(set));
            theirs.write_all(b"x").expect("room");
            found.push(is_ready(set));
            let mut byte = [0u8];
            let mut reader = UnixStream::from(ours.try_clone().expect("a descriptor"));
            std::io::Read::read_exact(&mut reader, &mut byte).expect("a byte");
        }
        found
    }

    #[test]
    fn what_is_watched_is_what_was_asked_for_last() {
        let mut set = ReadableSet::new().expect("a set");
        let mut ends: Vec<_> = (0..4).map(|_| pair()).collect();
        let [a, b, c, d] = [0, 1, 2, 3].map(|number: usize| Some(number));
        // Sockets that come, go, stay, and change places with each other.
        for wanted in [
            vec![a, b, None],
            vec![b, a, c],
            vec![None, b, c, d],
            vec![c, d],
            vec![],
            vec![d, None, a],
            vec![a],
        ] {
            let sockets: Vec<_> = ends.iter().map(|(ours, _)| Arc::clone(ours)).collect();
            set.watch(wanted.iter().map(|number| number.map(|n| &sockets[n])));
            assert!(set.is_whole());
            let expected: Vec<bool> = (0..4).map(|n| wanted.contains(&Some(n))).collect();
            assert_eq!(watched(&set, &mut ends), expected, "{wanted:?}");
        }
    }

    #[test]
    fn a_socket_with_the_number_of_one_that_was_closed_is_another() {
        let mut set = ReadableSet::new().expect("a set");
        let (first, _first_end) = pair();
        set.watch([Some(&first)].into_iter());
        let number = first.as_raw_fd();
        let (second, mut second_end) = UnixStream::pair().expect("sockets");
        drop(first);
        // SAFETY: the number is free; the new descriptor is owned by nobody else.
        let second = unsafe {
            assert_eq!(libc::dup2(second.as_raw_fd(), number), number);
            Arc::new(OwnedFd::from_raw_fd(number))
        };
        set.watch([Some(&second)].into_iter());
        assert!(!is_ready(&set));
        second_end.write_all(b"x").expect("room");
        assert!(is_ready(&set));
    }

    #[test]
    fn an_error_is_told_from_a_frame() {
        let mut set = ReadableSet::new().expect("a set");
        let (ours, mut theirs) = pair();
        set.watch([Some(&ours)].into_iter());
        theirs.write_all(b"x").expect("room");
        assert!(is_ready(&set) && !set.has_error());
        drop(theirs);
        assert!(is_ready(&set) && set.has_error());
    }
}
