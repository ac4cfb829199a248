//! How long frames take through a switch: sends numbered, timed frames on one interface at a
//! steady rate and takes them on another, on one thread that never sleeps, so that what is
//! measured is the switch and the two links and not the waking of the measurer.
//!
//!     latency OUT_IFACE IN_IFACE SECONDS FRAMES_A_SECOND HEXFRAME [--json]
//!
//! The last sixteen bytes of the frame are replaced by the number and the time. Prints lost
//! frames and percentiles in microseconds.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;
use wormcast_switch::ports::{Interface, ReceiveRing, TransmitQueue};

/// Bytes of the number and the time.
const STAMP_BYTES: usize = 16;
/// How long the last frames are waited for.
const TAIL: Duration = Duration::from_millis(300);
/// Part of the run whose frames do not count: caches and tables are warm after it.
const WARM_UP: f64 = 0.1;
const RING_FRAMES: usize = 8192;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("latency: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The value below which a share of sorted values lies.
fn percentile(sorted_ns: &[u64], share: f64) -> f64 {
    let last = sorted_ns.len() - 1;
    sorted_ns[(last as f64 * share).round() as usize] as f64 / 1e3
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_json = arguments.iter().any(|argument| argument == "--json");
    arguments.retain(|argument| argument != "--json");
    let [out, into, seconds, rate, frame] = arguments.as_slice() else {
        return Err("latency OUT_IFACE IN_IFACE SECONDS FRAMES_A_SECOND HEXFRAME [--json]".into());
    };
    let (seconds, rate): (f64, f64) = (seconds.parse()?, rate.parse()?);
    let digits = frame.as_bytes().chunks(2);
    let mut frame: Vec<u8> = digits
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16))
        .collect::<Result<_, _>>()?;
    if frame.len() < STAMP_BYTES + 14 {
        return Err(format!("a frame of {} bytes has no room for the stamp", frame.len()).into());
    }
    let stamp = frame.len() - STAMP_BYTES;
    let mut transmit = TransmitQueue::open(&Interface::find(out)?)?;
    let mut receive = ReceiveRing::open(&Interface::find(into)?, RING_FRAMES)?;

    let start = Instant::now();
    let span = Duration::from_secs_f64(seconds);
    let interval_ns = 1e9 / rate;
    let warm_ns = (seconds * WARM_UP * 1e9) as u64;
    let (mut sent, mut counted) = (0u64, 0u64);
    let mut taken_ns: Vec<u64> = Vec::with_capacity((seconds * rate) as usize + 1);
    loop {
        let elapsed = start.elapsed();
        if elapsed >= span + TAIL {
            break;
        }
        let now_ns = elapsed.as_nanos() as u64;
        if elapsed < span && now_ns as f64 >= sent as f64 * interval_ns {
            frame[stamp..stamp + 8].copy_from_slice(&sent.to_be_bytes());
            frame[stamp + 8..].copy_from_slice(&now_ns.to_be_bytes());
            transmit.push(&frame);
            transmit.flush();
            sent += 1;
            counted += u64::from(now_ns >= warm_ns);
        }
        receive.receive(1, |got| {
            if got.len() < STAMP_BYTES {
                return;
            }
            let time: [u8; 8] = got[got.len() - 8..].try_into().expect("eight bytes");
            let sent_ns = u64::from_be_bytes(time);
            let now_ns = start.elapsed().as_nanos() as u64;
            if sent_ns >= warm_ns && sent_ns <= now_ns {
                taken_ns.push(now_ns - sent_ns);
            }
        });
    }
    if taken_ns.is_empty() {
        return Err(format!("none of {sent} frames came back on {into}").into());
    }
    taken_ns.sort_unstable();
    let lost = counted.saturating_sub(taken_ns.len() as u64);
    let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|share| percentile(&taken_ns, share));
    let most = percentile(&taken_ns, 1.0);
    if as_json {
        let result = json!({
            "sent": counted, "lost": lost,
            "p50_us": p50, "p90_us": p90, "p99_us": p99, "p99.9_us": p999, "max_us": most,
        });
        println!("{result}");
    } else {
        println!(
            "{counted} frames, {lost} lost; us: p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1}, \
             p99.9 {p999:.1}, max {most:.1}"
        );
    }
    Ok(())
}
