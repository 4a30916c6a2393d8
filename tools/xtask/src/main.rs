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
            println!("cargo xtask ci [--only STEP,..] [--skip STEP,..]\n    all steps below, in this order");
            for step in steps::STEPS {
                println!("cargo xtask {}\n    {}", step.name, step.about);
            }
            println!(
                "cargo xtask compare [--seconds N] [--repeats N] [--producers LIST] [--systems LIST] [--portable] \
                 [--dir DIR] [--json]\ncargo xtask compare --reopen LIST [--repeats N] [--dir DIR] [--json]\n    \
                 the journal beside other stores, in one run"
            );
            println!(
                "cargo xtask simulate --seed N [--steps N] | --seeds N [--from M] [--threads T]\n    the seeded \
                 simulation: one run with its trace, or many\ncargo xtask torture --minutes N [--from SEED]\n    \
                 crash images, faults and simulation in turns, with totals\ncargo xtask exhaustive\n    every small \
                 workload with every cut and every subset, once"
            );
            println!(
                "cargo xtask mutants [--all | NAME ..]\n    faults that the tests must notice; a part without arguments"
            );
            println!(
                "cargo xtask contract --write\n    generates `spec/openapi.yaml` and the request's schema anew"
            );
            println!("cargo xtask hotpath --json\n    what the step counts, as the text of its baseline");
            println!("cargo xtask fuzz [--seconds N] [TARGET ..]\n    the fuzz targets, a while each");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_help_behind_every_verb() {
        for verb in ["ci", "compare", "exhaustive", "mutants", "simulate", "tidy", "torture"] {
            assert!(run(&[verb.to_owned(), "--help".to_owned()]).is_ok(), "{verb}");
        }
    }
}
