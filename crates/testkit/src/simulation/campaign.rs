//! Many seeds, one after the other, and what they went through together.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::class::{Class, Totals};
use super::plan::Plan;
use super::run::{Finished, run};

/// A run that violated something.
#[derive(Clone, Debug)]
pub struct Failing {
    pub seed: u64,
    pub what: String,
}

/// What many runs came to.
#[derive(Clone, Debug, Default)]
pub struct Campaign {
    pub seeds: u64,
    pub totals: Totals,
    /// By seed.
    pub failing: Vec<Failing>,
}

/// Runs a plan; a panic is a violation.
fn guarded(plan: &Plan) -> Finished {
    let panicked =
        |_| Finished { trace: Vec::new(), violation: Some("PANIC".to_owned()), totals: Totals::default() };
    catch_unwind(AssertUnwindSafe(|| run(plan))).unwrap_or_else(panicked)
}

impl Campaign {
    /// Runs every seed of a range, on so many threads. Each run is a thread's own; only their order is not fixed.
    pub fn run(seeds: Range<u64>, threads: usize) -> Campaign {
        let next = AtomicU64::new(seeds.start);
        let all = Mutex::new(Campaign::default());
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds.end {
                            return;
                        }
                        let finished = guarded(&Plan::draw(seed, None));
                        let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        all.seeds += 1;
                        all.totals += &finished.totals;
                        if let Some(what) = finished.violation {
                            all.failing.push(Failing { seed, what });
                        }
                    }
                });
            }
        });
        let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.failing.sort_by_key(|one| one.seed);
        all
    }

    /// Classes that no run met: nothing is proved about them.
    pub fn missing(&self) -> Vec<Class> {
        self.totals.met.missing()
    }
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        writeln!(
            f,
            "{} seeds, {} steps, {} lives, {} crash images, {} disk faults, {} executions acknowledged, \
             {} events delivered, {} records held",
            self.seeds,
            totals.steps,
            totals.lives,
            totals.crash_images,
            totals.faults,
            totals.acknowledged_executions,
            totals.delivered_events,
            totals.records
        )?;
        for class in Class::ALL {
            writeln!(f, "{:>9}  {class}", totals.met.count(*class))?;
        }
        let count = |word: &str| self.failing.iter().filter(|one| one.what.starts_with(word)).count();
        writeln!(
            f,
            "{} lost, {} altered, {} phantom, {} violations in all",
            count("LOST"),
            count("ALTERED"),
            count("PHANTOM"),
            self.failing.len()
        )
    }
}
