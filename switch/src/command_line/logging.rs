//! Options of the log.

use std::path::PathBuf;

use super::settings::LogTo;
use wormcast_switch_dataplane::log::{
    LOG_FILE_BYTES, Level, LogFiles, OLDER_LOG_FILES, OLDER_LOG_FILES_MAX,
};
use wormcast_switch_flow::whole_number;

/// What is logged, and where.
#[derive(Debug, clap::Args)]
pub struct LogArguments {
    /// Log to the standard output
    #[arg(long)]
    pub log_console: bool,

    /// Log to a file, after what it has; called as simple_switch or simple_switch_grpc, .txt
    /// is added to its name
    #[arg(long, value_name = "FILE", conflicts_with = "log_console")]
    pub log_file: Option<PathBuf>,

    /// Most bytes of the log file: before a line that would pass them, FILE becomes FILE.1,
    /// that FILE.2 and so on (with .txt FILE.1.txt) [default: 5242880]
    #[arg(long, value_name = "BYTES", value_parser = whole_number(1..=u64::MAX))]
    pub log_file_max_size: Option<u64>,

    /// Older log files that are kept; 0: a full one is emptied [default: 3]
    #[arg(long, value_name = "N", value_parser = whole_number(0..=OLDER_LOG_FILES_MAX))]
    pub log_file_max_files: Option<u32>,

    /// Least level that is logged: trace, debug, info, warn, error or off
    #[arg(short = 'L', long, value_name = "LEVEL", default_value_t = Level::Info)]
    pub log_level: Level,

    /// Log each packet that is received or sent, with so many bytes of it, at level info; the
    /// packets are interpreted then. 0: none
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = whole_number(0..=usize::MAX))]
    pub dump_packet_data: usize,
}

impl LogArguments {
    /// A note for each option that has no effect beside the others.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (name, is_given) in [
            ("log-file-max-size", self.log_file_max_size.is_some()),
            ("log-file-max-files", self.log_file_max_files.is_some()),
        ] {
            if is_given && self.log_file.is_none() {
                notes.push(format!("--{name} has no effect without --log-file"));
            }
        }
        if self.dump_packet_data != 0 {
            let name = "--dump-packet-data has no effect";
            if self.log_level > Level::Info {
                let level = self.log_level;
                notes.push(format!("{name}: the log level {level} excludes info"));
            } else if !self.log_console && self.log_file.is_none() {
                notes.push(format!("{name} without --log-console or --log-file"));
            }
        }
        notes
    }

    /// Where the log goes; names of files end with the suffix.
    pub fn output(self, suffix: &'static str) -> LogTo {
        match (self.log_console, self.log_file) {
            (true, _) => LogTo::Console,
            (false, Some(path)) => LogTo::File(LogFiles {
                path,
                suffix,
                bytes_max: self.log_file_max_size.unwrap_or(LOG_FILE_BYTES),
                older_max: self.log_file_max_files.unwrap_or(OLDER_LOG_FILES),
            }),
            (false, None) => LogTo::Nowhere,
        }
    }
}
