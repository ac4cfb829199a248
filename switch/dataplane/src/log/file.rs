//! The log file that is being written.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};

use super::rotation::{LogFiles, Step};

/// Writes lines to a file, and makes room for them when it is full.
#[derive(Debug)]
pub(super) struct LogFile {
    files: LogFiles,
    file: File,
    /// Bytes in it, or since room could last not be made.
    bytes: u64,
    /// Devices and pipes are never full.
    is_regular: bool,
    /// Room could not be made when it was last needed, which has been said.
    failed: bool,
}

impl LogFile {
    /// Opens the file, to write after what it has.
    pub(super) fn open(files: LogFiles) -> io::Result<Self> {
        let file = append_to(&files.name(0))?;
        let found = file.metadata()?;
        Ok(Self {
            files,
            file,
            bytes: found.len(),
            is_regular: found.is_file(),
            failed: false,
        })
    }

    /// Writes a line. If no room can be made for it, the file grows, which is said by
    /// `complain` once until it works again; it is tried again when as many bytes were written
    /// as a file may have.
    pub(super) fn write_line(
        &mut self,
        line: &[u8],
        complain: impl FnOnce(fmt::Arguments<'_>),
    ) -> io::Result<()> {
        let line_bytes = line.len() as u64;
        if self.is_regular && self.files.is_full(self.bytes, line_bytes) {
            self.bytes = 0;
            let made = self.make_room();
            if let Err(error) = &made
                && !self.failed
            {
                let path = self.files.name(0);
                complain(format_args!(
                    "the log goes on, but {} is full: {error}",
                    path.display()
                ));
            }
            self.failed = made.is_err();
        }
        self.bytes = self.bytes.saturating_add(line_bytes);
        self.file.write_all(line)
    }

    fn make_room(&mut self) -> Result<(), String> {
        for step in self.files.steps() {
            match step {
                Step::Remove(path) => if_there(fs::remove_file(&path))
                    .map_err(|error| format!("cannot remove {}: {error}", path.display()))?,
                Step::Rename { from, to } => {
                    if_there(fs::rename(&from, &to)).map_err(|error| {
                        let (from, to) = (from.display(), to.display());
                        format!("cannot rename {from} to {to}: {error}")
                    })?;
                }
                Step::Continue(path) => {
                    let opened = append_to(&path);
                    self.file = opened.map_err(|error| cannot_write(&path, &error))?;
                }
                Step::Empty(path) => {
                    let opened = append_to(&path);
                    let emptied = opened.and_then(|file| file.set_len(0).map(|()| file));
                    self.file = emptied.map_err(|error| cannot_write(&path, &error))?;
                }
            }
        }
        Ok(())
    }
}

fn append_to(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn cannot_write(path: &std::path::Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// What has been done to a file that may be missing.
fn if_there(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(path: PathBuf, bytes_max: u64, older_max: u32) -> LogFiles {
        LogFiles {
            bytes_max,
            older_max,
            ..LogFiles::new(path)
        }
    }

    fn write(file: &mut LogFile, line: &str) -> Vec<String> {
        let mut said = Vec::new();
        file.write_line(line.as_bytes(), |text| said.push(text.to_string()))
            .unwrap();
        said
    }

    /// Names and contents of a directory's files, sorted.
    fn contents(directory: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
        let entries = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let mut contents: Vec<(String, String)> = entries
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        contents.sort();
        contents
    }

    fn named(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let expected = expected.iter();
        let owned = expected.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        owned.collect()
    }

    #[test]
    fn lines_are_never_split_and_the_oldest_file_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut file = LogFile::open(files(path, 10, 2)).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n", "six\n"] {
            assert!(write(&mut file, line).is_empty());
        }
        let expected = [
            ("log", "six\n"),
            ("log.1", "four\nfive\n"),
            ("log.2", "three\n"),
        ];
        assert_eq!(contents(directory.path()), named(&expected));
        // A line that is longer than a file has one for itself.
        for line in ["a line longer than a file\n", "seven\n"] {
            write(&mut file, line);
        }
        let expected = [
            ("log", "seven\n"),
            ("log.1", "a line longer than a file\n"),
            ("log.2", "six\n"),
        ];
        assert_eq!(contents(directory.path()), named(&expected));
    }

    #[test]
    fn what_a_file_has_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "before\n").unwrap();
        let mut file = LogFile::open(files(path, 12, 1)).unwrap();
        write(&mut file, "here\n");
        let expected = [("log", "before\nhere\n")];
        assert_eq!(contents(directory.path()), named(&expected));
        write(&mut file, "!\n");
        let expected = [("log", "!\n"), ("log.1", "before\nhere\n")];
        assert_eq!(contents(directory.path()), named(&expected));
    }

    #[test]
    fn without_older_files_a_full_one_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut file = LogFile::open(files(path, 10, 0)).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            write(&mut file, line);
        }
        assert_eq!(contents(directory.path()), named(&[("log", "four\n")]));
    }

    #[test]
    fn the_log_goes_on_where_no_room_can_be_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        // A directory cannot be removed as a file is.
        let obstacle = directory.path().join("log.2");
        fs::create_dir(&obstacle).unwrap();
        fs::write(directory.path().join("log.1"), "older\n").unwrap();
        let mut file = LogFile::open(files(path.clone(), 8, 2)).unwrap();
        assert!(write(&mut file, "one\n").is_empty());
        assert!(write(&mut file, "two\n").is_empty());
        let said = write(&mut file, "three\n");
        assert_eq!(said.len(), 1);
        let (path, obstacle_name) = (path.display(), obstacle.display());
        let expected =
            format!("the log goes on, but {path} is full: cannot remove {obstacle_name}: ");
        assert!(said[0].starts_with(&expected), "{said:?}");
        assert!(write(&mut file, "four\n").is_empty(), "it is said once");
        let expected = [("log", "one\ntwo\nthree\nfour\n"), ("log.1", "older\n")];
        assert_eq!(contents(directory.path()), named(&expected));
        fs::remove_dir(&obstacle).unwrap();
        assert!(write(&mut file, "five\n").is_empty());
        let expected = [
            ("log", "five\n"),
            ("log.1", "one\ntwo\nthree\nfour\n"),
            ("log.2", "older\n"),
        ];
        assert_eq!(contents(directory.path()), named(&expected));
        // Should it fail again, that is news.
        fs::remove_file(&obstacle).unwrap();
        fs::create_dir(&obstacle).unwrap();
        assert_eq!(write(&mut file, "six six\n").len(), 1);
    }

    /// What is no file stays where it is.
    #[test]
    fn devices_are_never_full() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let mut file = LogFile::open(files(path.clone(), 1, 2)).unwrap();
        assert!(write(&mut file, "one\n").is_empty());
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("/dev/null"));
        assert!(!directory.path().join("log.1").exists());
    }
}
