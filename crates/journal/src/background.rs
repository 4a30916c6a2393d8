//! What may take its time: summaries, the scrub, compaction. One thread, one step after the other, one token bucket for
//! all of them. It never holds what a commit waits for while it reads or writes, and gives way when commits get slow.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::counters::HistogramView;
use crate::error::JournalError;
use crate::shared::{Shared, lock};

/// How long a kind of work rests after it failed; doubled with each failure in a row.
const REST: Duration = Duration::from_secs(5);
const REST_DOUBLINGS_MAX: u32 = 7;
/// Between two looks for work.
const IDLE_PAUSE: Duration = Duration::from_millis(100);
/// The same, while there was something just now that goes on coming.
const SOON_PAUSE: Duration = Duration::from_millis(10);
/// Between two looks at the commits while they are slow.
const STRAINED_PAUSE: Duration = Duration::from_millis(50);
/// On a disk whose commits are never even, work goes on at least this often, one piece at a time.
const STRAINED_MAX: Duration = Duration::from_secs(5);

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There was nothing to do.
    Idle,
    /// What there was is done, and more is to be expected.
    Soon,
    /// Something was done; there may be more.
    Done,
}

/// Why a step did not come to its end. What it left is of no use to anybody and is removed by whoever finds it.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The journal is being closed.
    Stopped,
    Failed(JournalError),
}

impl<E: Into<JournalError>> From<E> for Halt {
    fn from(error: E) -> Halt {
        Halt::Failed(error.into())
    }
}

/// One kind of work. A step is a piece that makes sense by itself (one segment); within it, [`Pace::spend`] is called
/// for every few hundred KiB that were read or written.
pub(crate) trait Work: Send + fmt::Debug {
    /// As operators read it.
    fn name(&self) -> &'static str;

    fn step(&mut self, shared: &Shared, pace: &mut Pace<'_>) -> Result<Step, Halt>;
}

/// Lets bytes through at a rate. What is spent beyond it is owed.
#[derive(Debug)]
struct Bucket {
    bytes_per_second: u64,
    /// Paid for up to this time.
    paid: Duration,
}

impl Bucket {
    /// How much may be spent at once after a pause.
    const BURST: Duration = Duration::from_millis(100);

    /// How long to wait, from `now` on, after this many bytes.
    fn spend(&mut self, now: Duration, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second.max(1));
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.paid = self.paid.max(now.saturating_sub(Self::BURST)).saturating_add(cost);
        self.paid.saturating_sub(now)
    }
}

/// Whether commits are slow just now: their p99 is above twice their median.
#[derive(Debug)]
struct Strain {
    window: Duration,
    since: Duration,
    seen: Option<HistogramView>,
    strained: bool,
}

impl Strain {
    /// Fewer groups than this say nothing about a percentile.
    const GROUPS_MIN: u64 = 100;
    const WINDOW: Duration = Duration::from_millis(500);

    fn new() -> Strain {
        Strain { window: Self::WINDOW, since: Duration::ZERO, seen: None, strained: false }
    }

    fn look(&mut self, now: Duration, view: HistogramView) -> bool {
        let Some(seen) = &self.seen else {
            (self.seen, self.since) = (Some(view), now);
            return false;
        };
        let recent = view.since(seen);
        if recent.count() >= Self::GROUPS_MIN || now.saturating_sub(self.since) >= self.window {
            let enough = recent.count() >= Self::GROUPS_MIN;
            self.strained = enough && recent.quantile(990) > 2 * recent.quantile(500);
            (self.seen, self.since) = (Some(view), now);
        }
        self.strained
    }
}

/// Holds a step back: to the rate, and while commits are slow.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    shared: &'a Shared,
    bucket: &'a mut Bucket,
    strain: &'a mut Strain,
    /// `false` in a simulation, whose clock does not move by itself.
    waits: bool,
    /// Only the rate holds it back.
    urgent: bool,
}

impl Pace<'_> {
    /// This step goes on while commits are slow, too.
    pub fn urgent(&mut self) {
        self.urgent = true;
    }

    /// As [`Pace::spend`], of what costs the disk nothing.
    ///
    /// # Errors
    /// As there.
    pub fn goes_on(&self) -> Result<(), Halt> {
        if is_over(self.shared) { Err(Halt::Stopped) } else { Ok(()) }
    }

    /// Call after so many bytes were read or written.
    ///
    /// # Errors
    /// `Stopped`: give up what was begun.
    pub fn spend(&mut self, bytes: u64) -> Result<(), Halt> {
        let shared = self.shared;
        if self.waits {
            let wait = self.bucket.spend(shared.clock.monotonic(), bytes);
            pause(shared, wait);
            let from = shared.clock.monotonic();
            while !self.urgent
                && self.strain.look(shared.clock.monotonic(), shared.counting.sync_us.view())
                && shared.clock.monotonic().saturating_sub(from) < STRAINED_MAX
                && !is_over(shared)
            {
                pause(shared, STRAINED_PAUSE);
            }
        }
        self.goes_on()
    }
}

/// For work that somebody waits for: neither rate nor strain holds it back.
pub(crate) fn at_full_speed<R>(shared: &Shared, work: impl FnOnce(&mut Pace<'_>) -> R) -> R {
    let mut bucket = Bucket { bytes_per_second: u64::MAX, paid: Duration::ZERO };
    let mut strain = Strain::new();
    work(&mut Pace { shared, bucket: &mut bucket, strain: &mut strain, waits: false, urgent: false })
}

fn is_over(shared: &Shared) -> bool {
    let status = lock(&shared.status);
    shared.stop_helper.load(Ordering::Acquire) || status.poisoned.is_some() || status.closed
}

/// Ends early when the journal is closed: whoever does that unparks this thread.
fn pause(shared: &Shared, wait: Duration) {
    let until = shared.clock.monotonic().saturating_add(wait);
    while !is_over(shared) {
        let left = until.saturating_sub(shared.clock.monotonic());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}

#[derive(Debug)]
struct Kind {
    work: Box<dyn Work>,
    failures: u32,
    rests_until: Duration,
}

/// All kinds of work, the most urgent first.
#[derive(Debug)]
pub(crate) struct Background {
    kinds: Vec<Kind>,
    bucket: Bucket,
    strain: Strain,
}

impl Background {
    pub fn new(bytes_per_second: u64, kinds: Vec<Box<dyn Work>>) -> Background {
        let kind = |work| Kind { work, failures: 0, rests_until: Duration::ZERO };
        Background {
            kinds: kinds.into_iter().map(kind).collect(),
            bucket: Bucket { bytes_per_second, paid: Duration::ZERO },
            strain: Strain::new(),
        }
    }

    /// One step of the first kind that has something to do that takes its time; idle also if the journal is over.
    pub fn step(&mut self, shared: &Shared, waits: bool) -> Step {
        let mut rest = Step::Idle;
        for kind in &mut self.kinds {
            let now = shared.clock.monotonic();
            if is_over(shared) {
                return Step::Idle;
            }
            if kind.failures > 0 && now < kind.rests_until {
                continue;
            }
            let (bucket, strain) = (&mut self.bucket, &mut self.strain);
            let mut pace = Pace { shared, bucket, strain, waits, urgent: false };
            match kind.work.step(shared, &mut pace) {
                Ok(Step::Idle) => kind.failures = 0,
                Ok(Step::Soon) => (kind.failures, rest) = (0, Step::Soon),
                Ok(Step::Done) => {
                    kind.failures = 0;
                    return Step::Done;
                }
                Err(Halt::Stopped) => return Step::Idle,
                Err(Halt::Failed(error)) => {
                    tracing::warn!(error = %error, work = kind.work.name(), "work in the background failed");
                    kind.rests_until = now + REST * (1 << kind.failures.min(REST_DOUBLINGS_MAX));
                    kind.failures += 1;
                }
            }
        }
        rest
    }

    /// What the thread does until the journal is closed or poisoned.
    pub fn run(&mut self, shared: &Shared) {
        while !is_over(shared) {
            match self.step(shared, true) {
                Step::Idle => pause(shared, IDLE_PAUSE),
                Step::Soon => pause(shared, SOON_PAUSE),
                Step::Done => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::counters::Histogram;
    use crate::tests::setup::Bench;

    #[test]
    fn the_bucket_lets_its_rate_through_and_no_more() {
        let mut bucket = Bucket { bytes_per_second: 1 << 20, paid: Duration::ZERO };
        let start = Duration::from_secs(100);
        let mut now = start;
        for _ in 0..40 {
            now += bucket.spend(now, 256 << 10);
        }
        let took = now - start;
        assert!(took > Duration::from_millis(9_800) && took <= Duration::from_secs(10), "{took:?}");
        // A long pause saves up no more than a burst.
        now += Duration::from_secs(1000);
        assert_eq!(bucket.spend(now, 1 << 20), Duration::from_millis(900));
    }

    fn commits(histogram: &Histogram, fast: u64, slow: u64) -> HistogramView {
        (0..fast).for_each(|_| histogram.add(100));
        (0..slow).for_each(|_| histogram.add(3000));
        histogram.view()
    }

    #[test]
    fn uneven_commits_are_noticed_and_forgotten() {
        let (histogram, mut strain) = (Histogram::default(), Strain::new());
        let at = Duration::from_millis;
        assert!(
            !strain.look(at(0), commits(&histogram, 500, 50)),
            "what was before the first look says nothing"
        );
        assert!(strain.look(at(10), commits(&histogram, 200, 20)));
        assert!(strain.look(at(20), commits(&histogram, 10, 0)), "too few to say otherwise");
        assert!(!strain.look(at(30), commits(&histogram, 200, 0)));
        assert!(strain.look(at(40), commits(&histogram, 90, 10)));
        assert!(!strain.look(at(600), commits(&histogram, 3, 1)), "an idle journal is not in anybody's way");
    }

    /// Does as it is told, and notes that it was asked.
    #[derive(Debug)]
    struct Told {
        name: char,
        answers: Vec<Result<Step, Halt>>,
        asked: Arc<Mutex<String>>,
    }

    impl Work for Told {
        fn name(&self) -> &'static str {
            "told"
        }

        fn step(&mut self, _shared: &Shared, pace: &mut Pace<'_>) -> Result<Step, Halt> {
            pace.spend(1 << 30)?;
            lock(&self.asked).push(self.name);
            self.answers.pop().unwrap_or(Ok(Step::Idle))
        }
    }

    #[test]
    fn the_most_urgent_work_goes_first_and_what_fails_rests() {
        let bench = Bench::new();
        let opened = bench.open().unwrap();
        let shared = opened.journal.shared_for_tests();
        let asked = Arc::new(Mutex::new(String::new()));
        let told =
            |name, answers| Box::new(Told { name, answers, asked: Arc::clone(&asked) }) as Box<dyn Work>;
        let failed = || Err(Halt::Failed(JournalError::NoRandomness));
        let first = told('a', vec![Ok(Step::Done), failed(), Ok(Step::Done)]);
        let second = told('b', vec![Ok(Step::Done)]);
        let mut background = Background::new(1, vec![first, second]);
        let mut steps = |count: usize| -> (Vec<bool>, String) {
            let more = (0..count).map(|_| background.step(&shared, false) == Step::Done).collect();
            (more, std::mem::take(&mut *lock(&asked)))
        };
        assert_eq!(steps(3), (vec![true, true, false], "aabb".into()));
        bench.clock.advance(REST);
        assert_eq!(steps(2), (vec![true, false], "aab".into()), "rested");
        shared.stop_helper.store(true, Ordering::Release);
        assert_eq!(steps(1), (vec![false], String::new()), "over");
    }

    /// The steps of a journal with threads end when it is closed, however much they owe.
    #[test]
    fn closing_does_not_wait_for_the_rate() {
        let bench = Bench::new();
        let opened = bench.open().unwrap();
        let shared = opened.journal.shared_for_tests();
        let asked = Arc::new(Mutex::new(String::new()));
        let work = Told { name: 'a', answers: Vec::new(), asked: Arc::clone(&asked) };
        let mut background = Background::new(1, vec![Box::new(work)]);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| background.run(&shared));
            shared.stop_helper.store(true, Ordering::Release);
            thread.thread().unpark();
        });
        assert_eq!(*lock(&asked), "", "it was held back and then stopped");
    }
}
