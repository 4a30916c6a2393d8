//! The table of steps: the one list from which the verbs, `ci` and the help text are made.

use std::fmt;

use anyhow::{Result, anyhow};

use crate::process::Tally;
use crate::workspace::Workspace;
use crate::{cargo, contract, deny, floors, hotpath, locks, mutants, real, simulate, tidy};

/// One check. `run` prints findings as it meets them and returns an error when the change may not land.
pub struct Step {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Workspace) -> Result<Report>,
}

/// What a passed step has to say.
#[derive(Default)]
pub struct Report {
    pub note: String,
    pub tests: Tally,
}

impl Report {
    pub fn note(note: impl Into<String>) -> Self {
        Self { note: note.into(), tests: Tally::default() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.note)
    }
}

/// Cheap steps stand first, so that a slip is named before anything is compiled for minutes.
pub const STEPS: &[Step] = &[
    Step { name: "fmt", about: "rustfmt finds nothing to change", run: cargo::fmt },
    Step {
        name: "tidy",
        about: "lengths, names, headers, spec clauses, golden cases, places",
        run: tidy::step,
    },
    Step { name: "floors", about: "crates name lower floors only; floor 0 stays pure", run: floors::step },
    Step { name: "locks", about: "every Cargo.lock is what its manifests say", run: locks::step },
    Step { name: "deny", about: "licences, bans, sources; advisories with ADVISORY_ROOT", run: deny::step },
    Step {
        name: "contract",
        about: "OpenAPI document and request schema are what the code says",
        run: contract::step,
    },
    Step { name: "clippy", about: "whole workspace, all targets, warnings denied", run: cargo::clippy },
    Step { name: "test", about: "cargo test --workspace --locked", run: cargo::test },
    Step { name: "otel", about: "the build that exports traces, against a collector", run: cargo::otel },
    Step {
        name: "hotpath",
        about: "instructions and allocations of a commit, counted, against benches/hot_path.json",
        run: hotpath::step,
    },
    Step { name: "simulate", about: "2000 seeds of the simulation", run: simulate::step },
    Step {
        name: "mutants",
        about: "a few planted faults, another few each day: the tests must notice",
        run: mutants::step,
    },
    Step { name: "real", about: "tests that need more tools than Rust and a C compiler", run: real::step },
];

pub fn named(name: &str) -> Result<&'static Step> {
    STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        anyhow!("no step `{name}`; the steps are {}", known.join(", "))
    })
}
