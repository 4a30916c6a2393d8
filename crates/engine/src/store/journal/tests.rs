//! The journal store on the simulated disk: the contract, reopening, crashes, faults.

mod compaction;
mod crash;
mod engine;
mod evidence;
mod model;
mod origin;
mod page;
mod reopen;
mod restored;
mod retention;
mod setup;
mod space;
mod summaries;
mod transfer;

use std::sync::Arc;

use self::setup::Host;
use crate::store::StoreLimits;
use crate::store::contract::{Subject, event_store_contract};

event_store_contract!(|limits: StoreLimits| {
    Subject::with(limits, |limits, clock| Arc::new(Host::with(clock).open(limits).0))
});
