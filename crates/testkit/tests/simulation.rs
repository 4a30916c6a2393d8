//! The short form of the simulation, and what its results rest on: one seed is one run, and an oracle that can fail.

use sealog_testkit::simulation::{Action, Campaign, Class, Plan, run, shrink};

/// Seeds of the plain test command; `cargo xtask simulate` runs others, and more.
const SEEDS: u64 = 300;

#[test]
fn whatever_happens_everything_told_is_kept_and_nothing_else_is_there() {
    let campaign = Campaign::run(500_000..500_000 + SEEDS, 2);
    println!("{campaign}");
    let failing: Vec<String> =
        campaign.failing.iter().map(|one| format!("seed {}: {}", one.seed, one.what)).collect();
    assert!(failing.is_empty(), "replay with `cargo xtask simulate --seed N`: {failing:#?}");
    assert_eq!(campaign.missing(), [], "no run met these");
    let totals = &campaign.totals;
    assert!(totals.crash_images > SEEDS && totals.delivered_events > SEEDS && totals.records > 10 * SEEDS);
}

#[test]
fn one_seed_is_one_run_byte_for_byte() {
    for seed in 1..=25 {
        let (first, second) = (run(&Plan::draw(seed, None)), run(&Plan::draw(seed, None)));
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert!(!first.trace.is_empty() && first.totals == second.totals, "seed {seed}");
    }
}

#[test]
fn a_run_on_another_thread_beside_others_is_the_same_run() {
    let alone = run(&Plan::draw(7, None)).trace;
    let beside = std::thread::scope(|scope| {
        let others: Vec<_> = (0..3).map(|_| scope.spawn(|| run(&Plan::draw(7, None)).trace)).collect();
        others.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(beside.iter().all(|trace| *trace == alone));
}

#[test]
fn any_steps_can_be_left_out() {
    for seed in 1..=10 {
        let whole = Plan::draw(seed, None);
        let mut plan = whole.clone();
        plan.steps = whole.steps.iter().step_by(3).cloned().collect();
        assert_eq!(run(&plan).violation, None, "seed {seed}");
        assert_eq!(run(&Plan::draw(seed, Some(5))).totals.steps, 5, "seed {seed}");
    }
}

#[test]
fn a_plan_that_violates_nothing_is_not_shrunk() {
    let plan = Plan::draw(3, Some(10));
    assert_eq!(shrink(&plan, 50).steps, plan.steps);
}

#[test]
fn a_run_without_faults_orders_none() {
    let peaceful = (1..200).map(|seed| Plan::draw(seed, None)).find(|plan| !plan.swarm.faults).unwrap();
    let harmful = |action: &Action| {
        matches!(
            action,
            Action::Fault(_)
                | Action::Kill
                | Action::PowerLoss { .. }
                | Action::PowerCut { .. }
                | Action::Space { .. }
                | Action::Starve { .. }
        )
    };
    assert!(!peaceful.steps.iter().any(|step| harmful(&step.action)));
    let finished = run(&peaceful);
    assert_eq!((finished.violation, finished.totals.faults), (None, 0));
    assert_eq!(finished.totals.met.count(Class::Faultless), 1);
}
