use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::Scenario;
use wormcast_protocol::Scheme;
#[test]
fn trace() {
    let scheme = Scheme::from_name(&std::env::var("SCHEME").unwrap_or("k-binomial".into())).unwrap();
    let rough = std::env::var("ROUGH").is_ok();
    let size: u64 = std::env::var("SIZE").ok().and_then(|s| s.parse().ok()).unwrap_or(4_000_000);
    let shape = std::env::var("SHAPE").unwrap_or("testbed".into());
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut scenario = Scenario::new(&shape, scheme, if rough { Damage::rough() } else { Damage::default() }, seed);
    scenario.write(0, &[size]);
    if std::env::var("UTIL").is_ok() {
        let mut last = std::collections::BTreeMap::new();
        for _ in 0..30 {
            scenario.run_for(50_000);
            let mut line = format!("{:6} ", scenario.fabric.now_ns / 1_000_000);
            for (place, link) in &scenario.fabric.links {
                let before = last.insert(*place, link.statistics.bytes).unwrap_or(0);
                let share = (link.statistics.bytes - before) as f64 * 8.0 / 0.05 / 1e8;
                let name = match place { wormcast_fabric_tests::fabric::Place::Host(h) => format!("h{h}"), wormcast_fabric_tests::fabric::Place::Switch(s, p) => format!("s{s}.{p}") };
                if share > 0.3 { line += &format!("{name}={share:.2} "); }
            }
            println!("{line}");
            if scenario.finish_events(0) > 0 { break; }
        }
        println!("{}", scenario.report());
        return;
    }
    let took = scenario.finish(0, 100_000_000);
    println!("{} took {} us; goodput share {:.3}", scheme.name(), took, size as f64*8.0/took as f64/100.0);
    println!("{}", scenario.report());
    scenario.check_delivered(0, 1, &[]);
}
