//! Which neighbours are worth rewriting: a pure function of what is known about the segments.

use std::ops::Range;

/// One segment file as the policy sees it, in the order of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// It is ended, and a successor that holds a record says so.
    pub eligible: bool,
    pub compacted: bool,
    pub bytes: u64,
    /// Log segments that it is or stands for.
    pub sources: u64,
    /// Streams, counted for each frame that holds them; of these, ended ones and forgotten ones.
    pub all: u64,
    pub closed: u64,
    pub dead: u64,
    pub forgets: u64,
    /// It was written under a root key that is not the active one.
    pub retired_key: bool,
    pub age_ms: u64,
}

/// From when on a segment is worth it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// So much of it is forgotten, in thousandths.
    pub dead_thousandths: u64,
    /// So old, and half of it or more can be folded.
    pub age_ms: u64,
    /// Live bytes below which a segment is taken along by its neighbours.
    pub small_bytes: u64,
    /// Live bytes of one rewrite.
    pub run_bytes_max: u64,
    /// Segment files of one rewrite, and log segments that it stands for.
    pub files_max: usize,
    pub sources_max: u64,
    /// Whatever can be folded or dropped, or was written under a retired key.
    pub everything: bool,
}

/// So many small neighbours are one too many files.
const SMALL_RUN: usize = 8;

impl View {
    pub fn live_bytes(&self) -> u64 {
        match self.all {
            0 => 0,
            all => (u128::from(self.bytes) * u128::from(all - self.dead.min(all)) / u128::from(all)) as u64,
        }
    }

    /// Something can be folded here that is not.
    pub fn foldable(&self) -> bool {
        !self.compacted && self.closed > 0
    }
}

/// The run to rewrite next, as a range of places in `views`. `older_dead`: something forgotten is left in an older file.
pub(crate) fn choose(views: &[View], policy: &Policy) -> Option<Range<usize>> {
    let mut start = 0;
    while start < views.len() {
        let end = start + views[start..].iter().take_while(|view| view.eligible).count();
        if let Some(run) = within(views, start..end, policy) {
            return Some(run);
        }
        start = end.max(start + 1);
    }
    None
}

/// The first run of eligible neighbours that is worth it.
fn within(views: &[View], stretch: Range<usize>, policy: &Policy) -> Option<Range<usize>> {
    let small = |at: usize| views[at].live_bytes() < policy.small_bytes;
    let worth = |at: usize| is_worth(views, at, policy);
    for at in stretch.clone() {
        let crowd = at + stretch.clone().skip(at - stretch.start).take_while(|at| small(*at)).count();
        if !worth(at) && crowd - at < SMALL_RUN {
            continue;
        }
        let mut run = at..at + 1;
        let fits = |run: &Range<usize>| {
            let sum = |of: fn(&View) -> u64| views[run.clone()].iter().map(of).sum::<u64>();
            run.len() <= policy.files_max.max(1)
                && sum(View::live_bytes) <= policy.run_bytes_max
                && sum(|view| view.sources) <= policy.sources_max
        };
        while run.start > stretch.start && small(run.start - 1) && fits(&(run.start - 1..run.end)) {
            run.start -= 1;
        }
        while run.end < stretch.end && (small(run.end) || worth(run.end)) && fits(&(run.start..run.end + 1)) {
            run.end += 1;
        }
        // One small file alone becomes no better by being written again.
        if run.len() > 1 || worth(at) {
            return Some(run);
        }
    }
    None
}

fn is_worth(views: &[View], at: usize, policy: &Policy) -> bool {
    let view = &views[at];
    if policy.everything {
        let droppable = view.forgets > 0 && views[..at].iter().all(|older| older.dead == 0);
        return view.dead > 0 || view.foldable() || droppable || view.retired_key;
    }
    let dead = view.dead > 0 && view.dead * 1000 >= view.all * policy.dead_thousandths;
    let old = view.foldable() && view.age_ms >= policy.age_ms && (view.closed + view.dead) * 2 >= view.all;
    dead || old
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        dead_thousandths: 300,
        age_ms: 600_000,
        small_bytes: 1000,
        run_bytes_max: 100_000,
        files_max: 64,
        sources_max: 16_384,
        everything: false,
    };

    fn view(dead: u64, closed: u64, age_ms: u64) -> View {
        View { eligible: true, bytes: 20_000, sources: 1, all: 100, closed, dead, age_ms, ..View::default() }
    }

    #[test]
    fn nothing_is_rewritten_for_little() {
        assert_eq!(choose(&[], &POLICY), None);
        assert_eq!(choose(&[view(29, 71, 0), view(0, 100, 599_999), view(0, 49, u64::MAX)], &POLICY), None);
        let folded = View { compacted: true, ..view(0, 100, u64::MAX) };
        assert_eq!(choose(&[folded], &POLICY), None);
        let everything = Policy { everything: true, ..POLICY };
        assert_eq!(choose(&[folded], &everything), None);
    }

    #[test]
    fn dead_ratio_or_age() {
        let idle = view(0, 0, u64::MAX);
        assert_eq!(choose(&[idle, view(30, 0, 0), idle], &POLICY), Some(1..2));
        assert_eq!(choose(&[idle, idle, view(0, 50, 600_000)], &POLICY), Some(2..3));
        assert_eq!(choose(&[view(30, 0, 0), view(90, 0, 0), idle], &POLICY), Some(0..2));
        let last = View { eligible: false, ..view(100, 0, 0) };
        assert_eq!(choose(&[last, last], &POLICY), None);
        assert_eq!(choose(&[view(30, 0, 0), last, view(30, 0, 0)], &POLICY), Some(0..1));
    }

    #[test]
    fn small_neighbours_come_along() {
        let small = View { bytes: 900, compacted: true, ..view(0, 100, 0) };
        assert_eq!(choose(&[small, small, view(40, 0, 0), small, view(0, 9, 0)], &POLICY), Some(0..4));
        assert_eq!(choose(&[small; 7], &POLICY), None);
        assert_eq!(choose(&[small; 8], &POLICY), Some(0..8));
        assert_eq!(choose(&[view(100, 0, 0), small, small], &POLICY), Some(0..3), "a dead one is small");
    }

    #[test]
    fn a_run_has_bounds() {
        let heavy = View { bytes: 60_000, ..view(30, 0, 0) };
        assert_eq!(choose(&[heavy; 5], &POLICY), Some(0..2));
        let huge = View { bytes: 600_000, ..view(30, 0, 0) };
        assert_eq!(choose(&[huge; 5], &POLICY), Some(0..1), "one at least");
        let many = View { sources: 9000, ..view(100, 0, 0) };
        assert_eq!(choose(&[many; 3], &POLICY), Some(0..1));
        assert_eq!(choose(&[view(100, 0, 0); 90], &POLICY), Some(0..64));
    }

    #[test]
    fn everything_is_what_can_be_folded_or_dropped() {
        let everything = Policy { everything: true, ..POLICY };
        assert_eq!(choose(&[view(0, 0, 0), view(0, 1, 0)], &everything), Some(1..2));
        assert_eq!(choose(&[view(1, 0, 0)], &everything), Some(0..1));
        let forgets = View { forgets: 2, compacted: true, ..view(0, 0, 0) };
        assert_eq!(choose(&[view(0, 0, 0), forgets], &everything), Some(1..2));
        let retired = View { retired_key: true, ..view(0, 0, 0) };
        assert_eq!(choose(&[view(0, 0, 0), retired], &everything), Some(1..2));
        assert_eq!(choose(&[retired], &POLICY), None, "a node that runs does not hurry");
        let pinned = View { eligible: false, ..view(1, 0, 0) };
        assert_eq!(choose(&[pinned, forgets], &everything), None, "an older file holds what it forgets");
    }
}
