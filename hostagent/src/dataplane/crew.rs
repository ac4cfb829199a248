//! Many data planes on one thread: it sleeps until one of them has something to do.
//!
//! A data plane's turn is the same as on a thread of its own. What differs is the sleep: one
//! epoll set holds the sockets and wake-up events of all.

use super::{DataPlane, Wait};
use crate::link::{Poller, Ready};
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// Data planes that share a thread.
pub struct Crew {
    posts: Vec<Post>,
    poller: Poller,
    /// When each is due, with its place in `posts`.
    due: BTreeSet<(Instant, usize)>,
}

/// One data plane and its sleep.
struct Post {
    /// `None` once it has ended.
    plane: Option<DataPlane>,
    wait: Wait,
    due: Instant,
    ready: Ready,
}

impl Crew {
    /// Of these data planes.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(planes: Vec<DataPlane>) -> io::Result<Self> {
        let poller = Poller::new(planes.len())?;
        let now = Instant::now();
        for (place, plane) in planes.iter().enumerate() {
            poller.add_event(place, &plane.waker)?;
        }
        let posts: Vec<Post> = planes
            .into_iter()
            .map(|plane| Post {
                plane: Some(plane),
                wait: Wait::default(),
                due: now,
                ready: Ready::default(),
            })
            .collect();
        let due = (0..posts.len()).map(|place| (now, place)).collect();
        Ok(Self { posts, poller, due })
    }

    /// Works until all are stopped.
    ///
    /// # Errors
    /// Only if waiting itself fails, which is a bug or a kernel out of memory.
    pub fn run(mut self) -> io::Result<()> {
        let mut awake = Vec::new();
        while let Some(&(first, _)) = self.due.first() {
            let sleep = first.saturating_duration_since(Instant::now());
            let posts = &mut self.posts;
            self.poller.wait(sleep, |place, ready| {
                let post = &mut posts[place];
                // Whether it is due anyway is found out below.
                if post.ready == Ready::default() {
                    awake.push(place);
                }
                post.ready.readable |= ready.readable;
                post.ready.writable |= ready.writable;
                post.ready.woken |= ready.woken;
            })?;
            let now = Instant::now();
            for &(_, place) in self.due.range(..=(now, usize::MAX)) {
                if self.posts[place].ready == Ready::default() {
                    awake.push(place);
                }
            }
            for place in awake.drain(..) {
                self.turn(place)?;
            }
        }
        Ok(())
    }

    /// A data plane's turn, from the end of its sleep to the beginning of the next.
    fn turn(&mut self, place: usize) -> io::Result<()> {
        let post = &mut self.posts[place];
        let Some(plane) = &mut post.plane else {
            return Ok(());
        };
        self.due.remove(&(post.due, place));
        let ready = std::mem::take(&mut post.ready);
        if ready.woken {
            plane.waker.clear();
        }
        let received = plane.wake(ready, post.wait);
        match plane.work(received > 0) {
            Some(wait) => {
                post.wait = wait;
                post.due = Instant::now() + Duration::from_micros(wait.sleep_us);
                self.due.insert((post.due, place));
                self.poller
                    .watch(place, plane.socket(), wait.read, wait.write)
            }
            None => {
                // Dropped: its socket and event leave the set by themselves.
                post.plane = None;
                Ok(())
            }
        }
    }
}
