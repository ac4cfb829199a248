//! The secret by which the controller knows this agent again after a restart, in a file of its own.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where the file is by default.
pub const STATE_DIRECTORY_DEFAULT: &str = "/var/lib/wormcast";
pub const SECRET_BYTES: usize = 32;
const OWNER_ALONE: u32 = 0o600;

/// A secret, and the file it is in. No other process gets it while this one has it.
pub struct Secret {
    bytes: [u8; SECRET_BYTES],
    _locked: File,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret")
    }
}

impl Secret {
    /// Reads the secret of the agent of this name, or makes one.
    ///
    /// # Errors
    /// What is wrong, with the path.
    pub fn keep(directory: &Path, name: &str) -> Result<Self, String> {
        let path = file_of(directory, name);
        let wrong = |error: io::Error| format!("{}: {error}", path.display());
        std::fs::create_dir_all(directory).map_err(wrong)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ALONE)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(wrong)?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            return Err(match error.kind() {
                io::ErrorKind::WouldBlock => {
                    format!("{} is in use by another agent", path.display())
                }
                _ => wrong(error),
            });
        }
        file.set_permissions(Permissions::from_mode(OWNER_ALONE))
            .map_err(wrong)?;
        let mut found = Vec::new();
        Read::by_ref(&mut file)
            .take(SECRET_BYTES as u64 + 1)
            .read_to_end(&mut found)
            .map_err(wrong)?;
        if found.len() > SECRET_BYTES {
            let path = path.display();
            return Err(format!(
                "{path} has more than the {SECRET_BYTES} bytes of a secret; remove it, and forget the host"
            ));
        }
        let bytes = match found.try_into() {
            Ok(bytes) => bytes,
            // None yet, or its writing was cut short: then nobody knows it.
            Err(_) => make(&mut file).map_err(wrong)?,
        };
        Ok(Self {
            bytes,
            _locked: file,
        })
    }

    pub fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.bytes
    }
}

/// Names that the controller takes are names of files too; of others no registration comes about.
fn file_of(directory: &Path, name: &str) -> PathBuf {
    let plain = |c: char| match c {
        '.' | '_' | '-' => c,
        _ if c.is_ascii_alphanumeric() => c,
        _ => '_',
    };
    let name: String = name.chars().map(plain).collect();
    directory.join(format!("agent-{name}.secret"))
}

/// A new secret, which is on the disk before anybody knows it.
fn make(file: &mut File) -> io::Result<[u8; SECRET_BYTES]> {
    let mut bytes = [0; SECRET_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    file.rewind()?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_has_the_same_secret_and_another_name_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("new/state");
        let first = *Secret::keep(&state, "h3").unwrap().bytes();
        assert_eq!(Secret::keep(&state, "h3").unwrap().bytes(), &first);
        assert_ne!(Secret::keep(&state, "h4").unwrap().bytes(), &first);
        let mode = std::fs::metadata(state.join("agent-h3.secret"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn two_processes_never_have_the_same_secret() {
        let directory = tempfile::tempdir().unwrap();
        let first = Secret::keep(directory.path(), "h3").unwrap();
        let error = Secret::keep(directory.path(), "h3").unwrap_err();
        assert!(
            error.ends_with("agent-h3.secret is in use by another agent"),
            "{error}"
        );
        drop(first);
        Secret::keep(directory.path(), "h3").unwrap();
    }

    #[test]
    fn a_file_that_was_cut_short_is_written_anew_and_one_that_is_none_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent-a_b.secret");
        std::fs::write(&path, [1; 31]).unwrap();
        let made = *Secret::keep(directory.path(), "a/b").unwrap().bytes();
        assert_eq!(std::fs::read(&path).unwrap(), made);
        std::fs::write(&path, [1; 33]).unwrap();
        let error = Secret::keep(directory.path(), "a/b").unwrap_err();
        assert!(
            error.contains("agent-a_b.secret has more than the 32 bytes"),
            "{error}"
        );
    }
}
