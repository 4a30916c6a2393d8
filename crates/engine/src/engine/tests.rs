mod evidence;
mod execution;
pub(crate) mod harness;
mod idempotency;
mod lifecycle;
pub(crate) mod races;
mod routing;
pub(crate) mod scheduler;
