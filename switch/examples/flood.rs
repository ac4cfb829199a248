//! Sends one frame over and over on an interface, as fast as it goes or at a given rate:
//! the traffic of the measurements under `bench/switch`.
//!
//!     flood IFACE SECONDS HEXFRAME [FRAMES_A_SECOND]
//!
//! Prints the frames sent and the time it took.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use wormcast_switch::ports::{Interface, TransmitQueue};

fn main() -> ExitCode {
    match run() {
        Ok((frames, elapsed)) => {
            println!("{frames} frames in {:.6} s", elapsed.as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(u64, Duration), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (interface, seconds, frame, rate) = match arguments.as_slice() {
        [interface, seconds, frame] => (interface, seconds, frame, None),
        [interface, seconds, frame, rate] => (interface, seconds, frame, Some(rate)),
        _ => return Err("usage: flood IFACE SECONDS HEXFRAME [FRAMES_A_SECOND]".into()),
    };
    let span = Duration::try_from_secs_f64(seconds.parse()?)?;
    let rate: Option<f64> = rate.map(|rate| rate.parse()).transpose()?;
    let frame = parse_hex(frame)?;
    let mut queue = TransmitQueue::open(&Interface::find(interface)?)?;
    let start = Instant::now();
    let mut pushed = 0u64;
    loop {
        let elapsed = start.elapsed();
        if elapsed >= span {
            return Ok((queue.counts().frames, elapsed));
        }
        let due = rate.map_or(u64::MAX, |rate| (elapsed.as_secs_f64() * rate) as u64);
        while pushed < due && queue.push(&frame) {
            pushed += 1;
        }
        queue.flush();
    }
}

fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err("the frame has an odd number of hex digits".to_owned());
    }
    pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| "the frame has a digit that is not hex".to_owned())
}
