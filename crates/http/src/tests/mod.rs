//! The model API over a real engine: in process where that is enough, on a socket where it is not.

mod dialects;
mod documented;
mod events;
mod facts;
mod fenced;
mod listing;
mod node;
mod shutdown;
mod submit;
