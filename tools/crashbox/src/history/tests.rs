use serde_json::json;

use super::*;
use crate::random::Random;

fn record() -> Arc<Record> {
    History::default().enlist(Work::random("w".to_owned(), &mut Random::new(1)), 1)
}

fn frame(id: &str, sequence: u64, kind: &str, extra: &str) -> Frame {
    let data = json!({"type": kind, "execution_id": id, "sequence": sequence, "extra": extra});
    let bytes = format!("id: {sequence}\nevent: {kind}\ndata: {data}\n\n").into_bytes();
    Frame::read(&bytes).unwrap().unwrap()
}

fn delta(sequence: u64, extra: &str) -> Frame {
    frame("a", sequence, "output.delta", extra)
}

#[track_caller]
fn wrong(result: Result<(), Wrong>, class: Class) {
    assert_eq!(result.expect_err("a contradiction").class, class);
}

#[test]
fn what_was_delivered_must_be_there_with_the_same_bytes() {
    let record = record();
    record.deliver(&delta(2, "x")).unwrap();
    record.deliver(&delta(2, "x")).unwrap();
    wrong(record.deliver(&delta(2, "y")), Class::Altered);
    record.compare(&[delta(1, ""), delta(2, "x"), delta(3, "")]).unwrap();
    wrong(record.compare(&[delta(1, ""), delta(2, "y")]), Class::Altered);
    wrong(record.compare(&[delta(1, "")]), Class::Lost);
}

#[test]
fn what_a_snapshot_showed_must_be_there() {
    let record = record();
    record.show(3);
    record.show(2);
    wrong(record.compare(&[delta(1, ""), delta(2, "")]), Class::Lost);
    record.compare(&[delta(1, ""), delta(2, ""), delta(3, "")]).unwrap();
}

#[test]
fn nothing_comes_behind_a_terminal_event() {
    let record = record();
    record.deliver(&frame("a", 2, "execution.completed", "")).unwrap();
    record.deliver(&delta(1, "late reader")).unwrap();
    wrong(record.deliver(&delta(3, "")), Class::Phantom);
}

#[test]
fn what_was_settled_never_changes() {
    let record = record();
    let frames = [delta(1, ""), frame("a", 2, "execution.completed", "")];
    record.deliver(&frames[0]).unwrap();
    record.settle(&frames);
    record.deliver(&frames[1]).unwrap();
    record.compare(&frames).unwrap();
    wrong(record.deliver(&delta(1, "y")), Class::Altered);
    wrong(record.deliver(&delta(3, "")), Class::Phantom);
    wrong(record.compare(&frames[..1]), Class::Altered);
}

#[test]
fn one_request_is_one_execution() {
    let answer = |id: &str, created_at: &str, replay: bool| json!({"execution_id": id, "created_at": created_at, "idempotent_replay": replay, "status": "accepted"});
    let record = record();
    record.answer(202, &answer("a", "t", false)).unwrap();
    record.answer(200, &answer("a", "t", true)).unwrap();
    wrong(record.answer(200, &answer("b", "t", true)), Class::Phantom);
    wrong(record.answer(200, &answer("a", "u", true)), Class::Altered);
    wrong(record.answer(200, &answer("a", "u", false)), Class::Disagrees);
    wrong(record.answer(202, &answer("a", "u", false)), Class::Phantom);
    wrong(record.deliver(&frame("b", 1, "execution.accepted", "")), Class::Phantom);
    assert!(record.state().acknowledged);
}
