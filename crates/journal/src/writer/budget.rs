//! The budget of written frames (JC-10): how much is written, and what a creation leaves to the streams that are open.
//! Only counts and expects; what is refused is the writer's to say.

use std::collections::HashSet;

use crate::record::{Class, NewRecord, StreamId};

/// Bytes of frames that are there and that may be there, and what a stream is expected to take.
#[derive(Debug)]
pub(super) struct Budget {
    most: u64,
    /// Frames on disk; at least what there are.
    frame_bytes: u64,
    /// The most that was ever left of it. A disk that is full at the start makes a budget of what is there, and once there is
    /// room new work is to be taken all the same.
    roomiest: u64,
    /// What this writer has written: in frames, and as logical sizes of its records.
    written: u64,
    logical: u64,
    /// Logical size of the streams that are open.
    open: u64,
    /// What the last record takes beside its logical size.
    beside: u64,
    streams: Streams,
}

/// Logical sizes of streams that have ended.
#[derive(Debug, Default)]
struct Streams {
    /// Of those that said all that they had to say; beyond [`Streams::COUNT`] those of before count half.
    bytes: u64,
    count: u64,
    /// The largest one, or what one would have come to; it fades with each that ends.
    largest: u64,
    /// Open streams of which something was refused.
    cut: HashSet<StreamId>,
}

impl Streams {
    const COUNT: u64 = 1024;
    const FADING: u64 = 64;

    fn ended(&mut self, stream: StreamId, bytes: u64) {
        self.largest = (self.largest - self.largest / Self::FADING).max(bytes);
        if !self.cut.is_empty() && self.cut.remove(&stream) {
            return;
        }
        (self.bytes, self.count) = (self.bytes + bytes, self.count + 1);
        if self.count >= 2 * Self::COUNT {
            (self.bytes, self.count) = (self.bytes / 2, self.count / 2);
        }
    }

    /// How much more it wanted nobody knows: as much again.
    fn cut(&mut self, stream: StreamId, bytes: u64) {
        self.largest = self.largest.max(bytes.saturating_mul(2));
        self.cut.insert(stream);
    }

    fn usual(&self) -> u64 {
        self.bytes.checked_div(self.count).unwrap_or(self.largest)
    }
}

impl Budget {
    pub fn new(most: u64, frame_bytes: u64, open: u64) -> Budget {
        let roomiest = most.saturating_sub(frame_bytes);
        let streams = Streams::default();
        Budget { most, frame_bytes, roomiest, written: 0, logical: 0, open, beside: 0, streams }
    }

    pub fn wrote(&mut self, frame_bytes: u64) {
        self.frame_bytes += frame_bytes;
        self.written += frame_bytes;
    }

    /// A record of a frame that was written. `size_of` tells the logical size of a stream without it: an index packs what
    /// has ended, and is asked before.
    pub fn takes_in(&mut self, record: &NewRecord, size_of: impl FnOnce(&StreamId) -> u64) {
        let Some(stream) = record.stream else { return };
        let beside = (record.body.len() as u64).saturating_sub(record.logical_size);
        self.logical += record.logical_size + beside;
        self.open += record.logical_size;
        if !record.class.contains(Class::CLOSES) {
            // A result, which has no logical size, stands right before the end of its stream.
            self.beside = beside;
            return;
        }
        let size = size_of(&stream) + record.logical_size;
        self.open = self.open.saturating_sub(size);
        self.streams.ended(stream, size + std::mem::take(&mut self.beside));
    }

    /// A stream of so much logical size was refused more.
    pub fn cut(&mut self, stream: StreamId, logical: u64) {
        self.streams.cut(stream, logical);
    }

    /// Whether so much more may be there. What is counted here is too much at most: frames that compaction took away
    /// meanwhile are noticed when it matters, by `recount`.
    pub fn takes(&mut self, bytes: u64, recount: impl FnOnce() -> u64) -> bool {
        if self.frame_bytes.saturating_add(bytes) > self.most {
            self.frame_bytes = recount();
            self.roomiest = self.roomiest.max(self.most.saturating_sub(self.frame_bytes));
        }
        self.frame_bytes.saturating_add(bytes) <= self.most
    }

    /// What a creation leaves behind its frame: a sixteenth, or half of what there ever was, and what the other streams that are open are expected to take
    /// yet, since what was taken is to come to its end. With nothing open it is the sixteenth whatever streams take, so
    /// that a budget which is small for one of them does not shut everybody out.
    pub fn margin(&self, open_streams: u64) -> u64 {
        (self.most / 16).min(self.roomiest / 2).saturating_add(self.expected(open_streams))
    }

    /// In frames: together as much as is usual for each, and one the most.
    pub fn expected(&self, open_streams: u64) -> u64 {
        if open_streams == 0 {
            return 0;
        }
        let usual = open_streams.saturating_mul(self.streams.usual()).saturating_sub(self.open);
        self.in_frames(usual.saturating_add(self.streams.largest))
    }

    /// What records of so much logical size take in frames, as those did that were written.
    fn in_frames(&self, logical: u64) -> u64 {
        let bytes = u128::from(logical) * u128::from(self.written);
        u64::try_from(bytes.checked_div(u128::from(self.logical)).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 1 << 20;
    const ONE: StreamId = StreamId([1; 16]);

    fn record(class: Class, logical_size: u64, body: usize) -> NewRecord {
        let body = vec![0; body];
        NewRecord { kind: 100, stream: Some(ONE), class, event_number: 0, time_ms: 0, logical_size, body }
    }

    /// A stream with so much logical size and its result, in frames of half of that.
    fn stream(budget: &mut Budget, logical: u64, result: usize) {
        budget.takes_in(&record(Class::OPENS, logical, 10), |_| panic!("it goes on"));
        budget.takes_in(&record(Class::NONE, 0, result), |_| panic!("it goes on"));
        budget.takes_in(&record(Class::CLOSES, 0, 0), |_| logical);
        budget.wrote((logical + result as u64) / 2);
    }

    #[test]
    fn the_margin_is_a_sixteenth_and_what_open_streams_are_expected_to_take() {
        let mut budget = Budget::new(MOST, 0, 0);
        assert_eq!((budget.margin(0), budget.margin(9)), (MOST / 16, MOST / 16), "nothing is known yet");
        (0..10).for_each(|_| stream(&mut budget, 6000, 2000));
        assert_eq!(budget.margin(0), MOST / 16, "whatever streams take");
        // Each what is usual, and one the most; in frames it is half of it.
        assert_eq!(budget.margin(9), MOST / 16 + (9 * 8000 + 8000) / 2);
        budget.takes_in(&record(Class::OPENS, 5000, 10), |_| panic!("it goes on"));
        budget.wrote(2500);
        assert_eq!(budget.margin(9), MOST / 16 + (9 * 8000 - 5000 + 8000) / 2, "what is written is written");
        assert!(budget.margin(u64::MAX) > MOST, "no more than there can be");
    }

    #[test]
    fn a_budget_that_was_used_up_at_the_start_is_left_half_of_what_there_is() {
        let mut budget = Budget::new(MOST, MOST - 1000, 0);
        assert_eq!(budget.margin(0), 500);
        assert!(budget.takes(MOST / 2, || MOST / 4));
        assert_eq!(budget.margin(0), MOST / 16, "compaction made room");
    }

    #[test]
    fn what_streams_take_is_learnt_anew_and_of_none_that_was_cut() {
        let mut budget = Budget::new(MOST, 0, 0);
        let usual = |budget: &Budget| (budget.margin(2) - budget.margin(1)) * 2;
        (0..10_000).for_each(|_| stream(&mut budget, 1000, 0));
        assert_eq!(usual(&budget), 1000);
        (0..10_000).for_each(|_| stream(&mut budget, 9000, 0));
        assert!((8800..=9000).contains(&usual(&budget)), "{}", usual(&budget));
        let before = budget.margin(1);
        for _ in 0..1000 {
            budget.cut(ONE, 100);
            stream(&mut budget, 100, 0);
        }
        assert!(usual(&budget) > 8800, "of one that was cut only its end is known");
        budget.cut(ONE, 20_000);
        assert!(budget.margin(1) > before, "it would have come to more than any");
    }

    #[test]
    fn what_went_meanwhile_is_counted_when_it_matters() {
        let mut budget = Budget::new(MOST, 0, 0);
        budget.wrote(MOST - 10);
        assert!(budget.takes(10, || panic!("it fits")));
        assert!(!budget.takes(11, || MOST - 10));
        assert!(budget.takes(11, || MOST / 2) && budget.takes(MOST / 2, || panic!("it fits")));
        assert!(!budget.takes(u64::MAX, || MOST / 2));
    }
}
