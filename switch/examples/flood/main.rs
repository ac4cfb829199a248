//! Sends frames on an interface, as fast as it goes or at a given rate: the traffic of the
//! measurements under `switch/bench`.
//!
//!     flood IFACE SECONDS (HEXFRAME | @FILE) [FRAMES_A_SECOND] [--discipline | --inject] [--json]
//!
//! `@FILE` has one frame a line in hex; they are sent in turn. Frames pass the interface's
//! queueing discipline only with `--discipline`. With `--inject` they are not sent but seem
//! to be received by the interface, each some thousand times in a row, at far higher rates.
//! Prints the frames and the time it took.

mod inject;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use wormcast_switch_ports::{Interface, TransmitQueue};

use inject::Injector;

const USAGE: &str = "usage: flood IFACE SECONDS (HEXFRAME | @FILE) [FRAMES_A_SECOND] \
                     [--discipline | --inject] [--json]";

/// Most frames injected by one system call, so that the end is not overshot by much.
const INJECTED_FRAMES_MAX: u64 = 4_096;

/// How long it sleeps, leaving the core to others, when no frame is due.
const PAUSE: Duration = Duration::from_micros(50);

struct Options {
    interface: String,
    span: Duration,
    frames: Vec<Vec<u8>>,
    rate: Option<f64>,
    discipline: bool,
    inject: bool,
    json: bool,
}

fn main() -> ExitCode {
    let run = || {
        let options = Options::parse(std::env::args().skip(1))?;
        let flood = if options.inject { inject } else { send };
        flood(&options).map(|result| (options.json, result))
    };
    match run() {
        Ok((json, (frames, elapsed))) => {
            let seconds = elapsed.as_secs_f64();
            if json {
                println!("{{\"frames\": {frames}, \"seconds\": {seconds:.6}}}");
            } else {
                println!("{frames} frames in {seconds:.6} s");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("flood: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn std::error::Error>> {
        let (flags, words): (Vec<_>, Vec<_>) =
            arguments.partition(|argument| argument.starts_with("--"));
        let known = ["--discipline", "--inject", "--json"];
        if let Some(flag) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
            return Err(format!("there is no option {flag}; {USAGE}").into());
        }
        let (interface, seconds, frames, rate) = match words.as_slice() {
            [interface, seconds, frames] => (interface, seconds, frames, None),
            [interface, seconds, frames, rate] => (interface, seconds, frames, Some(rate)),
            _ => return Err(USAGE.into()),
        };
        let frames = match frames.strip_prefix('@') {
            Some(path) => {
                let text =
                    std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
                text.lines().map(parse_hex).collect::<Result<Vec<_>, _>>()?
            }
            None => vec![parse_hex(frames)?],
        };
        if frames.is_empty() {
            return Err("the file has no frame".into());
        }
        Ok(Self {
            interface: interface.clone(),
            span: Duration::try_from_secs_f64(seconds.parse()?)?,
            frames,
            rate: rate.map(|rate| rate.parse()).transpose()?,
            discipline: flags.iter().any(|flag| flag == "--discipline"),
            inject: flags.iter().any(|flag| flag == "--inject"),
            json: flags.iter().any(|flag| flag == "--json"),
        })
    }
}

fn send(options: &Options) -> Result<(u64, Duration), Box<dyn std::error::Error>> {
    let mut queue = TransmitQueue::open(&Interface::find(&options.interface)?)?;
    if !options.discipline {
        queue.bypass_discipline()?;
    }
    let mut frames = options.frames.iter().cycle();
    let start = Instant::now();
    let mut pushed = 0u64;
    loop {
        let elapsed = start.elapsed();
        if elapsed >= options.span {
            return Ok((queue.counts().frames, elapsed));
        }
        let due = due(options, elapsed);
        if pushed >= due {
            std::thread::sleep(PAUSE);
            continue;
        }
        while pushed < due
            && !queue.is_full()
            && let Some(frame) = frames.next()
        {
            queue.push(frame);
            pushed += 1;
        }
        queue.flush();
    }
}

/// Frames that are due after `elapsed`.
fn due(options: &Options, elapsed: Duration) -> u64 {
    options
        .rate
        .map_or(u64::MAX, |rate| (elapsed.as_secs_f64() * rate) as u64)
}

fn inject(options: &Options) -> Result<(u64, Duration), Box<dyn std::error::Error>> {
    let injector = Injector::open(&Interface::find(&options.interface)?)?;
    let mut frames = options.frames.iter().cycle();
    let start = Instant::now();
    let mut injected = 0u64;
    loop {
        let elapsed = start.elapsed();
        if elapsed >= options.span {
            return Ok((injected, elapsed));
        }
        let count = due(options, elapsed)
            .saturating_sub(injected)
            .min(INJECTED_FRAMES_MAX);
        if count == 0 {
            std::thread::sleep(PAUSE);
        } else if let Some(frame) = frames.next() {
            injector.inject(frame, count as u32)?;
            injected += count;
        }
    }
}

fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = text.trim().as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err("a frame has an odd number of hex digits".to_owned());
    }
    pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect::<Option<Vec<u8>>>()
        .filter(|frame| !frame.is_empty())
        .ok_or_else(|| "a frame is empty, or has a digit that is not hex".to_owned())
}
