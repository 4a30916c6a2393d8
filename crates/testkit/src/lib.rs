//! What Sealog's tests share: crash campaigns, scripted upstreams, fuzz bodies.

pub mod fuzz;
pub mod upstream;
