//! Network namespaces: one process serves hosts that have one each.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Where `ip netns` keeps those it made.
const DIRECTORY: &str = "/run/netns";

/// A network namespace that sockets can be opened in.
#[derive(Clone)]
pub struct Namespace {
    name: String,
    file: Arc<File>,
}

impl Namespace {
    /// By its name, as `ip netns` knows it, or the path of its file.
    ///
    /// # Errors
    /// The kernel's answer; it names the path.
    pub fn open(name: &str) -> io::Result<Self> {
        let path = PathBuf::from(DIRECTORY).join(name);
        let file = File::open(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(Self {
            name: name.to_owned(),
            file: Arc::new(file),
        })
    }

    /// Does something in this namespace, then goes back. The calling thread alone goes there.
    ///
    /// # Errors
    /// When the thread may not change its namespace (`CAP_SYS_ADMIN`).
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let home = File::open("/proc/thread-self/ns/net")?;
        enter(&self.file)?;
        let result = work();
        enter(&home)?;
        Ok(result)
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: plain system call on an open descriptor.
    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

impl PartialEq for Namespace {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Namespace {}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_not_there_is_named_with_its_path() {
        for name in ["nosuch", "/nosuch/ns"] {
            let error = Namespace::open(name).unwrap_err().to_string();
            assert!(
                error.contains("nosuch") && error.contains(": No such"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_namespace_is_left_again() {
        let inode = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let before = inode();
        let own = Namespace::open("/proc/self/ns/net").unwrap();
        match own.within(inode) {
            Ok(inside) => assert_eq!(inside, before),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
        assert_eq!(inode(), before);
    }
}
