//! Forwards a fuzzer's bytes to the body of the same name in `sealog-testkit`; the one that reaches the binary's floor
//! stands here.

pub mod config;

pub use libfuzzer_sys;
pub use sealog_testkit::fuzz;

/// The whole of a target's file: the body's name, and an allocator that counts for its bounds on memory.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        $crate::target!($name, |data| $crate::fuzz::run($name, data));
    };
    ($name:literal, $body:expr) => {
        #[global_allocator]
        static COUNTING: $crate::fuzz::allocation::Counting = $crate::fuzz::allocation::Counting;

        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            let body: fn(&[u8]) = $body;
            body(data);
        });
    };
}
