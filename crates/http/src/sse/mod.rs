//! Server-sent events: the bytes of a frame, and the body that sends an execution's events.

mod body;
mod frame;
mod pace;
mod told;

pub(crate) use body::EventStream;
pub use frame::{CONTENT_TYPE, HEARTBEAT, sse_frame};
pub(crate) use told::{Telling, ToldStream};
