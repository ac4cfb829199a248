//! A network namespace for one test, with pairs of interfaces.

use std::process::Command;
use std::time::{Duration, Instant};

use super::rig::PATIENCE;
use wormcast_switch_ports::Asker;

/// Runs `test` on a thread of its own, in a network namespace of its own. Without the
/// rights for one it says so and does nothing.
pub fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let name = std::thread::current().name().unwrap_or("test").to_owned();
    let thread = std::thread::spawn(move || {
        // SAFETY: no pointers; it changes the namespace of this thread alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let error = std::io::Error::last_os_error();
            eprintln!("SKIPPED {name}: no network namespace: {error} (needs root)");
            return;
        }
        // Nothing but what the test sends shall be on the links.
        run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
        run("ip link set lo up");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a command in the namespace of this thread.
pub fn run(command: &str) {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {text}");
}

/// Two interfaces, a cable between them, both up and carrying.
pub fn add_link(one: &str, other: &str) {
    run(&format!("ip link add {one} type veth peer name {other}"));
    run(&format!("ip link set {one} up"));
    run(&format!("ip link set {other} up"));
    wait_until_links_carry(&[one, other]);
}

/// Until then the kernel itself drops what is sent: it looks at carriers in its own time.
pub fn wait_until_links_carry(names: &[&str]) {
    let start = Instant::now();
    let mut asker = Asker::default();
    let mut carries = |name: &&str| asker.find(name).is_some_and(|(_, look)| look.running);
    while !names.iter().all(&mut carries) {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    // It says so a moment before it lets frames through, but does both under the lock that this takes.
    for name in names {
        run(&format!("ip link set {name} up"));
    }
}
