//! Forwards a fuzzer's bytes to the body of the same name in `sealog-testkit`; holds no property of its own.

pub use libfuzzer_sys;
pub use sealog_testkit::fuzz;

/// The whole of a target's file: the body's name, and an allocator that counts for its bounds on memory.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        #[global_allocator]
        static COUNTING: $crate::fuzz::allocation::Counting = $crate::fuzz::allocation::Counting;

        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::fuzz::run($name, data));
    };
}
