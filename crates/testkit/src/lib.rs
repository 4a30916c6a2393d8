//! What Sealog's tests share: the seeded simulation, scripted upstreams, fuzz bodies.

pub mod fuzz;
pub mod simulation;
pub mod upstream;
