//! Runs the simulation from the command line; `cargo xtask simulate` is the way to call it.
//!
//! `--seeds N [--from M] [--threads T]` runs many seeds and says what they went through. `--seed N [--steps N]` runs one
//! and prints its trace; one that fails is shrunk. `--times N` says how long single seeds take.

use std::process::ExitCode;

use sealog_testkit::simulation::{Campaign, Plan, run, shrink};

/// Fewer seeds than this are no proof that every class is drawn.
const SEEDS_FOR_ALL_CLASSES: u64 = 200;
const SHRINK_RUNS_MAX: usize = 400;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| -> Option<u64> {
        let at = args.iter().position(|arg| arg == name)?;
        Some(args.get(at + 1).and_then(|value| value.parse().ok()).expect("a number behind the option"))
    };
    let steps = number("--steps").map(|steps| steps as usize);
    match (number("--seed"), number("--seeds")) {
        (Some(seed), None) => one(seed, steps),
        (None, Some(seeds)) => {
            let from = number("--from").unwrap_or(1);
            many(from, seeds, number("--threads").unwrap_or(2) as usize)
        }
        (Some(_), Some(_)) | (None, None) => {
            eprintln!("simulate --seed N [--steps N] | --seeds N [--from M] [--threads T]");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, steps: Option<usize>) -> ExitCode {
    let plan = Plan::draw(seed, steps);
    let finished = run(&plan);
    finished.trace.iter().for_each(|line| println!("{line}"));
    let Some(what) = finished.violation else {
        println!("seed {seed}: nothing was violated in {} steps", plan.steps.len());
        return ExitCode::SUCCESS;
    };
    println!("seed {seed}: {what}\nshrinking ..");
    let short = shrink(&plan, SHRINK_RUNS_MAX);
    println!(
        "the shortest of {} runs has {} of {} steps:",
        SHRINK_RUNS_MAX,
        short.steps.len(),
        plan.steps.len()
    );
    short.steps.iter().for_each(|step| println!("{:?} {:?}", step.action, step.pump));
    println!("its trace:");
    run(&short).trace.iter().for_each(|line| println!("{line}"));
    ExitCode::FAILURE
}

fn many(from: u64, seeds: u64, threads: usize) -> ExitCode {
    let campaign = Campaign::run(from..from + seeds, threads);
    print!("{campaign}");
    for failing in campaign.failing.iter().take(20) {
        println!("seed {}: {}\n    cargo xtask simulate --seed {}", failing.seed, failing.what, failing.seed);
    }
    let missing = if seeds >= SEEDS_FOR_ALL_CLASSES { campaign.missing() } else { Vec::new() };
    for class in &missing {
        println!("no run met: {class}");
    }
    if campaign.failing.is_empty() && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
