//! JF-11: memory follows what was read, never what a count claims. The only allocator of this test counts.

use sealog_journal_format::compacted::{FoldedGroup, Sources};
use sealog_journal_format::journal_records::Forget;
use sealog_journal_format::limits::{BODY_BYTES_MAX, RECORDS_MAX};
use sealog_journal_format::{Class, GroupEncoder, GroupReader, RecordRef};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(change: isize) {
    // A thread that ends may allocate after its counters are gone; no test looks at that.
    let live = LIVE.try_with(|live| {
        live.set(live.get() + change);
        live.get()
    });
    if let Ok(live) = live {
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live)));
    }
}

#[expect(unsafe_code, reason = "an allocator that counts is the only way to see what a decoder asks for")]
// SAFETY: every call goes to `System` unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Most bytes that were allocated at once while `work` ran, on top of those before.
fn peak_of<T>(work: impl FnOnce() -> T) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    let peak = PEAK.get() - before;
    drop(result);
    usize::try_from(peak).expect("a peak is never below where it began")
}

fn drain(bytes: &[u8], count: u32) -> usize {
    peak_of(|| GroupReader::new(bytes, count).and_then(GroupReader::check))
}

#[test]
fn the_counter_counts() {
    assert_eq!(peak_of(|| Vec::<u8>::with_capacity(1000)), 1000);
    assert_eq!(peak_of(|| ()), 0);
}

#[test]
fn claims_cost_nothing() {
    // A count of nearly 2^32 before nothing.
    let mut bytes = [0_u8; 64];
    bytes[..5].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(peak_of(|| Sources::decode(&bytes)), 0);
    assert_eq!(peak_of(|| FoldedGroup::decode(&bytes)), 0);
    assert_eq!(peak_of(|| Forget::decode(&bytes)), 0);
    assert_eq!(drain(&bytes, RECORDS_MAX), 0);
    // A record whose body length says four gigabytes.
    let bytes: Vec<u8> = [&[0, 64, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0; 52]].concat();
    assert_eq!(drain(&bytes, 1), 0);
    // The largest claim that the bytes allow, all of it zeros: the first record is refused.
    let longest = vec![0; BODY_BYTES_MAX];
    assert_eq!(drain(&longest, RECORDS_MAX), 0);
}

#[test]
fn a_reader_takes_a_small_multiple_of_the_ids_it_read() {
    let mut group = GroupEncoder::new(0);
    for number in 0..RECORDS_MAX {
        let stream = Some((u128::from(number) * 0x1_0000_0001).to_le_bytes());
        let record = RecordRef {
            kind: 64,
            class: Class::NONE,
            stream,
            event_number: 0,
            time_ms: 0,
            logical_size: 0,
            body: b"",
        };
        group.push(&record).unwrap();
    }
    let bytes = group.finish();
    let peak = drain(&bytes, RECORDS_MAX);
    assert!(peak > 0 && peak < 3 * bytes.len(), "{peak} bytes for {}", bytes.len());
}

#[test]
fn arbitrary_bytes_stay_within_a_multiple_of_their_length() {
    // A plain generator: the test prints its seed by failing with the index of the case.
    let mut state = 0x243f_6a88_85a3_08d3_u64;
    for case in 0..4000 {
        let mut bytes = vec![0_u8; 64 * (1 + case % 40)];
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Small values, so that records parse for a while.
            *byte = if state >> 62 == 0 { (state >> 40) as u8 } else { (state >> 40) as u8 & 3 };
        }
        let bound = 8 * bytes.len() + 4096;
        for count in [1, 10, (bytes.len() / 8) as u32] {
            assert!(drain(&bytes, count) <= bound, "case {case}");
        }
        assert!(peak_of(|| Sources::decode(&bytes)) <= bound, "case {case}");
        assert!(peak_of(|| FoldedGroup::decode(&bytes)) <= bound, "case {case}");
        assert!(peak_of(|| Forget::decode(&bytes)) <= bound, "case {case}");
    }
}
