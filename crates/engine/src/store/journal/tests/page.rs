//! Pages of the list: how much is read for one.

use sealog_events::Status;

use super::setup::{Host, create, drive};
use crate::EventStore;
use crate::store::journal::page::LABELS_READ_MAX;
use crate::store::listing::{Filter, Page};

#[test]
fn a_page_of_a_rare_ability_ends_before_it_takes_long_and_has_a_next_one() {
    const EXECUTIONS: u8 = 207;
    const { assert!((EXECUTIONS as usize) > LABELS_READ_MAX) };
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    let rare = || Filter { status: None, ability: Some("nobody's".to_owned()) };
    let failed = Filter { status: Some(Status::Failed), ability: Some("nobody's".to_owned()) };
    let (first, second, other) = drive(&journal, async {
        for number in 1..=EXECUTIONS {
            create(&store, host.now(), number).await.unwrap();
        }
        let first = store.page(rare(), None, 100).await.unwrap();
        let second = store.page(rare(), first.next, 100).await.unwrap();
        (first, second, store.page(failed, None, 100).await.unwrap())
    });
    assert!(first.listed.is_empty() && first.next.is_some(), "{first:?}");
    assert_eq!(second, Page::default());
    // What its status rules out is not read.
    assert_eq!(other, Page::default());
    journal.close().unwrap();
}
