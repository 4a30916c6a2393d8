mod execution;
pub(crate) mod harness;
mod idempotency;
mod lifecycle;
mod races;
