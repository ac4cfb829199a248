//! Moves frames from one interface to another with the rings of the switch and nothing in
//! between: what a port layer can do at best on this machine.
//!
//!     bare_forwarder IN OUT [--receive v2|v3] [--bypass] [--spin] [--json]
//!
//! `--receive` is that of the switch; `--bypass` sends past the queueing discipline of OUT;
//! `--spin` never sleeps. Runs until SIGTERM or SIGINT, then prints what it moved.

use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use wormcast_switch_ports::readiness::Interest;
use wormcast_switch_ports::{Interface, ReceiveMode, ReceiveRing, TransmitQueue, wait};

const USAGE: &str = "usage: bare_forwarder IN OUT [--receive v2|v3] [--bypass] [--spin] [--json]";

/// Frames that may wait to be received.
const RING_FRAMES: usize = 2_048;

/// Frames taken at once, as many as go out at once.
const BATCH_FRAMES: usize = 64;

/// Empty looks at the ring before it sleeps; some 20 µs, as long as the switch looks.
const LOOKS: u32 = 2_000;

static STOPPING: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: i32) {
    STOPPING.store(true, Ordering::Relaxed);
}

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bare_forwarder: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let mut names = Vec::new();
    let mut mode = ReceiveMode::default();
    let (mut bypass, mut spin, mut json) = (false, false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--receive" => mode = arguments.next().unwrap_or_default().parse()?,
            "--bypass" => bypass = true,
            "--spin" => spin = true,
            "--json" => json = true,
            flag if flag.starts_with("--") => {
                return Err(format!("there is no option {flag}; {USAGE}").into());
            }
            _ => names.push(argument),
        }
    }
    let [incoming, outgoing] = names.as_slice() else {
        return Err(USAGE.into());
    };
    let mut ring = ReceiveRing::open_as(&Interface::find(incoming)?, RING_FRAMES, mode)?;
    let mut queue = TransmitQueue::open(&Interface::find(outgoing)?)?;
    if bypass {
        queue.bypass_discipline()?;
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let handler: extern "C" fn(i32) = stop;
        // SAFETY: the handler only stores to an atomic, which a signal may do.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    let mut looks = 0;
    while !STOPPING.load(Ordering::Relaxed) {
        let mut moved = ring.receive(BATCH_FRAMES, |frame| {
            queue.push(frame);
        });
        if moved > 0 {
            while !queue.is_empty() && !STOPPING.load(Ordering::Relaxed) {
                queue.flush();
            }
        } else if !spin {
            looks += 1;
            if looks > LOOKS {
                wait(&[Interest::Readable(ring.as_fd())], Some(100_000));
                moved = 1;
            }
        }
        if moved > 0 {
            looks = 0;
        }
    }
    let (received, sent) = (ring.counts(), queue.counts());
    if json {
        println!(
            "{{\"received\": {}, \"ring_full\": {}, \"sent\": {}}}",
            received.frames, received.ring_full, sent.frames
        );
    } else {
        println!(
            "{} frames received, {} found the ring full, {} sent",
            received.frames, received.ring_full, sent.frames
        );
    }
    Ok(())
}
