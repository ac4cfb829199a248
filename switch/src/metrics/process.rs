//! What the process itself uses, under the names every Prometheus client library gives
//! them (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>).

use std::fs;

use super::exposition::{Family, Kind};

/// Units of processor time in `/proc/self/stat`, a second: `USER_HZ`, 100 wherever Linux
/// shows it to programs.
const TICKS_A_SECOND: f64 = 100.0;

/// What `/proc/self` says at this moment; what cannot be read is left out.
pub fn process_families() -> Vec<Family> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let descriptors = fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
    families(
        &read("/proc/self/stat"),
        &read("/proc/self/status"),
        descriptors,
    )
}

/// Reads proc_pid_stat(5) and proc_pid_status(5).
fn families(stat: &str, status: &str, descriptors: Option<usize>) -> Vec<Family> {
    // The name may itself hold spaces and parentheses; the field after it is the third.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |number: usize| -> Option<f64> { fields.get(number - 3)?.parse().ok() };
    let line = |name: &str| -> Option<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let mut families = Vec::new();
    let mut add = |kind, name, help, value: Option<f64>| {
        let mut family = Family::new(kind, name, help);
        if let Some(value) = value {
            family.add(&[], value);
            families.push(family);
        }
    };
    add(
        Kind::Counter,
        "process_cpu_seconds_total",
        "Processor time of all threads, user and system.",
        ticks(14)
            .zip(ticks(15))
            .map(|(user, system)| (user + system) / TICKS_A_SECOND),
    );
    add(
        Kind::Gauge,
        "process_virtual_memory_bytes",
        "Virtual memory.",
        line("VmSize:").map(|kibibytes| kibibytes * 1024.0),
    );
    add(
        Kind::Gauge,
        "process_resident_memory_bytes",
        "Memory that is resident.",
        line("VmRSS:").map(|kibibytes| kibibytes * 1024.0),
    );
    add(Kind::Gauge, "process_threads", "Threads.", line("Threads:"));
    add(
        Kind::Gauge,
        "process_open_fds",
        "File descriptors that are open.",
        descriptors.map(|count| count as f64),
    );
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_name_with_parentheses() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9 0 77 4096000 25 0 1";
        let status = "Name:\ta) b\nVmSize:\t    4000 kB\nVmRSS:\t     100 kB\nThreads:\t9\n";
        let families = families(stat, status, Some(12));
        let values: Vec<(&str, f64)> = families
            .iter()
            .map(|family| (family.name, family.samples[0].value))
            .collect();
        assert_eq!(
            values,
            [
                ("process_cpu_seconds_total", 2.0),
                ("process_virtual_memory_bytes", 4_096_000.0),
                ("process_resident_memory_bytes", 102_400.0),
                ("process_threads", 9.0),
                ("process_open_fds", 12.0),
            ]
        );
    }

    #[test]
    fn this_process_has_memory_and_nothing_is_made_up() {
        let found = process_families();
        let resident = found
            .iter()
            .find(|family| family.name == "process_resident_memory_bytes");
        assert!(resident.unwrap().samples[0].value > 100_000.0);
        assert!(families("", "", None).is_empty());
    }
}
