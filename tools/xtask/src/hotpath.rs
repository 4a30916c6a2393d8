//! The step `hotpath`: instructions and allocations of a commit, counted under valgrind and held against
//! `benches/hot_path.json`. A clock on a busy machine cannot tell a regression from a neighbour; a count can.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::steps::Report;
use crate::workspace::{Workspace, target_folder};

const BASELINE: &str = "benches/hot_path.json";
/// Producers, and the records of the longer one of two runs. What both runs do before the first record and after the
/// last one is the same and drops out of their difference.
const CASES: [(u64, u64); 3] = [(1, 1_500), (64, 38_400), (256, 76_800)];
/// A count may be so much above its baseline, in thousandths. Hash seeds and the state of the allocator move a run
/// by less than a tenth of that.
const ABOVE_THOUSANDTHS: u64 = 50;
/// Below the baseline by more than this it is the baseline that is wrong: it would hide the next regression.
const BELOW_THOUSANDTHS: u64 = 100;
/// The functions of the C library that Rust's allocator calls.
const ALLOCATORS: [&str; 4] = ["malloc", "calloc", "realloc", "posix_memalign"];

/// Of one record; allocations in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    instructions: u64,
    allocations_thousandths: u64,
}

/// Of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    allocations: u64,
}

pub fn step(workspace: &Workspace) -> Result<Report> {
    let path = workspace.root.join(BASELINE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("{BASELINE} cannot be read"))?;
    let baseline =
        parse_baseline(&text).with_context(|| format!("{BASELINE} is not what this step writes"))?;
    let measured = measure(workspace)?;
    let mut findings = Vec::new();
    for (producers, cost) in &measured {
        println!(
            "{producers:>4} producers: {} instructions and {:.2} allocations a record",
            cost.instructions,
            cost.allocations_thousandths as f64 / 1000.0
        );
        let held =
            baseline.get(producers).with_context(|| format!("{BASELINE} lacks {producers} producers"))?;
        findings.extend(verdict(*producers, "instructions", held.instructions, cost.instructions));
        let (held, found) = (held.allocations_thousandths, cost.allocations_thousandths);
        findings.extend(verdict(*producers, "allocations (thousandths)", held, found));
    }
    if !findings.is_empty() {
        bail!(
            "{}\nif that is meant: cargo xtask hotpath --json > {BASELINE}, and say in docs/performance.md why",
            findings.join("\n")
        );
    }
    Ok(Report::note(format!("{} cases within {} % of {BASELINE}", measured.len(), ABOVE_THOUSANDTHS / 10)))
}

/// `--json` prints what was counted as the text of the baseline and compares nothing.
pub fn run_args(workspace: &Workspace, args: &[String]) -> Result<()> {
    match args {
        [] => println!("{}", step(workspace)?),
        [flag] if flag == "--json" => print!("{}", baseline_text(&measure(workspace)?)),
        _ => bail!("`hotpath` knows --json, not {args:?}"),
    }
    Ok(())
}

fn verdict(producers: u64, what: &str, held: u64, found: u64) -> Option<String> {
    if found * 1000 > held * (1000 + ABOVE_THOUSANDTHS) {
        return Some(format!("{producers} producers: {what} went up from {held} to {found}"));
    }
    if found * 1000 < held * (1000 - BELOW_THOUSANDTHS) {
        return Some(format!(
            "{producers} producers: {what} went down from {held} to {found}, the baseline did not"
        ));
    }
    None
}

fn measure(workspace: &Workspace) -> Result<BTreeMap<u64, Cost>> {
    let mut build = crate::cargo::cargo(workspace);
    build.args(["build", "--release", "--locked", "--quiet", "--package", "sealog-benches"]);
    build.args(["--example", "hot_path"]).stdin(Stdio::null()).stdout(std::io::stderr());
    if !build.status()?.success() {
        bail!("the example hot_path was not built");
    }
    let program = target_folder(workspace)?.join("release/examples/hot_path");
    let scratch = tempfile::tempdir()?;
    let mut costs = BTreeMap::new();
    for (producers, records) in CASES {
        let groups = records / producers;
        let short = count(&program, scratch.path(), producers, groups / 3)?;
        let long = count(&program, scratch.path(), producers, groups)?;
        costs.insert(producers, cost(short, long, (groups - groups / 3) * producers)?);
    }
    Ok(costs)
}

fn cost(short: Counts, long: Counts, records: u64) -> Result<Cost> {
    let more = |of: fn(&Counts) -> u64| {
        of(&long).checked_sub(of(&short)).context("the longer run took less than the shorter one")
    };
    let cost = Cost {
        instructions: more(|counts| counts.instructions)? / records,
        allocations_thousandths: more(|counts| counts.allocations)? * 1000 / records,
    };
    if cost.instructions == 0 || cost.allocations_thousandths == 0 {
        bail!("nothing was counted: {cost:?}");
    }
    Ok(cost)
}

fn count(program: &Path, scratch: &Path, producers: u64, groups: u64) -> Result<Counts> {
    let profile = scratch.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet", "--compress-strings=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
    valgrind.arg(program).args([producers.to_string(), groups.to_string()]);
    let output = valgrind.stdin(Stdio::null()).output().context("cannot start valgrind")?;
    if !output.status.success() {
        bail!("valgrind ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    parse_profile(&std::fs::read_to_string(&profile)?)
}

/// Reads a callgrind profile: its sum, and how often the allocator was entered.
fn parse_profile(text: &str) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut summed = false;
    let mut callee = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let number = calls.split(' ').next().unwrap_or_default();
            let number: u64 = number.parse().context("calls= is followed by a number")?;
            counts.allocations += if ALLOCATORS.contains(&callee) { number } else { 0 };
        } else if let Some(sum) = line.strip_prefix("summary: ") {
            counts.instructions = sum.trim().parse().context("summary: is followed by a number")?;
            summed = true;
        }
    }
    if !summed {
        bail!("the profile has no sum");
    }
    Ok(counts)
}

fn baseline_text(costs: &BTreeMap<u64, Cost>) -> String {
    let lines: Vec<String> = costs
        .iter()
        .map(|(producers, cost)| {
            let Cost { instructions, allocations_thousandths } = cost;
            let line = json!({
                "producers": producers,
                "instructions_per_record": instructions,
                "allocations_per_1000_records": allocations_thousandths,
            });
            format!("  {line}")
        })
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn parse_baseline(text: &str) -> Result<BTreeMap<u64, Cost>> {
    let lines: Vec<Value> = serde_json::from_str(text)?;
    let number = |line: &Value, name: &str| line[name].as_u64().with_context(|| format!("no {name}"));
    lines
        .iter()
        .map(|line| {
            let cost = Cost {
                instructions: number(line, "instructions_per_record")?,
                allocations_thousandths: number(line, "allocations_per_1000_records")?,
            };
            Ok((number(line, "producers")?, cost))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_gives_its_sum_and_the_calls_of_the_allocator_alone() {
        let text = "events: Ir\nfn=main\n10 5\ncfn=malloc\ncalls=3 0\n11 90\ncfn=free\ncalls=2 0\n12 7\nfn=other\n\
                    cfn=calloc\ncalls=4 0\n13 8\n\nsummary: 1234\ntotals: 1234\n";
        assert_eq!(parse_profile(text).unwrap(), Counts { instructions: 1234, allocations: 7 });
        assert!(parse_profile("events: Ir\n").is_err(), "a profile that was cut says nothing");
    }

    #[test]
    fn what_both_runs_do_drops_out() {
        let run = |instructions, allocations| Counts { instructions, allocations };
        let found = cost(run(1_000, 10), run(5_000, 210), 100).unwrap();
        assert_eq!(found, Cost { instructions: 40, allocations_thousandths: 2_000 });
        assert!(cost(run(5_000, 10), run(1_000, 10), 100).is_err());
        assert!(cost(run(1_000, 10), run(1_010, 11), 100).is_err(), "no work is no measurement");
    }

    #[test]
    fn a_count_may_move_a_little_and_no_more() {
        assert_eq!(verdict(1, "x", 1000, 1050), None);
        assert_eq!(verdict(1, "x", 1000, 900), None);
        assert!(verdict(1, "x", 1000, 1051).is_some_and(|text| text.contains("went up from 1000 to 1051")));
        assert!(verdict(1, "x", 1000, 899).is_some_and(|text| text.contains("went down")));
    }

    #[test]
    fn the_baseline_reads_back_as_it_was_written() {
        let cost = |instructions, allocations_thousandths| Cost { instructions, allocations_thousandths };
        let costs = BTreeMap::from([(1, cost(9_000, 12_500)), (64, cost(4_000, 5_000))]);
        assert_eq!(parse_baseline(&baseline_text(&costs)).unwrap(), costs);
        assert!(parse_baseline("[{\"producers\": 1}]").is_err());
    }
}
