//! What a decoder asks of the allocator. A program that installs [`Counting`] as its allocator gives the bodies a
//! bound to assert; without it they measure nothing and [`is_counted`] says so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

static LIVE_OF_ALL: AtomicIsize = AtomicIsize::new(0);
static PEAK_OF_ALL: AtomicIsize = AtomicIsize::new(0);

/// The system's allocator with a count per thread, and one of all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

fn count(change: isize) {
    let live = LIVE_OF_ALL.fetch_add(change, Ordering::Relaxed) + change;
    PEAK_OF_ALL.fetch_max(live, Ordering::Relaxed);
    // A thread that ends may allocate after its counters are gone; nobody looks at that.
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

/// Whether [`Counting`] is this program's allocator.
pub fn is_counted() -> bool {
    peak_of(|| Vec::<u8>::with_capacity(1000)).1 >= 1000
}

/// Runs `work`; the most bytes that were allocated at once meanwhile, on top of those before. 0 where nobody counts.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    let peak = PEAK.get() - before;
    (result, usize::try_from(peak).unwrap_or(0))
}

/// As [`peak_of`] over all threads, for work that shares itself out. Nothing else may run meanwhile.
pub fn peak_of_all<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE_OF_ALL.load(Ordering::Relaxed);
    PEAK_OF_ALL.store(before, Ordering::Relaxed);
    let result = work();
    (result, usize::try_from(PEAK_OF_ALL.load(Ordering::Relaxed) - before).unwrap_or(0))
}

/// As [`peak_of`], and it must stay within `bytes_max`.
#[track_caller]
pub fn within<T>(bytes_max: usize, work: impl FnOnce() -> T) -> T {
    let (result, peak) = peak_of(work);
    assert!(peak <= bytes_max, "{peak} bytes were allocated, at most {bytes_max} are allowed");
    result
}
