//! The log: what happens to the switch; at level `trace` what happens to each packet too.

mod file;
mod rotation;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use file::LogFile;
use wormcast_words::plain;

pub use rotation::{LOG_FILE_BYTES, LogFiles, OLDER_LOG_FILES, OLDER_LOG_FILES_MAX};

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every request of a controller, every step of every packet.
    Trace,
    /// Every change a controller makes.
    Debug,
    /// What an operator wants to see.
    Info,
    /// Something is not as it should be; the switch goes on.
    Warn,
    Error,
    /// Above every line: nothing is written.
    Off,
}

impl Level {
    const NAMES: [(&'static str, Level); 6] = [
        ("trace", Level::Trace),
        ("debug", Level::Debug),
        ("info", Level::Info),
        ("warn", Level::Warn),
        ("error", Level::Error),
        ("off", Level::Off),
    ];
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::NAMES
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, level)| *level)
            .ok_or_else(|| {
                format!("`{text}` is not a level: trace, debug, info, warn, error or off")
            })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, level)| level == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// Where lines go. Clones write to the same place.
#[derive(Clone)]
pub struct Log {
    level: Level,
    output: Option<Arc<Mutex<Output>>>,
}

enum Output {
    Console(io::Stdout),
    File(LogFile),
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl Log {
    pub fn off() -> Self {
        Self {
            level: Level::Off,
            output: None,
        }
    }

    /// Writes lines of at least this level to the standard output.
    pub fn to_console(level: Level) -> Self {
        Self::to(level, Output::Console(io::stdout()))
    }

    /// Writes to a file, at its end if it is there already, and makes it an older one when it
    /// is full.
    ///
    /// # Errors
    /// The file cannot be opened to write.
    pub fn to_file(level: Level, files: LogFiles) -> io::Result<Self> {
        Ok(Self::to(level, Output::File(LogFile::open(files)?)))
    }

    fn to(level: Level, output: Output) -> Self {
        Self {
            level,
            output: Some(Arc::new(Mutex::new(output))),
        }
    }

    /// Whether lines of this level are written.
    pub fn enabled(&self, level: Level) -> bool {
        level >= self.level && self.output.is_some()
    }

    /// Writes a line: the time (UTC), the level, the text. What cannot be written is lost.
    pub fn write(&self, level: Level, text: fmt::Arguments<'_>) {
        if !self.enabled(level) {
            return;
        }
        let Some(output) = &self.output else { return };
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let day_seconds = since.as_secs() % 86_400;
        let text = text.to_string();
        let text = plain(&text);
        let line = format!(
            "[{:02}:{:02}:{:02}.{:03}] [{level}] {text}\n",
            day_seconds / 3_600,
            day_seconds / 60 % 60,
            day_seconds % 60,
            since.subsec_millis(),
        );
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = match &mut *output {
            Output::Console(stdout) => stdout
                .write_all(line.as_bytes())
                .and_then(|()| stdout.flush()),
            Output::File(file) => file.write_line(line.as_bytes(), |text| {
                let _ = writeln!(
                    io::stderr().lock(),
                    "wormcast-switch: {}",
                    plain(&text.to_string())
                );
            }),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_parsed_and_ordered() {
        assert_eq!("warn".parse(), Ok(Level::Warn));
        assert!(Level::Trace < Level::Off);
        assert_eq!(
            "loud".parse::<Level>().unwrap_err(),
            "`loud` is not a level: trace, debug, info, warn, error or off"
        );
    }

    #[test]
    fn lines_below_the_level_are_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = Log::to_file(Level::Info, LogFiles::new(&path)).unwrap();
        log.write(Level::Debug, format_args!("quiet"));
        log.write(Level::Info, format_args!("port {} is up", 3));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("[info] port 3 is up\n"), "{text}");
        assert_eq!(text.lines().count(), 1);
        assert!(!Log::off().enabled(Level::Error));
    }
}
