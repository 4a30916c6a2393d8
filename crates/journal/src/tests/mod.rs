//! The journal on the simulated disk: what a writer leaves, what a crash leaves, what a start makes of it.

mod setup;
mod smoke;
