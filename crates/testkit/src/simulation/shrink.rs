//! Making a failing plan shorter: steps are left out as long as it still fails in the same way.

use super::plan::{Action, Plan};
use super::run::run;

/// The shortest plan found within so many runs, and what it violates. A plan that does not fail comes back as it is.
pub fn shrink(plan: &Plan, runs_max: usize) -> Plan {
    let Some(kind) = run(plan).violation.map(|what| kind(&what)) else { return plan.clone() };
    let mut best = plan.clone();
    let mut runs = 0;
    let mut size = best.steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut shorter = false;
        while at < best.steps.len() && runs < runs_max {
            let mut next = best.clone();
            next.steps.drain(at..(at + size).min(best.steps.len()));
            runs += 1;
            if fails_alike(&next, &kind) {
                (best, shorter) = (next, true);
            } else {
                at += size;
            }
        }
        if runs >= runs_max || (size == 1 && !shorter) {
            return quiet(best, &kind);
        }
        size = (size / 2).max(1);
    }
}

/// Leaves out what steps do beside their names, where that changes nothing.
fn quiet(mut plan: Plan, kind: &str) -> Plan {
    for index in 0..plan.steps.len() {
        let mut next = plan.clone();
        let pump = &mut next.steps[index].pump;
        if !pump.maintain && !pump.tend {
            continue;
        }
        (pump.maintain, pump.tend) = (false, false);
        if fails_alike(&next, kind) {
            plan = next;
        }
    }
    plan.steps.retain(|step| step.action != Action::Nothing || step.pump.rounds > 0);
    plan
}

fn fails_alike(plan: &Plan, expected: &str) -> bool {
    run(plan).violation.is_some_and(|what| kind(&what) == expected)
}

/// A violation without its ids and numbers.
fn kind(what: &str) -> String {
    what.split(' ').filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect::<Vec<_>>().join(" ")
}
