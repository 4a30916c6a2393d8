use sealog_events::{ErrorFact, EventBody, PortableCode, Target};
use sealog_journal::Class;
use sealog_journal_format::{FrameHeader, FrameKind};

use super::*;

const ID: [u8; 16] = [5; 16];

fn frame() -> FrameView {
    let header = FrameHeader {
        body_length: 64,
        index: 1,
        kind: FrameKind::Group,
        first_sequence: 1,
        record_count: 1,
        synced_through: 0,
        previous_chain: [0; 16],
        body_crc: 0,
        body_tag: [0; 16],
        header_tag: [0; 16],
    };
    FrameView { segment: 1, offset: 8352, epoch: 1, header }
}

/// Records of one execution, numbered as they are added.
struct Journal {
    survey: Survey,
    sequence: u64,
    fold: Materializer,
    events: u64,
}

impl Journal {
    fn new() -> Journal {
        let id = ExecutionId::from_bytes(ID);
        let fold = Materializer::new(id, Timestamp(1));
        let mut journal = Journal { survey: Survey::checking(), sequence: 0, fold, events: 0 };
        let created = sealog_events::Created { created_at: Timestamp(1), identity: None };
        journal.add(RecordKind::Created.number(), 0, body::encode_created(&created));
        journal
    }

    fn add(&mut self, kind: u16, event_number: u64, body: Vec<u8>) {
        self.sequence += 1;
        let record = Record {
            sequence: self.sequence,
            kind,
            stream: (kind > KIND_JOURNAL_MAX).then_some(StreamId(ID)),
            class: Class::NONE,
            event_number,
            time_ms: 2,
            logical_size: 10,
            body,
            epoch: 1,
        };
        self.survey.record(&frame(), &record);
    }

    fn event(&mut self, body: EventBody) {
        self.events += 1;
        let event = Event { sequence: self.events, time: Timestamp(2), body };
        self.fold.push(&event);
        self.add(event.body.kind(), event.sequence, body::encode(&event.body).unwrap());
    }

    /// The terminal event with its result, or with that of another text.
    fn end(&mut self, terminal: EventBody, other_text: Option<&str>) {
        let mut fold = self.fold.clone();
        if let Some(delta) = other_text {
            let body = EventBody::OutputDelta { output_index: 0, delta: delta.to_owned() };
            fold.push(&Event { sequence: self.events + 1, time: Timestamp(2), body });
        }
        fold.push(&Event { sequence: self.events + 1, time: Timestamp(2), body: terminal.clone() });
        let result = MaterializedResult::of(&fold.into_snapshot(), 1024).unwrap();
        self.add(RecordKind::MaterializedResult.number(), 0, body::encode_result(&result).unwrap());
        self.event(terminal);
    }

    #[track_caller]
    fn check(&self, expected: &[&str]) {
        let found: Vec<&str> = self.survey.findings.iter().map(|finding| finding.what.words()).collect();
        assert_eq!(found, expected);
    }
}

fn delta(text: &str) -> EventBody {
    EventBody::OutputDelta { output_index: 0, delta: text.to_owned() }
}

fn completed() -> EventBody {
    EventBody::Completed { target: Target { provider: "p".into(), model: "m".into() }, stop_reason: None }
}

#[test]
fn a_finished_execution_with_its_result_is_sound() {
    let mut journal = Journal::new();
    for body in [EventBody::Accepted, delta("a"), delta("b")] {
        journal.event(body);
    }
    journal.end(completed(), None);
    journal.check(&[]);
    let execution = &journal.survey.executions[&StreamId(ID)];
    assert_eq!((execution.status, execution.events, execution.bytes), (Status::Succeeded, 4, 40));
}

#[test]
fn a_result_that_the_events_do_not_give_is_found() {
    let mut journal = Journal::new();
    journal.event(EventBody::Accepted);
    journal.event(delta("a"));
    journal.end(completed(), Some("b"));
    journal.check(&["the stored result is not what the events give"]);
    assert_eq!(journal.survey.findings[0].sequence, journal.sequence);
    let mut journal = Journal::new();
    journal.event(EventBody::Accepted);
    journal.event(completed());
    journal.check(&["a terminal event without its stored result"]);
}

#[test]
fn holes_and_second_ends_are_found() {
    let mut journal = Journal::new();
    journal.event(EventBody::Accepted);
    journal.events += 1;
    journal.event(delta("a"));
    journal.check(&["events are missing before this one"]);
    journal.survey.explain_by_gaps();
    journal.check(&[]);
    let mut journal = Journal::new();
    journal.event(EventBody::Accepted);
    let error = ErrorFact::new(PortableCode::InternalError, "m", false);
    journal.end(EventBody::Failed { error, cancelled: false }, None);
    journal.event(completed());
    journal.check(&["an event behind the terminal one"]);
}

#[test]
fn what_cannot_be_read_is_found() {
    let mut journal = Journal::new();
    journal.add(RecordKind::OutputDelta.number(), 1, vec![0xff; 3]);
    journal.add(RecordKind::MaterializedResult.number(), 0, vec![1]);
    journal.add(79, 2, Vec::new());
    journal.add(KIND_FORGET, 0, vec![9]);
    journal.check(&[
        "an event that cannot be read",
        "a stored result that cannot be read",
        "a record that this release does not know",
        "a forget record that cannot be read",
    ]);
}

#[test]
fn what_was_forgotten_is_not_shown() {
    let mut journal = Journal::new();
    journal.event(EventBody::Accepted);
    journal.add(KIND_FORGET, 0, Forget { streams: vec![ID] }.encode().unwrap());
    journal.check(&[]);
    assert!(journal.survey.executions.is_empty());
    assert_eq!(journal.survey.forgotten, 1);
}

/// Compaction may have taken a part of an execution that a later record forgets.
#[test]
fn a_part_of_what_is_forgotten_is_no_finding() {
    let mut journal = Journal::new();
    journal.survey.executions.clear();
    journal.event(EventBody::Accepted);
    assert_eq!(journal.survey.findings.len(), 1);
    assert_eq!(journal.survey.findings[0].what, What::EventWithoutCreation);
    journal.add(KIND_FORGET, 0, Forget { streams: vec![[6; 16]] }.encode().unwrap());
    assert_eq!(journal.survey.findings.len(), 1, "another one");
    journal.add(KIND_FORGET, 0, Forget { streams: vec![ID] }.encode().unwrap());
    assert_eq!(journal.survey.findings, []);
    assert!(journal.survey.orphans.is_empty());
}

/// Records of a few executions in any order: as they should come, too early, twice, with holes, forgotten, made anew, and
/// ones that do not read.
struct Disorder {
    random: u64,
    folds: Vec<(Materializer, u64)>,
    records: Vec<Record>,
}

impl Disorder {
    fn draw(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    fn new(seed: u64) -> Disorder {
        let folds = (0..5).map(|n| (Materializer::new(ExecutionId::from_bytes([n; 16]), Timestamp(1)), 0));
        Disorder { random: seed, folds: folds.collect(), records: Vec::new() }
    }

    fn add(&mut self, stream: Option<usize>, kind: u16, event_number: u64, body: Vec<u8>) {
        self.records.push(Record {
            sequence: self.records.len() as u64 + 1,
            kind,
            stream: stream.map(|n| StreamId([n as u8; 16])),
            class: Class::NONE,
            event_number,
            time_ms: 2,
            logical_size: 10,
            body,
            epoch: 1,
        });
    }

    fn event(&mut self, n: usize, body: EventBody) {
        let skip = self.draw(12) / 11;
        let (fold, events) = &mut self.folds[n];
        *events += 1 + skip;
        let event = Event { sequence: *events, time: Timestamp(2), body };
        fold.push(&event);
        self.add(Some(n), event.body.kind(), event.sequence, body::encode(&event.body).unwrap());
    }

    fn end(&mut self, n: usize) {
        let mut fold = self.folds[n].0.clone();
        let sequence = self.folds[n].1 + 1;
        if self.draw(6) == 0 {
            fold.push(&Event { sequence, time: Timestamp(2), body: delta("what no event says") });
        }
        fold.push(&Event { sequence, time: Timestamp(2), body: completed() });
        let result = MaterializedResult::of(&fold.into_snapshot(), 1024).unwrap();
        if self.draw(6) > 0 {
            self.add(
                Some(n),
                RecordKind::MaterializedResult.number(),
                0,
                body::encode_result(&result).unwrap(),
            );
        }
        self.event(n, completed());
    }

    fn create(&mut self, n: usize) {
        self.folds[n] = (Materializer::new(ExecutionId::from_bytes([n as u8; 16]), Timestamp(1)), 0);
        let created = sealog_events::Created { created_at: Timestamp(1), identity: None };
        self.add(Some(n), RecordKind::Created.number(), 0, body::encode_created(&created));
    }

    fn unreadable(&mut self, n: usize) {
        let kinds = [
            RecordKind::OutputDelta.number(),
            RecordKind::MaterializedResult.number(),
            RecordKind::Created.number(),
            RecordKind::AttemptEvidence.number(),
            79,
            KIND_FORGET,
        ];
        let kind = kinds[self.draw(kinds.len() as u64) as usize];
        self.add((kind != KIND_FORGET).then_some(n), kind, 1, vec![0xff; 3]);
    }

    fn records(mut self) -> Vec<Record> {
        for _ in 0..60 {
            let n = self.draw(5) as usize;
            match self.draw(16) {
                0..=2 => self.create(n),
                3..=9 => self.event(n, delta("a")),
                10..=12 => self.end(n),
                13 => {
                    let streams = vec![[n as u8; 16], [9; 16]];
                    self.add(None, KIND_FORGET, 0, Forget { streams }.encode().unwrap());
                }
                14 => {
                    let evidence = RecordKind::AttemptEvidence.number();
                    let told =
                        sealog_events::AttemptEvidence { attempt: 1, mark: sealog_events::Mark::RequestSent };
                    self.add(Some(n), evidence, 0, body::encode_evidence(&told).unwrap());
                }
                _ => self.unreadable(n),
            }
        }
        self.records
    }
}

/// What `verify` says of them.
fn said(survey: &Survey) -> (&[Finding], Vec<String>, u64, &BTreeSet<StreamId>) {
    let executions = survey.executions.iter().map(|(stream, execution)| format!("{stream:?} {execution:?}"));
    let executions = executions.collect::<BTreeSet<_>>().into_iter().collect();
    (&survey.findings, executions, survey.forgotten, &survey.orphans)
}

/// Wherever a journal is cut into segments, and whichever of them come in parts: the same findings in the same order.
#[test]
fn parts_find_what_one_pass_finds() {
    let mut kinds = HashMap::new();
    for seed in 0..400 {
        let records = Disorder::new(seed).records();
        let mut whole = Survey::checking();
        records.iter().for_each(|record| whole.record(&frame(), record));
        whole.findings.iter().for_each(|finding| *kinds.entry(finding.what.words()).or_insert(0) += 1);
        let mut survey = Survey::checking();
        let (parts, mut cuts) = (survey.parts().unwrap(), Disorder::new(seed + 7));
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let (segment, behind) = rest.split_at(rest.len().min(cuts.draw(30) as usize));
            rest = behind;
            if cuts.draw(4) == 0 {
                segment.iter().for_each(|record| survey.record(&frame(), record));
                continue;
            }
            let mut part = parts.make();
            segment.iter().for_each(|record| part.record(&frame(), record));
            survey.absorb(part);
        }
        assert_eq!(said(&survey), said(&whole), "seed {seed}");
    }
    assert!(kinds.len() >= 13, "{kinds:?}");
}

/// Who looks at single events or frames is told of them in order.
#[test]
fn only_a_check_comes_in_parts() {
    assert!(Survey::looking(true, None).parts().is_none());
    assert!(Survey::looking(false, Some(ExecutionId::from_bytes(ID))).parts().is_none());
    assert!(Survey::checking().parts().is_some());
}
