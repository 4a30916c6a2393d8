//! Sealog's development commands: `cargo xtask VERB`.
//!
//! Owns the checks that decide whether a change may land. Every check is a step with a verb of its own, and `ci`
//! runs them in order. Nothing here is part of the product, and nothing here changes a tracked file.
#![expect(clippy::disallowed_methods, reason = "a development tool reads the source tree, not a journal")]

mod cargo;
mod ci;
mod compare;
mod contract;
mod deny;
mod exhaustive;
mod floors;
mod fuzz;
mod hotpath;
mod locks;
mod mutants;
mod process;
mod real;
mod simulate;
mod steps;
mod tidy;
mod torture;
mod workspace;

use std::process::ExitCode;

use steps::STEPS;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> anyhow::Result<()> {
    let asks_for_help = args.iter().any(|arg| arg == "--help" || arg == "-h");
    match args.split_first().filter(|_| !asks_for_help) {
        Some((verb, rest)) if verb == "ci" => {
            ci::run(&workspace::Workspace::find()?, &ci::Selection::parse(rest)?)
        }
        Some((verb, rest)) if verb == "fuzz" => {
            fuzz::run(&workspace::Workspace::find()?, &fuzz::Plan::parse(rest)?)
        }
        Some((verb, rest)) if verb == "compare" => {
            compare::run_plan(&workspace::Workspace::find()?, &compare::Plan::parse(rest)?)
        }
        Some((verb, rest)) if verb == "contract" => contract::run_args(&workspace::Workspace::find()?, rest),
        Some((verb, rest)) if verb == "hotpath" => hotpath::run_args(&workspace::Workspace::find()?, rest),
        Some((verb, rest)) if verb == "mutants" => mutants::run_args(&workspace::Workspace::find()?, rest),
        Some((verb, rest)) if verb == "simulate" => simulate::run_args(&workspace::Workspace::find()?, rest),
        Some((verb, rest)) if verb == "torture" => {
            torture::run(&workspace::Workspace::find()?, &torture::Plan::parse(rest)?)
        }
        Some((verb, [])) if verb == "exhaustive" => exhaustive::whole(&workspace::Workspace::find()?),
        Some((verb, [])) if verb != "help" => {
            let step = steps::named(verb)?;
            println!("{}", (step.run)(&workspace::Workspace::find()?)?);
            Ok(())
        }
        Some((verb, rest)) if verb != "help" => anyhow::bail!("`{verb}` takes no arguments, got {rest:?}"),
        _ => {
            print!("{}", help(args.first().map_or("help", String::as_str)));
            Ok(())
        }
    }
}

/// What `verb` takes and does; of one that has no words of its own, every verb.
fn help(verb: &str) -> String {
    let steps = STEPS.iter().map(|step| (step.name, "", step.about));
    let all = std::iter::once(("ci", " [--only STEP,..] [--skip STEP,..]", "all steps below, in this order"))
        .chain(steps)
        .chain(VERBS.iter().copied());
    let line = |(verb, args, about): (&str, &str, &str)| format!("cargo xtask {verb}{args}\n    {about}\n");
    let own: String = all.clone().filter(|(name, ..)| *name == verb).map(line).collect();
    if own.is_empty() { all.map(line).collect() } else { own }
}

/// What is no step, or takes more than a step does: the verb, its arguments, what it does.
const VERBS: &[(&str, &str, &str)] = &[
    (
        "compare",
        " [--seconds N] [--repeats N] [--producers LIST] [--systems LIST] [--portable] [--dir DIR] [--json]",
        "the journal beside other stores, in one run",
    ),
    ("compare", " --reopen LIST [--repeats N] [--dir DIR] [--json]", "how long a killed store takes to open"),
    (
        "simulate",
        " --seed N [--steps N] | --seeds N [--from M] [--threads T]",
        "the seeded simulation: one run with its trace, or many",
    ),
    (
        "torture",
        " --minutes N [--from SEED]",
        "crash images, faults and simulation in turns, each at least once, with totals",
    ),
    ("exhaustive", "", "every small workload with every cut and every subset, once"),
    ("mutants", " [--all | NAME ..]", "faults that the tests must notice; a part without arguments"),
    ("contract", " --write", "generates `spec/openapi.yaml` and the request's schema anew"),
    ("hotpath", " --json", "what the step counts, as the text of its baseline"),
    ("fuzz", " [--seconds N] [TARGET ..]", "the fuzz targets, a while each"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_help_behind_every_verb() {
        for verb in ["ci", "compare", "exhaustive", "mutants", "simulate", "tidy", "torture"] {
            assert!(run(&[verb.to_owned(), "--help".to_owned()]).is_ok(), "{verb}");
            let own = help(verb);
            let verbs = own.lines().filter(|line| line.starts_with("cargo"));
            assert!(verbs.clone().count() > 0 && verbs.clone().count() < 4, "{own}");
            assert!(verbs.clone().all(|line| line.starts_with(&format!("cargo xtask {verb}"))), "{own}");
        }
        assert!(help("help").lines().count() > 2 * STEPS.len());
        assert_eq!(help("nosuch"), help("help"));
    }
}
