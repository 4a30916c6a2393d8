mod execution;
mod harness;
mod idempotency;
mod lifecycle;
mod races;
