//! When a log file is full, and which files keep what was in it: as the rotating sink of
//! spdlog has it, by which BMv2 writes its log.

use std::path::PathBuf;

/// Most bytes of a log file by default, as in BMv2.
pub const LOG_FILE_BYTES: u64 = 5 << 20;

/// Older log files that are kept by default, as in BMv2.
pub const OLDER_LOG_FILES: u32 = 3;

/// Most older log files: each of them is renamed when a file is full.
pub const OLDER_LOG_FILES_MAX: u32 = 10_000;

/// A log file and the older ones beside it: `FILE`, `FILE.1`, `FILE.2` and so on, the
/// oldest last, each name with the suffix at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFiles {
    pub path: PathBuf,
    /// What every name ends with.
    pub suffix: &'static str,
    /// Most bytes of one file, at least 1; a longer line has a file for itself.
    pub bytes_max: u64,
    /// Older files that are kept, at most [`OLDER_LOG_FILES_MAX`]; 0: a full file is emptied.
    pub older_max: u32,
}

/// A part of making room for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The oldest file goes, if it is there.
    Remove(PathBuf),
    /// A file gets older, if it is there.
    Rename { from: PathBuf, to: PathBuf },
    /// Lines go to the file of this name from now on, after what it has.
    Continue(PathBuf),
    /// The same, after what it has is thrown away.
    Empty(PathBuf),
}

impl LogFiles {
    /// Files of that name, as large and as many as BMv2's.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            suffix: "",
            bytes_max: LOG_FILE_BYTES,
            older_max: OLDER_LOG_FILES,
        }
    }

    /// Name of the file that was full so many files ago; 0: the one that is being written.
    pub fn name(&self, age: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        if age != 0 {
            name.push(format!(".{age}"));
        }
        name.push(self.suffix);
        name.into()
    }

    /// Whether a file of so many bytes is full when a line of so many is to be written. Lines
    /// are never split.
    pub(super) fn is_full(&self, bytes: u64, line_bytes: u64) -> bool {
        bytes.saturating_add(line_bytes) > self.bytes_max
    }

    /// How room is made, in this order. If a step fails, the files before it have lost
    /// nothing but the oldest.
    pub(super) fn steps(&self) -> impl Iterator<Item = Step> {
        let oldest = (self.older_max != 0).then(|| Step::Remove(self.name(self.older_max)));
        let renames = (0..self.older_max).rev().map(|age| Step::Rename {
            from: self.name(age),
            to: self.name(age + 1),
        });
        let last = match self.older_max {
            0 => Step::Empty(self.name(0)),
            _ => Step::Continue(self.name(0)),
        };
        oldest.into_iter().chain(renames).chain([last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(suffix: &'static str, bytes_max: u64, older_max: u32) -> LogFiles {
        LogFiles {
            suffix,
            bytes_max,
            older_max,
            ..LogFiles::new("s1.log")
        }
    }

    #[test]
    fn names_have_their_age_before_the_suffix() {
        let names = |suffix| [0, 1, 12].map(|age| files(suffix, 1, 1).name(age));
        assert_eq!(
            names(""),
            ["s1.log", "s1.log.1", "s1.log.12"].map(PathBuf::from)
        );
        assert_eq!(
            names(".txt"),
            ["s1.log.txt", "s1.log.1.txt", "s1.log.12.txt"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_file_is_full_before_the_line_that_would_pass_its_size() {
        let files = files("", 100, 1);
        assert!(!files.is_full(0, 100) && !files.is_full(60, 40));
        assert!(files.is_full(60, 41) && files.is_full(0, 101));
        assert!(files.is_full(u64::MAX, u64::MAX));
    }

    #[test]
    fn the_oldest_goes_and_each_other_takes_the_next_place() {
        let rename = |from: &str, to: &str| Step::Rename {
            from: from.into(),
            to: to.into(),
        };
        let steps: Vec<Step> = files(".txt", 1, 2).steps().collect();
        assert_eq!(
            steps,
            [
                Step::Remove("s1.log.2.txt".into()),
                rename("s1.log.1.txt", "s1.log.2.txt"),
                rename("s1.log.txt", "s1.log.1.txt"),
                Step::Continue("s1.log.txt".into()),
            ]
        );
        let steps: Vec<Step> = files("", 1, 0).steps().collect();
        assert_eq!(steps, [Step::Empty("s1.log".into())]);
    }
}
