//! Export and import: every event byte for byte, nothing of what was forgotten, nothing from a broken input, and from a
//! damaged journal all that reads.

use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::{Folder, Name};
use sealog_events::{AttemptEvidence, ErrorFact, EventBody, ExecutionId, PortableCode};
use sealog_journal::{Journal, JournalError};
use sealog_journal_format::EndRecord;
use sealog_journal_format::journal_records::Restored;

use super::setup::{Host, append, completed, create, delta, drive, id, selected};
use crate::store::journal::JournalStore;
use crate::store::journal::transfer::lines::{Counts, LINE_BYTES_MAX, Line, LineError, link};
use crate::store::journal::transfer::{Broken, Checked, Exported, check, export, import_manual};

fn exported(host: &Host, only: Option<ExecutionId>) -> (Vec<u8>, Exported) {
    let mut output = Vec::new();
    let done = export(&host.config(), only, &mut output).unwrap();
    (output, done)
}

fn checked(input: &[u8]) -> Result<Checked, Broken> {
    check(&mut &input[..])
}

fn failed() -> EventBody {
    EventBody::Failed {
        error: ErrorFact::new(PortableCode::ProviderUnavailable, "The provider is unavailable", true),
        cancelled: false,
    }
}

/// Writes executions 1 to 4: finished, failed, going on, and forgotten; woven into each other.
fn write(host: &Host) {
    let (store, journal, _) = host.open_manual().unwrap();
    drive(&journal, executions(&store, host)).unwrap();
    journal.close().unwrap();
}

async fn executions(store: &JournalStore, host: &Host) -> Result<(), crate::StoreError> {
    let now = host.now();
    for number in 1..=4 {
        create(store, now, number).await?;
    }
    append(store, now, 1, 2, vec![selected(), delta("héllo \u{1}\"\\")]).await?;
    append(store, now, 4, 2, vec![selected(), delta("secret of the forgotten"), completed()]).await?;
    append(store, now, 2, 2, vec![selected()]).await?;
    append(store, now, 1, 4, vec![delta(&"long ".repeat(2000)), completed()]).await?;
    append(store, now, 2, 3, vec![failed()]).await?;
    append(store, now, 3, 2, vec![selected(), delta("goes on")]).await
}

/// As [`write`], with execution 4 forgotten.
fn written() -> Host {
    let host = Host::new();
    write(&host);
    forget(&host, 4);
    host
}

fn forget(host: &Host, number: u8) {
    let (journal, _) = Journal::open_manual(&host.config(), &mut sealog_journal::Ignore).unwrap();
    let record = super::super::records::forget(&[id(number)], host.now()).unwrap();
    let unit = sealog_journal::Unit::one(record);
    let mut ticket = journal.submit(unit, sealog_journal::Admission::Reserved).unwrap();
    while ticket.try_result().is_none() {
        journal.turn();
    }
    journal.close().unwrap();
}

/// Everything between header and end.
fn middle(export: &[u8]) -> Vec<&str> {
    let lines: Vec<&str> = std::str::from_utf8(export).unwrap().lines().collect();
    lines[1..lines.len() - 1].to_vec()
}

#[test]
fn what_was_exported_comes_back_byte_for_byte() {
    let host = written();
    let (bytes, done) = exported(&host, None);
    assert_eq!((done.executions, done.events, done.forgotten, done.missing), (3, 11, 1, 0));
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(
        !text.contains("secret of the forgotten") && !text.contains(&id(4).to_string()),
        "none of it travels"
    );
    let found = checked(&bytes).unwrap();
    assert_eq!((found.whole, found.events, found.gaps, found.incomplete.len()), (3, 11, 0, 0));
    let other = Host::new();
    let made = import_manual(&other.config(), &mut &bytes[..], &found).unwrap();
    assert_eq!((made.executions, made.events), (3, 11));
    let (again, _) = exported(&other, None);
    assert_eq!(middle(&again), middle(&bytes));
    // One execution alone.
    let (one, done) = exported(&host, Some(id(1)));
    assert_eq!((done.executions, done.events), (1, 5));
    let wanted: Vec<&str> =
        middle(&bytes).into_iter().filter(|line| line.contains(&id(1).to_string())).collect();
    assert_eq!(middle(&one), wanted);
    assert_eq!(exported(&host, Some(id(9))).1.executions, 0);
}

/// The rename that names an imported journal gives a name to what is durable already: nothing is left to a later sync. A
/// crash anywhere before leaves what the next import may begin anew on.
#[test]
fn an_imported_journal_is_durable_before_it_gets_its_name() {
    let host = written();
    let (bytes, _) = exported(&host, None);
    let found = checked(&bytes).unwrap();
    let other = Host::new();
    other.disk.record_crash_points();
    import_manual(&other.config(), &mut &bytes[..], &found).unwrap();
    for choice in [Choice::Nothing, Choice::Everything] {
        let image = other.after_crash(other.disk.crash_image(choice));
        assert_eq!(middle(&exported(&image, None).0), middle(&bytes));
    }
    let points = other.disk.take_crash_points();
    assert!(points.len() > 20, "{}", points.len());
    for (at, point) in points.iter().enumerate() {
        let image = point.image(Choice::Seeded(at as u64));
        sealog_journal::discard_built(&image);
        assert!(image.files().is_empty(), "operation {at}");
    }
}

/// The keys travel too: the imported store answers as the old one, and ends what was going on as any restart does.
#[test]
fn the_imported_store_answers_as_the_old_one() {
    let host = written();
    let (bytes, _) = exported(&host, None);
    let other = Host::new();
    import_manual(&other.config(), &mut &bytes[..], &checked(&bytes).unwrap()).unwrap();
    let (_, _, old) = host.open_manual().unwrap();
    let (store, journal, new) = other.open_manual().unwrap();
    let ids = |opened: &crate::store::journal::Opened| -> Vec<ExecutionId> {
        opened.interrupted.iter().map(|one| one.id).collect()
    };
    assert_eq!((ids(&old), ids(&new)), (vec![id(3)], vec![id(3)]));
    let events = drive(&journal, super::setup::events(&store, id(1), 0));
    assert_eq!(events.len(), 5);
    // The same key again is not a new execution.
    let again = drive(&journal, async {
        let accepted = sealog_events::Event { sequence: 1, time: other.now(), body: EventBody::Accepted };
        let identity = Some(super::setup::identity(1));
        let new = crate::store::NewExecution {
            id: id(7),
            created_at: other.now(),
            identity,
            origin: None,
            labels: None,
            accepted,
        };
        crate::EventStore::create(&store, new).await
    });
    assert_ne!(again.unwrap(), crate::store::Claim::New);
}

/// All of it is durable when the import returns, before it gets its place: the power may go then.
#[test]
fn what_was_imported_is_durable() {
    let (bytes, _) = exported(&written(), None);
    let other = Host::new();
    other.disk.record_crash_points();
    import_manual(&other.config(), &mut &bytes[..], &checked(&bytes).unwrap()).unwrap();
    let points = other.disk.take_crash_points();
    let last = other.disk.crash_point();
    for choice in [Choice::Nothing, Choice::Everything, Choice::Seeded(4)] {
        let (again, _) = exported(&other.after_crash(last.image(choice)), None);
        assert_eq!(middle(&again), middle(&bytes));
    }
    // Cut anywhere before, it is a journal with a part of the lines, never a wrong one; nobody has given it its place.
    assert!(points.len() > 10);
    for (at, point) in points.iter().enumerate() {
        let cut = other.after_crash(point.image(Choice::Seeded(at as u64)));
        let (part, _) = exported(&cut, None);
        let (part, whole) = (middle(&part).len(), middle(&bytes));
        assert_eq!(middle(&exported(&cut, None).0), whole[..part], "cut at {at}");
    }
}

#[test]
fn a_broken_input_is_refused_wherever_it_is_broken() {
    let (bytes, _) = exported(&written(), None);
    for at in (0..bytes.len()).step_by(197).chain(bytes.len() - 300..bytes.len()) {
        assert!(checked(&bytes[..at]).is_err(), "cut at {at}");
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(checked(&changed).is_err(), "changed at {at}");
    }
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(at);
        assert!(checked(&without.concat()).is_err(), "without line {at}");
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        assert!(checked(&twice.concat()).is_err(), "line {at} twice");
        if at + 1 < lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            assert!(checked(&swapped.concat()).is_err(), "line {at} swapped");
        }
    }
    assert!(matches!(
        checked(&[&bytes[..], b"\n"].concat()),
        Err(Broken::Line { why: LineError::Malformed, .. })
    ));
}

/// Lines that were made to fit each other and still tell what cannot be.
#[test]
fn the_order_of_an_export_is_checked() {
    let (bytes, _) = exported(&written(), None);
    let lines: Vec<Line> = middle(&bytes).iter().map(|line| Line::parse(line.as_bytes()).unwrap()).collect();
    let header = Line::parse(bytes.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    let of = |number: u8, line: &Line| match line {
        Line::Execution { id: of, .. }
        | Line::Origin { id: of, .. }
        | Line::Labels { id: of, .. }
        | Line::Event { id: of, .. }
        | Line::Result { id: of, .. }
        | Line::Evidence { id: of, .. } => *of == id(number),
        Line::Header { .. }
        | Line::Forget { .. }
        | Line::Restored { .. }
        | Line::Unfenced { .. }
        | Line::Missing { .. }
        | Line::Gap { .. }
        | Line::End { .. } => false,
    };
    let first: Vec<Line> = lines.iter().filter(|line| of(1, line)).cloned().collect();
    let accepted = |lines: Vec<Line>| checked(&sealed(&header, lines)).map(|checked| checked.whole);
    assert!(matches!(accepted(first.clone()), Ok(1)));
    let refused = |lines: Vec<Line>| match accepted(lines) {
        Err(Broken::Order { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let without = |at: usize| {
        let mut lines = first.clone();
        lines.remove(at);
        lines
    };
    assert_eq!(refused(without(0)), "it speaks of an execution that has not begun");
    assert_eq!(refused(without(3)), "an execution's events are not numbered one by one");
    assert_eq!(refused(without(6)), "an execution ends without its result");
    let mut wrong = first.clone();
    let other = lines.iter().find_map(|line| match line {
        Line::Result { id: of, time_ms, result } if *of == id(2) => Some((*time_ms, result.clone())),
        _ => None,
    });
    let (time_ms, result) = other.unwrap();
    wrong[6] = Line::Result { id: id(1), time_ms, result };
    assert_eq!(refused(wrong), "a result is not what its events give");
    let mut behind = first.clone();
    behind.push(first[3].clone());
    assert_eq!(refused(behind), "an event behind the one that ended its execution");
    for at in [2, 3] {
        let mut twice = first.clone();
        twice.insert(at, first[1].clone());
        assert_eq!(refused(twice), "labels stand once and before the events of their execution");
    }
    assert!(matches!(accepted(without(1)), Ok(1)), "executions of before have none");
    let gone = Line::Forget { time_ms: 1, ids: vec![id(1)] };
    assert!(matches!(accepted([&first[..], std::slice::from_ref(&gone)].concat()), Ok(0)));
    assert_eq!(refused([&first[..], &[gone], &first[..1]].concat()), "an execution begins twice");
}

/// With a right end.
fn sealed(header: &Line, lines: Vec<Line>) -> Vec<u8> {
    let (mut bytes, mut digest) = (Vec::new(), [0; 32]);
    let mut counts = Counts::default();
    for line in std::iter::once(header).chain(&lines) {
        counts.executions += u64::from(matches!(line, Line::Execution { .. }));
        counts.events += u64::from(matches!(line, Line::Event { .. }));
        let text = line.spell();
        digest = link(&digest, text.as_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(Line::end(counts, &digest).spell().as_bytes());
    bytes.push(b'\n');
    bytes
}

/// A damaged journal: what reads is exported, what is missing is said, and only what is whole is taken in again.
#[test]
fn a_damaged_journal_is_exported_as_far_as_it_reads() {
    let host = written();
    let (whole, _) = exported(&host, None);
    let segment = Name::new(Folder::Segments, "000000000001.seg").unwrap();
    let length = host.disk.bytes(&segment).unwrap().len() as u64;
    let (mut holes, mut incomplete) = (0, 0);
    for offset in (8192..length).step_by(311) {
        let disk: SimDisk = host.disk.fork();
        disk.flip_bit(&segment, offset, 3);
        let damaged = host.after_crash(disk);
        let (bytes, done) = exported(&damaged, None);
        if done.audit.is_sound() {
            assert_eq!(middle(&bytes), middle(&whole), "offset {offset}");
            continue;
        }
        holes += 1;
        let found = checked(&bytes).unwrap_or_else(|e| panic!("offset {offset}: {e}"));
        assert_eq!(found.gaps, done.audit.gaps.len() as u64);
        incomplete += found.incomplete.len();
        let other = Host::new();
        let made = import_manual(&other.config(), &mut &bytes[..], &found).unwrap();
        assert_eq!(made.executions, found.whole, "offset {offset}");
        assert_eq!(
            (found.partial, made.fenced),
            (true, true),
            "the keys of what is lost are: offset {offset}"
        );
        let (again, done) = exported(&other, None);
        assert!(done.audit.is_sound());
        let mut again = middle(&again);
        assert!(again.pop().is_some_and(|fence| fence.contains("\"fenced\":true")), "offset {offset}");
        let kept: Vec<&str> = middle(&whole).into_iter().filter(|line| again.contains(line)).collect();
        assert_eq!(again, kept, "every line of a whole execution is as it was: offset {offset}");
    }
    assert!(holes > 20 && incomplete > 20, "{holes} {incomplete}");
}

#[test]
fn an_input_that_changed_behind_its_check_is_noticed() {
    let (bytes, _) = exported(&written(), None);
    let found = checked(&bytes).unwrap();
    let (one, _) = exported(&written(), Some(id(1)));
    let other = Host::new();
    let error = import_manual(&other.config(), &mut &one[..], &found).unwrap_err();
    assert!(matches!(error, crate::store::journal::transfer::ImportError::Changed), "{error:?}");
    let full = Host::new();
    full.disk.set_capacity(Some(20_000));
    let error = import_manual(&full.config(), &mut &bytes[..], &found).unwrap_err();
    match error {
        crate::store::journal::transfer::ImportError::Journal(JournalError::Full | JournalError::Disk(_)) => {
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_line_has_one_spelling() {
    let (bytes, _) = exported(&written(), None);
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let parsed = Line::parse(line).unwrap();
        assert_eq!(parsed.spell().as_bytes(), line);
        let spaced = [line, b" "].concat();
        assert_eq!(Line::parse(&spaced), Err(LineError::Spelling));
    }
    let refuse = |text: &str, why| assert_eq!(Line::parse(text.as_bytes()), Err(why), "{text}");
    refuse("", LineError::Malformed);
    refuse("{}", LineError::Malformed);
    refuse("{\"header\":{}}", LineError::Malformed);
    refuse("{\"other\":{\"a\":1}}", LineError::Malformed);
    let header = Line::Header { store_id: [1; 16], created_ms: 5, last_sequence: 7 }.spell();
    refuse(&header.replace("\"version\":1", "\"version\":2"), LineError::Newer);
    refuse(&header.replace("sealog-export", "sealog-other"), LineError::Malformed);
    refuse(&header.replace("01010101", "0101010A"), LineError::Spelling);
    refuse(&header.replace("\"last_sequence\":7", "\"last_sequence\":7,\"more\":1"), LineError::Malformed);
    refuse(&header.replace("\"created_ms\":5", "\"created_ms\":18446744073709551615"), LineError::Malformed);
    assert_eq!(Line::parse(&vec![b' '; LINE_BYTES_MAX + 1]), Err(LineError::TooLong));
    assert!(matches!(
        checked(&vec![b' '; LINE_BYTES_MAX + 1]),
        Err(Broken::Line { why: LineError::TooLong, .. })
    ));
}

/// The published schema names exactly the members that lines have, in their order.
#[test]
fn lines_have_the_members_of_the_schema() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../../spec/schema/export.json")).unwrap();
    let (bytes, _) = exported(&written(), None);
    let digest = [7; 32];
    let mark = sealog_events::Mark::RequestSent;
    let origin = sealog_events::Origin {
        dialect: sealog_events::Dialect::OpenAiChat,
        model: "m".to_owned(),
        max_tokens: Some(1),
        background: false,
    };
    let rare = [
        Line::Origin { id: id(1), origin },
        Line::Evidence { id: id(1), time_ms: 1, evidence: AttemptEvidence { attempt: 1, mark } },
        Line::Forget { time_ms: 1, ids: vec![id(1)] },
        Line::Missing { id: id(1), first: 0, last: 3 },
        Line::Gap { segment: 1, offset: 2, first_sequence: 3, last_sequence: None },
        Line::Restored {
            time_ms: 1,
            restored: Restored { from: EndRecord::NONE, restored_ms: 2, fenced: true },
        },
        Line::Unfenced { time_ms: 1 },
        Line::End { counts: Counts { executions: 1, events: 2, forgotten: 3, partial: true }, digest },
    ];
    let text = String::from_utf8(bytes).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for line in text.lines().map(ToOwned::to_owned).chain(rare.iter().map(Line::spell)) {
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let (kind, members) = value.as_object().unwrap().iter().next().unwrap();
        let stated = &schema["$defs"][kind]["properties"][kind];
        let names: Vec<&str> =
            stated["required"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        assert_eq!(members.as_object().unwrap().len(), names.len(), "{kind}");
        let mut rest = line.as_str();
        for name in &names {
            assert!(stated["properties"].get(name).is_some(), "{kind}: {name}");
            let quoted = format!("\"{name}\":");
            rest = rest.split_once(&quoted).unwrap_or_else(|| panic!("{kind}: {name} in {line}")).1;
        }
        kinds.insert(kind.clone());
    }
    assert_eq!(kinds.len(), schema["oneOf"].as_array().unwrap().len());
    assert!(schema["description"].as_str().unwrap().contains(&format!("at most {LINE_BYTES_MAX} bytes")));
}
