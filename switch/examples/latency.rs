//! How long frames take through a switch: sends numbered, timed frames on one interface at a
//! steady rate. The time of arrival is the kernel's (`SO_TIMESTAMPNS`), taken when the switch
//! hands the frame to the other interface, so that this program can sleep between frames:
//! what is measured is the switch and the two links, neither the waking of the measurer nor a
//! core that it would keep from the switch.
//!
//!     latency OUT_IFACE IN_IFACE SECONDS FRAMES_A_SECOND HEXFRAME [--json]
//!
//! The last sixteen bytes of the frame are replaced by the number and the time. Prints lost
//! frames and percentiles in microseconds.

use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use wormcast_switch_ports::{Interface, TransmitQueue};

/// Bytes of the number and the time.
const STAMP_BYTES: usize = 16;
/// How long before a frame is due this program is awake, so that what it takes a core to come
/// back from its sleep is not measured with the switch.
const AWAKE_BEFORE: Duration = Duration::from_micros(40);
/// How long the last frames are waited for.
const TAIL: Duration = Duration::from_millis(300);
/// Part of the run whose frames do not count: caches and tables are warm after it.
const WARM_UP: f64 = 0.1;
const SECONDS_MAX: f64 = 3_600.0;
/// Most frames a second, more than any interface here takes.
const RATE_MAX: f64 = 1e6;
/// Room for frames that arrive while this program does not run, bytes.
const BUFFER_BYTES: c_int = 32 << 20;
/// Longest frame that is taken.
const FRAME_BYTES_MAX: usize = 65_549;

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

/// The clock that the kernel stamps frames by, ns.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Frames that arrive on an interface, and when.
struct Arrivals {
    socket: OwnedFd,
    frame: Box<[u8]>,
}

impl Arrivals {
    fn open(interface: &Interface) -> io::Result<Self> {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the descriptor is new and owned by nobody else.
        let socket = unsafe {
            let descriptor = libc::socket(libc::AF_PACKET, kind, 0);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(descriptor)
        };
        let set = |level: c_int, name: c_int, value: c_int| {
            let bytes = size_of::<c_int>() as libc::socklen_t;
            // SAFETY: the value is an int that outlives the call, of the length given.
            let result = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    level,
                    name,
                    (&raw const value).cast(),
                    bytes,
                )
            };
            check(result)
        };
        set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES)?;
        set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        // SAFETY: all zeros are a valid address of this kind.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = all;
        address.sll_ifindex = interface.index().cast_signed();
        let bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address outlives the call and is of the length given.
        let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) };
        check(result)?;
        Ok(Self {
            socket,
            frame: vec![0; FRAME_BYTES_MAX].into_boxed_slice(),
        })
    }

    /// The next frame that has arrived and when, ns; none if there is none.
    fn next(&mut self) -> io::Result<Option<(&[u8], u64)>> {
        // Aligned as control messages are.
        let mut control = [0u64; 16];
        let mut piece = libc::iovec {
            iov_base: self.frame.as_mut_ptr().cast(),
            iov_len: self.frame.len(),
        };
        // SAFETY: all zeros are a valid header; its pointers are to what outlives the call,
        // with their lengths.
        let (length, header) = unsafe {
            let mut header: libc::msghdr = zeroed();
            header.msg_iov = &raw mut piece;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control);
            let length = libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, 0);
            (length, header)
        };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        };
        // SAFETY: the kernel has filled the header and the control messages it points to; a
        // message of this kind has a timespec behind its own header.
        let stamp = unsafe {
            let mut message = libc::CMSG_FIRSTHDR(&raw const header);
            loop {
                if message.is_null() {
                    return Err(io::Error::other("a frame has no time of arrival"));
                }
                if (*message).cmsg_level == libc::SOL_SOCKET
                    && (*message).cmsg_type == libc::SCM_TIMESTAMPNS
                {
                    let time: *const libc::timespec = libc::CMSG_DATA(message).cast();
                    break time.read_unaligned();
                }
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
        };
        let stamp_ns = stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64;
        Ok(Some((&self.frame[..length], stamp_ns)))
    }
}

fn check(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_json = arguments.iter().any(|argument| argument == "--json");
    arguments.retain(|argument| argument != "--json");
    let [out, into, seconds, rate, frame] = arguments.as_slice() else {
        return Err("latency OUT_IFACE IN_IFACE SECONDS FRAMES_A_SECOND HEXFRAME [--json]".into());
    };
    let (seconds, rate): (f64, f64) = (seconds.parse()?, rate.parse()?);
    for (name, value, most) in [
        ("SECONDS", seconds, SECONDS_MAX),
        ("FRAMES_A_SECOND", rate, RATE_MAX),
    ] {
        if !(value > 0.0 && value <= most) {
            return Err(format!("{name} {value}: more than 0, at most {most}").into());
        }
    }
    let digits = frame.as_bytes().chunks(2);
    let mut frame: Vec<u8> = digits
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16))
        .collect::<Result<_, _>>()?;
    if !(STAMP_BYTES + 14..=FRAME_BYTES_MAX).contains(&frame.len()) {
        return Err(format!(
            "a frame of {} bytes: {} to {FRAME_BYTES_MAX}",
            frame.len(),
            STAMP_BYTES + 14
        )
        .into());
    }
    let stamp = frame.len() - STAMP_BYTES;
    let mut transmit = TransmitQueue::open(&Interface::find(out)?)?;
    let mut arrivals = Arrivals::open(&Interface::find(into)?)?;
    // The default slack would let the kernel wake this thread 50 us late.
    // SAFETY: no pointers; it changes the timers of this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };

    let start = Instant::now();
    let warm_until_ns = now_ns() + (seconds * WARM_UP * 1e9) as u64;
    let frames = (seconds * rate) as u64;
    let mut counted = 0u64;
    let mut taken_ns: Vec<u64> = Vec::with_capacity(frames as usize);
    let mut take_all = |arrivals: &mut Arrivals| -> io::Result<()> {
        while let Some((got, arrived_ns)) = arrivals.next()? {
            let Some(time) = got.last_chunk::<8>() else {
                continue;
            };
            let sent_ns = u64::from_be_bytes(*time);
            if sent_ns >= warm_until_ns && sent_ns <= arrived_ns {
                taken_ns.push(arrived_ns - sent_ns);
            }
        }
        Ok(())
    };
    for number in 0..frames {
        let due = Duration::from_secs_f64(number as f64 / rate);
        std::thread::sleep(due.saturating_sub(start.elapsed() + AWAKE_BEFORE));
        while start.elapsed() < due {
            std::hint::spin_loop();
        }
        let sent_ns = now_ns();
        frame[stamp..stamp + 8].copy_from_slice(&number.to_be_bytes());
        frame[stamp + 8..].copy_from_slice(&sent_ns.to_be_bytes());
        transmit.push(&frame);
        transmit.flush();
        counted += u64::from(sent_ns >= warm_until_ns);
        take_all(&mut arrivals)?;
    }
    std::thread::sleep(TAIL);
    take_all(&mut arrivals)?;
    if taken_ns.is_empty() {
        return Err(format!("none of {frames} frames came back on {into}").into());
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
