//! Evidence of attempts, which is no event.

use sealog_events::{AttemptEvidence, Mark, Reached, RequestId};

use super::*;

/// RM-32.
pub async fn evidence_of_attempts_is_shown(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    let note = |number: u8, mark| subject.store.note(id(number), AttemptEvidence { attempt: 1, mark });
    let answered = |text: &str| Mark::ResponseHeaders { request_id: RequestId::new(text) };
    // Of nobody.
    note(9, Mark::RequestSent);
    subject.create(1).await;
    assert_eq!(subject.append(1, 2, selected()).await, Ok(()));
    note(1, Mark::RequestSent);
    note(1, answered("r-1"));
    // Durable no later than the next event, and no event itself.
    assert_eq!(subject.append(1, 3, delta("x")).await, Ok(()));
    let snapshot = async || subject.store.snapshot(id(1)).await.ok().flatten().expect("it is there");
    let shown = snapshot().await;
    assert_eq!(shown.last_sequence, 3);
    let attempt = &shown.attempts[0];
    assert_eq!((attempt.number, attempt.reached), (1, Reached::FirstOutput));
    assert_eq!(attempt.request_id.as_ref().map(RequestId::as_str), Some("r-1"));

    assert_eq!(subject.append(1, 4, completed()).await, Ok(()));
    let ended = snapshot().await;
    assert_eq!(ended.attempts, shown.attempts);
    // Behind the end there is nothing to prove.
    note(1, answered("r-2"));
    assert_eq!(snapshot().await, ended);
    assert_eq!(rest(&mut subject.watch(1, 0).await).await, [1, 2, 3, 4]);
    assert_eq!(subject.store.snapshot(id(9)).await, Ok(None));

    // Together with the last event only.
    subject.create(2).await;
    assert_eq!(subject.append(2, 2, selected()).await, Ok(()));
    note(2, Mark::RequestSent);
    assert_eq!(subject.append(2, 3, failed("m")).await, Ok(()));
    let failed = subject.store.snapshot(id(2)).await.ok().flatten().expect("it is there");
    assert_eq!(failed.attempts[0].reached, Reached::RequestSent);
}
