//! `sealog journal inspect DIR`: what is in a journal, without any content.

use std::fmt::Write as _;
use std::path::Path;

use sealog_events::{ExecutionId, Status, Timestamp};
use sealog_journal::{Audit, Fence, FrameView, StreamId, audit, key_facts};
use sealog_journal_format::FrameKind;
use serde::Serialize;

use crate::again::same_key;
use crate::anchors;
use crate::args::Inspect;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::opening;
use crate::render::Render;
use crate::report::keys::KeysBody;
use crate::report::{
    self, GapBody, HeadBody, KeyringBody, ProblemBody, SegmentBody, TailBody, Verdict, counted,
};
use crate::survey::{Execution, Survey};

#[derive(Serialize)]
struct Answer {
    verdict: Verdict,
    store_id: String,
    created_at: String,
    live: bool,
    /// It is a backup.
    backup: bool,
    /// What it does not know is refused; where damage took records, by those that read.
    fenced: bool,
    keyring: KeyringBody,
    head: Option<HeadBody>,
    last_sequence: u64,
    executions: Counts,
    segments: Vec<SegmentBody>,
    tail: Option<TailBody>,
    problems: Vec<ProblemBody>,
    gaps: Vec<GapBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<Vec<FrameBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<KeysBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<ExecutionBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_list: Option<Vec<ListedBody>>,
}

#[derive(Default, Serialize)]
struct Counts {
    total: u64,
    open: u64,
    succeeded: u64,
    failed: u64,
    cancelled: u64,
    forgotten: u64,
}

#[derive(Serialize)]
struct FrameBody {
    segment: u64,
    index: u32,
    offset: u64,
    kind: &'static str,
    epoch: u64,
    first_sequence: u64,
    records: u32,
    body_bytes: u32,
    synced_through: u64,
}

#[derive(Serialize)]
struct ExecutionBody {
    execution_id: String,
    status: &'static str,
    created_at: String,
    updated_at: String,
    last_sequence: u64,
    bytes: u64,
    first_segment: u64,
    last_segment: u64,
    events: Vec<EventBody>,
}

/// One line of the list of all executions.
#[derive(Serialize)]
struct ListedBody {
    execution_id: String,
    /// Nothing where damage took the creation.
    #[serde(flatten)]
    known: Option<KnownBody>,
}

#[derive(Serialize)]
struct KnownBody {
    status: &'static str,
    created_at: String,
    updated_at: String,
    last_sequence: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct EventBody {
    sequence: u64,
    #[serde(rename = "type")]
    type_name: &'static str,
    time: String,
    bytes: u64,
    segment: u64,
    offset: u64,
    journal_sequence: u64,
}

pub fn run(args: &Inspect, render: Render) -> Result<Exit> {
    if args.head {
        return anchors::print(&args.dir, args.place, &args.key, render);
    }
    let config = opening::for_reading(&args.dir, args.place, &args.key, render)?;
    let wanted = match args.execution.as_deref().map(|text| (text, ExecutionId::parse(text))) {
        None => None,
        Some((_, Some(id))) => Some(id),
        Some((_, None)) => return Err(not_found(&args.dir)),
    };
    let (audit, (survey, fence)) =
        audit(&config, &mut || (Survey::looking(args.frames, wanted), Fence::default()))
            .map_err(|error| Failure::journal(error, &args.dir))?;
    let execution = match wanted {
        None => None,
        Some(id) => match survey.executions.get(&StreamId(*id.as_bytes())) {
            Some(execution) => Some(execution_body(id, execution, &survey)),
            None if audit.is_sound() => return Err(not_found(&args.dir)),
            None => None,
        },
    };
    let mut answer = answer(&audit, &survey, args.frames, execution);
    answer.fenced = fence.is_up();
    answer.execution_list = args.executions.then(|| listed(&survey));
    if args.keys {
        let facts = key_facts(&config).map_err(|error| Failure::journal(error, &args.dir))?;
        answer.keys = Some(KeysBody::new(&facts));
    }
    if render.json {
        render.object(&answer)?;
    } else {
        render.data(&text(&answer, args.segments))?;
    }
    for remark in report::remarks(&audit) {
        render.note(&remark);
    }
    match answer.verdict {
        Verdict::Sound | Verdict::TornTail => Ok(Exit::Success),
        Verdict::Damaged => Err(report::damaged(&audit, &[], &args.dir)),
    }
}

pub fn not_found(dir: &Path) -> Failure {
    Failure::new(Exit::NotFound, "not_found", "the journal holds no execution of that id").next(format!(
        "list what is there: sealog journal inspect {} --executions{}",
        shown(dir),
        same_key()
    ))
}

fn answer(audit: &Audit, survey: &Survey, frames: bool, execution: Option<ExecutionBody>) -> Answer {
    Answer {
        verdict: Verdict::of(audit, &[]),
        store_id: report::hex(&audit.store_id),
        created_at: Timestamp(audit.created_ms).to_string(),
        live: audit.live,
        backup: audit.copied,
        fenced: false,
        keyring: KeyringBody::new(audit),
        head: audit.head.as_ref().map(HeadBody::new),
        last_sequence: audit.last_sequence,
        executions: counts(survey),
        segments: audit.segments.iter().map(SegmentBody::new).collect(),
        tail: audit.tail.as_ref().map(TailBody::new),
        problems: report::problem_bodies(&audit.problems, &[]),
        gaps: report::gap_bodies(&audit.gaps),
        frames: frames.then(|| survey.frames.iter().map(frame_body).collect()),
        keys: None,
        execution,
        execution_list: None,
    }
}

/// Every execution, the oldest first: nobody can ask for one whose id is lost. Then those without a creation.
fn listed(survey: &Survey) -> Vec<ListedBody> {
    let mut all: Vec<(&StreamId, &Execution)> = survey.executions.iter().collect();
    all.sort_by_key(|(id, execution)| (execution.created_at.0, id.0));
    let known = |execution: &Execution| KnownBody {
        status: execution.status.as_str(),
        created_at: execution.created_at.to_string(),
        updated_at: execution.updated_at.to_string(),
        last_sequence: execution.events,
        bytes: execution.bytes,
    };
    let body =
        |id: &StreamId, known| ListedBody { execution_id: ExecutionId::from_bytes(id.0).to_string(), known };
    let orphans = survey.orphans.iter().map(|id| body(id, None));
    all.into_iter().map(|(id, execution)| body(id, Some(known(execution)))).chain(orphans).collect()
}

fn counts(survey: &Survey) -> Counts {
    let mut counts = Counts { forgotten: survey.forgotten, ..Counts::default() };
    for execution in survey.executions.values() {
        counts.total += 1;
        match execution.status {
            Status::Accepted | Status::Routing | Status::Running => counts.open += 1,
            Status::Succeeded => counts.succeeded += 1,
            Status::Failed => counts.failed += 1,
            Status::Cancelled => counts.cancelled += 1,
        }
    }
    counts
}

fn frame_body(frame: &FrameView) -> FrameBody {
    let kind = match frame.header.kind {
        FrameKind::Group => "group",
        FrameKind::Link => "link",
        FrameKind::Seal => "seal",
        FrameKind::Folded => "folded",
        FrameKind::Sources => "sources",
    };
    FrameBody {
        segment: frame.segment,
        index: frame.header.index,
        offset: frame.offset,
        kind,
        epoch: frame.epoch,
        first_sequence: frame.header.first_sequence,
        records: frame.header.record_count,
        body_bytes: frame.header.body_length,
        synced_through: frame.header.synced_through,
    }
}

fn execution_body(id: ExecutionId, execution: &Execution, survey: &Survey) -> ExecutionBody {
    let events = survey.events.iter().map(|event| EventBody {
        sequence: event.number,
        type_name: event.type_name,
        time: event.time.to_string(),
        bytes: event.bytes,
        segment: event.segment,
        offset: event.offset,
        journal_sequence: event.sequence,
    });
    ExecutionBody {
        execution_id: id.to_string(),
        status: execution.status.as_str(),
        created_at: execution.created_at.to_string(),
        updated_at: execution.updated_at.to_string(),
        last_sequence: execution.events,
        bytes: execution.bytes,
        first_segment: execution.first_segment,
        last_segment: execution.last_segment,
        events: events.collect(),
    }
}

fn text(answer: &Answer, all_segments: bool) -> String {
    let kind = if answer.backup { "backup of journal" } else { "journal" };
    let mut text = format!("{kind} {}, created {}\n", answer.store_id, answer.created_at);
    if answer.fenced {
        text += "fenced: what it does not know is refused until `sealog journal unfence`\n";
    }
    text += &answer.keys.as_ref().map_or_else(|| answer.keyring.line(), KeysBody::text);
    if let Some(head) = &answer.head {
        text += &head.line();
    }
    let Counts { total, open, succeeded, failed, cancelled, forgotten } = answer.executions;
    let _ = writeln!(
        text,
        "executions: {total} ({open} open, {succeeded} succeeded, {failed} failed, {cancelled} cancelled, \
         {forgotten} forgotten); last sequence {}",
        answer.last_sequence
    );
    text += &report::segment_lines(&answer.segments, all_segments);
    for frame in answer.frames.iter().flatten() {
        let FrameBody { segment, index, offset, kind, first_sequence, records, body_bytes, .. } = frame;
        let _ = writeln!(
            text,
            "  frame {segment}/{index} at {offset}: {kind}, {} from sequence {first_sequence}, {body_bytes} bytes",
            counted(u64::from(*records), "record")
        );
    }
    for listed in answer.execution_list.iter().flatten() {
        let ListedBody { execution_id, known } = listed;
        let _ = match known {
            None => {
                writeln!(text, "execution {execution_id}: damaged at its beginning; replay exports the rest")
            }
            Some(KnownBody { status, created_at, last_sequence, bytes, .. }) => writeln!(
                text,
                "execution {execution_id}: {status}, created {created_at}, {}, {bytes} bytes",
                counted(*last_sequence, "event")
            ),
        };
    }
    if let Some(execution) = &answer.execution {
        text += &execution_text(execution);
    }
    if let Some(tail) = &answer.tail {
        let _ = writeln!(text, "{}", tail.line());
    }
    for problem in &answer.problems {
        let _ = writeln!(text, "damaged: {}", problem.line());
    }
    for gap in &answer.gaps {
        let _ = writeln!(text, "gap: {}", gap.line());
    }
    text
}

fn execution_text(execution: &ExecutionBody) -> String {
    let ExecutionBody { execution_id, status, created_at, last_sequence, bytes, events, .. } = execution;
    let mut text = format!(
        "execution {execution_id}: {status}, created {created_at}, {}, {bytes} bytes\n",
        counted(*last_sequence, "event")
    );
    for event in events {
        let EventBody { sequence, type_name, time, bytes, segment, offset, .. } = event;
        let _ = writeln!(
            text,
            "  {sequence:>5} {time} {type_name}, {bytes} bytes, segment {segment}, frame at offset {offset}"
        );
    }
    text
}
