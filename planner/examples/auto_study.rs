//! The study of `bench/cost/run`: how good the choice of `auto` is. Writes one line a case
//! to the CSV file named by `--csv`, progress to standard error and a summary in Markdown
//! to standard output.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

#[path = "../tests/study/mod.rs"]
mod study;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use study::{COSTS, Found, Study};

const USAGE: &str = "auto_study [--quick|--long] [--no-refine] [--networks SPEC,…] [--sizes N,…] \
     [--bytes N,…] [--csv FILE]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut length, mut refine, mut csv) = (Length::Usual, true, None);
    let (mut networks, mut sizes, mut bytes) = (None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => length = Length::Quick,
            "--long" => length = Length::Long,
            "--no-refine" => refine = false,
            "--networks" => networks = Some(arguments.next().ok_or(USAGE)?),
            "--sizes" => sizes = Some(arguments.next().ok_or(USAGE)?),
            "--bytes" => bytes = Some(arguments.next().ok_or(USAGE)?),
            "--csv" => csv = Some(arguments.next().ok_or(USAGE)?),
            other => return Err(format!("{other} is not understood; usage: {USAGE}").into()),
        }
    }
    let mut study = plan(length, refine);
    if let Some(specs) = networks {
        let named = |spec: &str| ("named", spec.to_owned());
        study.networks = specs.split(',').map(named).collect();
    }
    if let Some(list) = sizes {
        study.sizes = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
    }
    if let Some(list) = bytes {
        study.bytes = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
    }
    let cases = study.cases();
    let mut table = String::from(
        "kind,network,costs,family,members,group,bytes,picked,picked_us,estimate_us,best,best_us,\
         ratio,candidates,replayed,planning_us\n",
    );
    let mut all: Vec<Found> = Vec::with_capacity(cases);
    study.run(|found, _| {
        writeln!(
            table,
            "{},{},{},{},{},{},{},{},{:.3},{:.3},{},{:.3},{:.5},{},{},{:.0}",
            found.kind,
            found.network,
            found.costs,
            found.family,
            found.members,
            found.group,
            found.bytes,
            found.picked,
            found.picked_ns / 1e3,
            found.estimate_ns / 1e3,
            found.best,
            found.best_ns / 1e3,
            found.ratio(),
            found.candidates,
            found.replayed,
            found.planning_us,
        )
        .expect("strings take all");
        all.push(found);
        progress(all.len(), cases);
    });
    if let Some(path) = csv {
        std::fs::write(path, table)?;
    }
    summarise(&all);
    Ok(())
}

/// How much is gone through.
#[derive(Clone, Copy, PartialEq)]
enum Length {
    Quick,
    Usual,
    Long,
}

fn plan(length: Length, refine: bool) -> Study {
    let quick = length == Length::Quick;
    let mut networks: Vec<(&'static str, String)> = vec![
        ("torus", "torus:4".into()),
        ("one-way torus", "unidirectional-torus:4".into()),
        ("irregular 16", "irregular:16:1".into()),
        ("fat tree", "fat-tree:4".into()),
    ];
    if !quick {
        networks.push(("torus", "torus:8".into()));
        networks.push(("one-way torus", "unidirectional-torus:8".into()));
        networks.push(("fat tree", "fat-tree:8".into()));
        for seed in 2..=3 {
            networks.push(("irregular 16", format!("irregular:16:{seed}")));
        }
        for seed in 1..=2 {
            networks.push(("irregular 64", format!("irregular:64:{seed}")));
        }
    }
    Study {
        networks,
        sizes: if quick {
            vec![2, 8, 16]
        } else {
            vec![2, 4, 8, 16, 32, 64]
        },
        bytes: match length {
            Length::Quick => vec![64, 16 << 10, 256 << 10],
            Length::Usual => vec![64, 1 << 10, 16 << 10, 256 << 10],
            Length::Long => vec![64, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20],
        },
        costs: COSTS.to_vec(),
        groups: 1,
        families: vec!["all", "hosts"],
        refine,
    }
}

fn progress(done: usize, cases: usize) {
    let mut err = std::io::stderr();
    if !err.is_terminal() && done != cases && !done.is_multiple_of(cases / 20 + 1) {
        return;
    }
    let full = done * 40 / cases;
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(40 - full));
    let end = if err.is_terminal() && done != cases {
        '\r'
    } else {
        '\n'
    };
    // Nobody may be reading.
    let _ = write!(err, "[{bar}] {done} of {cases} cases{end}");
}

fn summarise(all: &[Found]) {
    println!("| network | schemes | cases | best picked | mean ratio | worst ratio | the worst |");
    println!("|---|---|---:|---:|---:|---:|---|");
    let mut kinds: BTreeMap<(&str, &str), Vec<&Found>> = BTreeMap::new();
    for found in all {
        kinds
            .entry((found.kind, found.family))
            .or_default()
            .push(found);
        kinds
            .entry(("every", found.family))
            .or_default()
            .push(found);
    }
    for ((kind, family), found) in &kinds {
        let best = found.iter().filter(|one| one.ratio() <= 1.0).count();
        let mean = found.iter().map(|one| one.ratio()).sum::<f64>() / found.len() as f64;
        let worst = found
            .iter()
            .max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
            .expect("no kind without cases");
        println!(
            "| {kind} | {family} | {} | {:.1} % | {mean:.4} | {:.3} | {} {} n={} {} B: {}, best {} |",
            found.len(),
            100.0 * best as f64 / found.len() as f64,
            worst.ratio(),
            worst.network,
            worst.costs,
            worst.members,
            worst.bytes,
            worst.picked,
            worst.best,
        );
    }
    println!(
        "\n| members | candidates, median | replayed, median | planning: median | 90 % | most |"
    );
    println!("|---:|---:|---:|---:|---:|---:|");
    let mut sizes: BTreeMap<usize, Vec<&Found>> = BTreeMap::new();
    for found in all {
        sizes.entry(found.members).or_default().push(found);
    }
    for (size, found) in &sizes {
        let sorted = |of: &dyn Fn(&Found) -> f64| {
            let mut values: Vec<f64> = found.iter().map(|one| of(one)).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let times = sorted(&|one| one.planning_us);
        let at = |share: usize| times[(times.len() - 1) * share / 100] / 1e3;
        let candidates = sorted(&|one| one.candidates as f64);
        let replayed = sorted(&|one| one.replayed as f64);
        println!(
            "| {size} | {} | {} | {:.2} ms | {:.2} ms | {:.1} ms |",
            candidates[candidates.len() / 2],
            replayed[replayed.len() / 2],
            at(50),
            at(90),
            at(100),
        );
    }
    let mut schemes: BTreeMap<&str, usize> = BTreeMap::new();
    for found in all {
        *schemes
            .entry(found.best.split(' ').next().unwrap_or_default())
            .or_default() += 1;
    }
    let shares: Vec<String> = schemes
        .iter()
        .map(|(name, count)| format!("{name} {:.0} %", 100.0 * *count as f64 / all.len() as f64))
        .collect();
    println!("\nThe best scheme is: {}.", shares.join(", "));
}
