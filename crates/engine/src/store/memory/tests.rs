use std::sync::Arc;

use crate::store::StoreLimits;
use crate::store::contract::{Subject, event_store_contract};
use crate::store::memory::MemoryStore;

event_store_contract!(|limits: StoreLimits| {
    Subject::with(limits, |limits, clock| Arc::new(MemoryStore::new(limits, Arc::new(clock))))
});
