//! The budget of written frames (JC-10): how much is written, and what a creation leaves to the streams that are open.
//! Only counts; what is refused is the writer's to say.

/// Bytes of frames that are there and that may be there, and what a stream is expected to take.
#[derive(Debug)]
pub(super) struct Budget {
    most: u64,
    /// Frames on disk; at least what there are.
    frame_bytes: u64,
    /// Written by this writer, and streams opened by it; beyond [`Budget::STREAMS`] those of before count half.
    written: u64,
    opened: u64,
}

impl Budget {
    const STREAMS: u64 = 2048;

    pub fn new(most: u64, frame_bytes: u64) -> Budget {
        Budget { most, frame_bytes, written: 0, opened: 0 }
    }

    /// A frame of so many bytes was written, in which so many streams were opened.
    pub fn wrote(&mut self, bytes: u64, opened: u64) {
        self.frame_bytes += bytes;
        self.written += bytes;
        self.opened += opened;
        if self.opened >= Self::STREAMS {
            (self.written, self.opened) = (self.written / 2, self.opened / 2);
        }
    }

    /// Whether so much more may be there. What is counted here is too much at most: frames that compaction took away
    /// meanwhile are noticed when it matters, by `recount`.
    pub fn takes(&mut self, bytes: u64, recount: impl FnOnce() -> u64) -> bool {
        if self.frame_bytes.saturating_add(bytes) > self.most {
            self.frame_bytes = recount();
        }
        self.frame_bytes.saturating_add(bytes) <= self.most
    }

    /// What a creation leaves behind its frame: a sixteenth, and for each stream that is open as much as one has taken on
    /// average, since what was taken is to come to its end. With nothing open it is the sixteenth whatever streams take, so
    /// that a budget which is small for one of them does not shut everybody out.
    pub fn margin(&self, open_streams: u64) -> u64 {
        let stream = self.written.checked_div(self.opened).unwrap_or(0);
        (self.most / 16).saturating_add(open_streams.saturating_mul(stream)).min(self.most / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 1 << 20;

    #[test]
    fn the_margin_is_a_sixteenth_and_what_open_streams_are_expected_to_take() {
        let mut budget = Budget::new(MOST, 0);
        assert_eq!(budget.margin(0), MOST / 16);
        assert_eq!(budget.margin(9), MOST / 16, "nothing is known of a stream yet");
        for _ in 0..10 {
            budget.wrote(1000, 1);
            budget.wrote(3000, 0);
        }
        assert_eq!((budget.margin(0), budget.margin(9)), (MOST / 16, MOST / 16 + 9 * 4000));
        assert_eq!((budget.margin(1000), budget.margin(u64::MAX)), (MOST / 2, MOST / 2), "half at most");
        assert_eq!(Budget::new(u64::MAX, 1).margin(u64::MAX), u64::MAX / 16, "no budget is no bound");
    }

    #[test]
    fn what_streams_take_is_learnt_anew() {
        let mut budget = Budget::new(u64::MAX, 0);
        let expected = |budget: &Budget| budget.margin(1) - budget.margin(0);
        for _ in 0..10_000 {
            budget.wrote(100, 1);
        }
        assert_eq!(expected(&budget), 100);
        for _ in 0..10_000 {
            budget.wrote(9000, 1);
        }
        assert!((8800..=9000).contains(&expected(&budget)), "{}", expected(&budget));
    }

    #[test]
    fn what_went_meanwhile_is_counted_when_it_matters() {
        let mut budget = Budget::new(MOST, 0);
        budget.wrote(MOST - 10, 1);
        assert!(budget.takes(10, || panic!("it fits")));
        assert!(!budget.takes(11, || MOST - 10));
        assert!(budget.takes(11, || MOST / 2) && budget.takes(MOST / 2, || panic!("it fits")));
        assert!(!budget.takes(u64::MAX, || MOST / 2));
    }
}
