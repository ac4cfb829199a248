//! Namespaces and links.

use std::process::Command;

/// The network namespace that the calling thread has been moved to; the kernel removes it,
/// and the interfaces in it, with its last thread and process.
pub struct Namespace(());

impl Namespace {
    pub fn enter() -> Option<Self> {
        // SAFETY: plain system call; it concerns the calling thread alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            let error = std::io::Error::last_os_error();
            eprintln!("SKIPPED: no network namespace for the test ({error}); run it as root");
            return None;
        }
        ip(&["link", "set", "lo", "up"]);
        Some(Self(()))
    }
}

/// A veth pair, both ends up.
pub fn add_link(a: &str, b: &str) {
    ip(&["link", "add", a, "type", "veth", "peer", "name", b]);
    for end in [a, b] {
        ip(&["link", "set", end, "up"]);
    }
}

/// Runs `ip` and insists on success.
pub fn ip(arguments: &[&str]) {
    run("ip", arguments);
}

/// Shapes what leaves by an interface.
pub fn shape(interface: &str, rate: &str) {
    run(
        "tc",
        &[
            "qdisc", "replace", "dev", interface, "root", "tbf", "rate", rate, "burst", "20kb",
            "limit", "60kb",
        ],
    );
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
}
