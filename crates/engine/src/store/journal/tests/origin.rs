//! Where an execution came from: kept over a restart, folded with the rest, and part of an export.

use sealog_events::{Dialect, Event, EventBody, Origin};

use super::setup::{Host, append, completed, create, delta, drive, id, selected};
use crate::EventStore;
use crate::store::NewExecution;
use crate::store::journal::EngineCodec;
use crate::store::journal::transfer::{check, export, import_manual};

fn origin() -> Origin {
    let dialect = Dialect::OpenAiResponses;
    Origin { dialect, model: "a \"model\"".to_owned(), max_tokens: None, background: true }
}

/// Execution 1 came from another API, execution 2 did not.
fn written() -> Host {
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    let now = host.now();
    drive(&journal, async {
        let accepted = Event { sequence: 1, time: now, body: EventBody::Accepted };
        let origin = Some(origin());
        let new = NewExecution { id: id(1), created_at: now, identity: None, origin, labels: None, accepted };
        store.create(new).await.unwrap();
        create(&store, now, 2).await.unwrap();
        for number in 1..=2 {
            append(&store, now, number, 2, vec![selected(), delta("x"), completed()]).await.unwrap();
        }
    });
    journal.close().unwrap();
    host
}

#[track_caller]
fn has_both(host: &Host) {
    let (store, journal, _) = host.open_manual().unwrap();
    let found = drive(&journal, async { (store.origin(id(1)).await, store.origin(id(2)).await) });
    assert_eq!(found, (Ok(Some(origin())), Ok(None)));
    journal.close().unwrap();
}

#[test]
fn it_is_there_after_a_restart() {
    has_both(&written());
}

/// JF-15.
#[test]
fn it_is_folded_with_its_execution() {
    use sealog_journal::Codec;
    let host = written();
    let (_, journal, _) = host.open_manual().unwrap();
    let stream = super::super::records::stream(id(1));
    let records: Vec<_> = journal.read_stream(stream, 1).collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), 7);
    let folded = EngineCodec.fold(stream, &records).unwrap();
    assert_eq!(EngineCodec.unfold(stream, records[0].sequence, &folded), Ok(records));
}

#[test]
fn it_travels_in_an_export() {
    let host = written();
    let mut bytes = Vec::new();
    export(&host.config(), None, &mut bytes).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let line = text.lines().nth(2).unwrap();
    let expected = format!(
        r#"{{"origin":{{"execution_id":"{}","dialect":"openai_responses","model":"a \"model\"","max_tokens":null,"background":true}}}}"#,
        id(1)
    );
    assert_eq!(line, expected);
    let checked = check(&mut &bytes[..]).unwrap();
    let other = Host::new();
    import_manual(&other.config(), &mut &bytes[..], &checked).unwrap();
    has_both(&other);
    let mut again = Vec::new();
    export(&other.config(), None, &mut again).unwrap();
    let middle = |text: &[u8]| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[1..lines.len() - 1].to_vec()
    };
    assert_eq!(middle(&again), middle(&bytes));
    // It stands once, and before the events.
    let twice = text.replacen(line, &format!("{line}\n{line}"), 1);
    assert!(check(&mut twice.as_bytes()).is_err());
}
