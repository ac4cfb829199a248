//! The part of the command line that is about queues and losing nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use clap::{Args, Parser, ValueEnum};

use wormcast_switch_flow::headroom::{FRAME_BYTES_DEFAULT, GivenThresholds, LosslessSettings};
use wormcast_switch_flow::pause::PauseMode;
use wormcast_switch_flow::priority::{PRIORITIES, PrioritySet};
use wormcast_switch_flow::scheduler::SchedulerKind;
use wormcast_switch_flow::watchdog::WatchdogSettings;
use wormcast_switch_flow::whole_number;
use wormcast_switch_flow::{Duration, QueueSettings};
use wormcast_switch_pipeline::limits::PACKET_BYTES_MAX;

/// Options of lossless switches and of egress queues.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Queues and lossless operation")]
pub struct LosslessArguments {
    /// Lose no frame of these priorities: stop neighbours by PFC before buffers are full
    #[arg(long, value_name = "PRIORITIES", num_args = 0..=1, require_equals = true, default_missing_value = "3,4")]
    lossless: Option<Priorities>,

    /// Priority of frames, by kind: worm1, worm2 (buffer classes), pcp0..7, dscp0..63 or a
    /// range, other; may be repeated [default: worm1=3,worm2=4,pcp3=3,pcp4=4,dscp24-31=3,
    /// dscp32-39=4, all else 0]
    #[arg(long, value_name = "KIND=PRIORITY,…", requires = "lossless")]
    lossless_map: Vec<String>,

    /// Rate of every link, or of one port's: it is kept when sending, sizes headroom and
    /// turns pause times into quanta; may be repeated [default: 1gbit]
    #[arg(long, value_name = "[PORT:]RATE", requires = "lossless")]
    link_rate: Vec<String>,

    /// Time a bit takes to the other end of every link, or of one port's [default: 10us]
    #[arg(long, value_name = "[PORT:]TIME", requires = "lossless")]
    link_delay: Vec<String>,

    /// Longest time a frame may wait before this switch, or a neighbour, looks at it;
    /// headroom and receive rings are sized for it [default: 8ms, less on links whose longest
    /// pause is short]
    #[arg(long, value_name = "TIME", requires = "lossless")]
    response_time: Option<Duration>,

    /// Longest frame on any link, bytes without check sequence [default: 1518]
    #[arg(long, value_name = "BYTES", requires = "lossless", value_parser = whole_number(64..=PACKET_BYTES_MAX as u32))]
    frame_max: Option<u32>,

    /// Thresholds of each port and lossless priority, bytes: xoff, xon, headroom; those not
    /// given are computed from rate, delay and response time
    #[arg(long, value_name = "KEY=BYTES,…", requires = "lossless")]
    pfc_thresholds: Option<ThresholdText>,

    /// The whole buffer; refused if thresholds and headrooms do not fit [default: what they
    /// need and 8MiB for lossy frames]
    #[arg(long, value_name = "BYTES", requires = "lossless")]
    buffer_bytes: Option<ByteCount>,

    /// What stops a neighbour: PFC frames, or PAUSE for neighbours that know no PFC; both
    /// are honoured
    #[arg(
        long,
        value_name = "KIND",
        requires = "lossless",
        default_value = "pfc"
    )]
    pause_frames: PauseText,

    /// Length of a pause in quanta of 512 bit times; it is refreshed after half of it
    #[arg(long, value_name = "N", requires = "lossless", default_value_t = u16::MAX, value_parser = whole_number(1..=u16::MAX))]
    pause_quanta: u16,

    /// What is done about a queue that is paused for too long: detect=TIME, action=drop|forward,
    /// recover=TIME, or off [default: detect=1s,action=drop,recover=2s]
    #[arg(long, value_name = "KEY=VALUE,…", requires = "lossless")]
    watchdog: Option<WatchdogText>,

    /// How the queues of a port share it: strict (the highest priority first) or weighted,
    /// like weighted:3=4,4=2 [default: strict; with --lossless weighted]
    #[arg(long, value_name = "KIND")]
    scheduler: Option<SchedulerKind>,

    /// Mark frames that leave so many packets behind in their queue: ECN CE where the sender
    /// knows ECN, flag CE of worms
    #[arg(long, value_name = "PACKETS", value_parser = whole_number(1..=u32::MAX))]
    ecn_threshold: Option<u32>,
}

/// The options by themselves.
#[derive(Parser)]
#[command(no_binary_name = false, disable_help_flag = true)]
struct Alone {
    #[command(flatten)]
    arguments: LosslessArguments,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LosslessError(String);

impl LosslessArguments {
    /// What they say. Whether it fits the buffer is for [`LosslessSettings::plan`].
    pub fn settings(&self) -> Result<QueueSettings, LosslessError> {
        let lossless = match &self.lossless {
            Some(Priorities(priorities)) => Some(self.lossless_settings(*priorities)?),
            None => None,
        };
        let usual = match lossless {
            Some(_) => SchedulerKind::FAIR,
            None => SchedulerKind::Strict,
        };
        Ok(QueueSettings {
            lossless,
            scheduler: self.scheduler.unwrap_or(usual),
            ecn_threshold: self.ecn_threshold,
        })
    }

    /// Reads the options of one switch, as a list of words.
    pub fn read(options: &[String]) -> Result<QueueSettings, LosslessError> {
        let program = std::iter::once("options");
        let words = program.chain(options.iter().map(String::as_str));
        let alone = Alone::try_parse_from(words)
            .map_err(|error| LosslessError(error.render().to_string()))?;
        alone.arguments.settings()
    }

    fn lossless_settings(
        &self,
        priorities: PrioritySet,
    ) -> Result<LosslessSettings, LosslessError> {
        let mut settings = LosslessSettings {
            priorities,
            frame_bytes_max: self.frame_max.unwrap_or(FRAME_BYTES_DEFAULT),
            response_us: self.response_time.map(Duration::as_us),
            buffer_bytes: self.buffer_bytes.map(|ByteCount(bytes)| bytes),
            quanta: self.pause_quanta,
            ..LosslessSettings::default()
        };
        settings.pause = match self.pause_frames {
            PauseText::Pfc => PauseMode::Pfc,
            PauseText::Pause => PauseMode::Pause,
        };
        for argument in &self.lossless_map {
            let applied = settings.map.apply(argument);
            applied.map_err(|error| LosslessError(format!("--lossless-map: {error}")))?;
        }
        let reach = settings.map.used();
        if priorities.without(reach) == priorities {
            return Err(LosslessError(format!(
                "--lossless={priorities}: no frame has these priorities; --lossless-map gives {reach}"
            )));
        }
        settings.thresholds = self.pfc_thresholds.clone().unwrap_or_default().0;
        settings.watchdog = match self.watchdog {
            Some(WatchdogText(watchdog)) => watchdog,
            None => Some(WatchdogSettings::default()),
        };
        let (rate, rates) = of_links("--link-rate", &self.link_rate)?;
        let (delay, delays): (Option<Duration>, _) = of_links("--link-delay", &self.link_delay)?;
        settings.link.rate = rate.unwrap_or(settings.link.rate);
        settings.link.delay_us = delay.map_or(settings.link.delay_us, Duration::as_us);
        for (port, rate) in rates {
            settings.links.entry(port).or_insert(settings.link).rate = rate;
        }
        for (port, delay) in delays {
            settings.links.entry(port).or_insert(settings.link).delay_us = delay.as_us();
        }
        Ok(settings)
    }
}

/// The value of all links, and those of single ports.
type OfLinks<T> = (Option<T>, BTreeMap<u16, T>);

fn of_links<T>(option: &str, arguments: &[String]) -> Result<OfLinks<T>, LosslessError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    let mut all = None;
    let mut ports = BTreeMap::new();
    for argument in arguments {
        let fail = |why: String| LosslessError(format!("{option} {argument}: {why}"));
        let (port, value) = match argument.split_once(':') {
            Some((port, value)) => {
                let number = port.parse::<u16>().ok().filter(|port| *port <= 511);
                let number = number
                    .ok_or_else(|| fail(format!("`{port}` is not a port: it must be 0 to 511")))?;
                (Some(number), value)
            }
            None => (None, argument.as_str()),
        };
        let value: T = value
            .parse()
            .map_err(|error: T::Err| fail(error.to_string()))?;
        match port {
            Some(port) => {
                ports.insert(port, value);
            }
            None => all = Some(value),
        }
    }
    Ok((all, ports))
}

/// Priorities with commas between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Priorities(PrioritySet);

impl FromStr for Priorities {
    type Err = LosslessError;

    fn from_str(text: &str) -> Result<Self, LosslessError> {
        let error = || {
            LosslessError(format!(
                "`{text}` are not priorities: 0 to 7, with commas between them (like 3,4)"
            ))
        };
        let mut set = PrioritySet::NONE;
        for priority in text.split(',') {
            let priority: u8 = priority.trim().parse().map_err(|_| error())?;
            if usize::from(priority) >= PRIORITIES {
                return Err(error());
            }
            set.insert(priority);
        }
        Ok(Self(set))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteCount(u64);

impl FromStr for ByteCount {
    type Err = LosslessError;

    /// `65536`, `512KiB`, `64MiB`, `1GiB`.
    fn from_str(text: &str) -> Result<Self, LosslessError> {
        let (number, shift) = [("KiB", 10), ("MiB", 20), ("GiB", 30)]
            .iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
            .unwrap_or((text, 0));
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let bytes = number.parse::<u64>().ok().filter(|_| digits);
        let bytes = bytes.and_then(|bytes| bytes.checked_mul(1 << shift));
        bytes.map(Self).ok_or_else(|| {
            LosslessError(format!(
                "`{text}` is not a number of bytes, with KiB, MiB or GiB after it or nothing"
            ))
        })
    }
}

#[derive(Clone, Debug, Default)]
struct ThresholdText(GivenThresholds);

impl FromStr for ThresholdText {
    type Err = LosslessError;

    fn from_str(text: &str) -> Result<Self, LosslessError> {
        let mut given = GivenThresholds::default();
        for pair in text.split(',') {
            let error = || {
                LosslessError(format!(
                    "`{pair}` is no threshold: it must be xoff, xon or headroom, =, and bytes"
                ))
            };
            let (key, value) = pair.split_once('=').ok_or_else(error)?;
            let cell = match key.trim() {
                "xoff" => &mut given.xoff,
                "xon" => &mut given.xon,
                "headroom" => &mut given.headroom,
                _ => return Err(error()),
            };
            let ByteCount(bytes) = value.trim().parse()?;
            *cell = Some(bytes);
        }
        Ok(Self(given))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PauseText {
    #[default]
    Pfc,
    Pause,
}

#[derive(Clone, Copy, Debug)]
struct WatchdogText(Option<WatchdogSettings>);

impl FromStr for WatchdogText {
    type Err = wormcast_switch_flow::watchdog::WatchdogError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self(None)),
            _ => Ok(Self(Some(text.parse()?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        lossless: LosslessArguments,
    }

    fn read(arguments: &str) -> Result<QueueSettings, String> {
        let words = std::iter::once("switch").chain(arguments.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.lossless.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_said_is_lossy_and_strict() {
        assert_eq!(read(""), Ok(QueueSettings::default()));
        let settings = read("--ecn-threshold 20 --scheduler weighted").unwrap();
        assert_eq!(
            (settings.ecn_threshold, settings.scheduler),
            (Some(20), SchedulerKind::FAIR)
        );
    }

    #[test]
    fn one_word_is_enough() {
        let settings = read("--lossless").unwrap();
        assert_eq!(settings.lossless, Some(LosslessSettings::default()));
        assert_eq!(settings.scheduler, SchedulerKind::FAIR);
        assert!(settings.lossless.unwrap().plan(&[1, 2]).is_ok());
    }

    #[test]
    fn everything_can_be_said() {
        let settings = read(
            "--lossless=3,5 --lossless-map worm2=5 --link-rate 100mbit --link-rate 7:1gbit \
             --link-delay 1ms --link-delay 8:2ms --response-time 2ms --frame-max 9018 \
             --pfc-thresholds xoff=100KiB,headroom=1MiB --buffer-bytes 64MiB --pause-frames pause \
             --pause-quanta 1000 --watchdog off --scheduler strict",
        );
        let settings = settings.unwrap();
        let lossless = settings.lossless.unwrap();
        assert_eq!(settings.scheduler, SchedulerKind::Strict);
        assert_eq!(lossless.priorities.to_string(), "3,5");
        assert_eq!(lossless.link_of(1).delay_us, 1_000);
        let (seven, eight) = (lossless.link_of(7), lossless.link_of(8));
        assert_eq!(
            (seven.rate.bits_per_s(), seven.delay_us),
            (1_000_000_000, 1_000)
        );
        assert_eq!(
            (eight.rate.bits_per_s(), eight.delay_us),
            (100_000_000, 2_000)
        );
        assert_eq!(
            (lossless.thresholds.xoff, lossless.thresholds.xon),
            (Some(102_400), None)
        );
        assert_eq!(
            (lossless.buffer_bytes, lossless.watchdog),
            (Some(64 << 20), None)
        );
        assert_eq!((lossless.pause, lossless.quanta), (PauseMode::Pause, 1_000));
    }

    #[test]
    fn links_and_lists_of_words() {
        let words = ["--lossless", "--scheduler=strict"].map(str::to_owned);
        let mut settings = LosslessArguments::read(&words).unwrap();
        settings.set_link(4, None, Some("3ms".parse().unwrap()));
        let link = settings.lossless.as_ref().unwrap().link_of(4);
        assert_eq!(
            (link.rate.bits_per_s(), link.delay_us),
            (1_000_000_000, 3_000)
        );
        assert_eq!(settings.named_ports().collect::<Vec<_>>(), [4]);
        let error = LosslessArguments::read(&["--lossy".to_owned()]).unwrap_err();
        assert!(
            error.to_string().contains("unexpected argument '--lossy'"),
            "{error}"
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (arguments, expected) in [
            ("--lossless=8", "`8` are not priorities: 0 to 7"),
            (
                "--lossless=7",
                "no frame has these priorities; --lossless-map gives 0,3,4",
            ),
            ("--link-rate 1gbit", "--lossless"),
            (
                "--lossless --link-rate 900:1gbit",
                "`900` is not a port: it must be 0 to 511",
            ),
            (
                "--lossless --link-rate fast",
                "--link-rate fast: `fast` is not a rate",
            ),
            (
                "--lossless --link-delay 3:fast",
                "--link-delay 3:fast: `fast` is not a time",
            ),
            (
                "--lossless --lossless-map x=1",
                "--lossless-map: `x=1` does not map",
            ),
            ("--lossless --pfc-thresholds xoff", "`xoff` is no threshold"),
            (
                "--lossless --pfc-thresholds xoff=many",
                "`many` is not a number of bytes",
            ),
            (
                "--lossless --buffer-bytes 99999999999GiB",
                "is not a number of bytes",
            ),
            ("--lossless --watchdog bark", "`bark` sets no watchdog"),
            (
                "--lossless --pause-quanta 0",
                "it must be a whole number from 1 to 65535",
            ),
            (
                "--lossless --frame-max 70000",
                "it must be a whole number from 64 to 65791",
            ),
            ("--scheduler fair", "`fair` is not a scheduler"),
            (
                "--ecn-threshold 0",
                "it must be a whole number from 1 to 4294967295",
            ),
        ] {
            let error = read(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments}: {error}");
        }
    }
}
