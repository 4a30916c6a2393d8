//! Finished executions in columns: the stored form of one execution's records once nothing is added to them.
//!
//! Owns the layout of `spec/journal.md` section 5.4. Numbers stand in columns, the text of deltas is joined, and a result
//! that the events give anyway is not kept a second time. What is folded unfolds to the same records, byte for byte:
//! [`fold`] proves it before it answers. Must never interpret a record that [`crate::body`] would refuse.

mod column;

use self::column::{Reader, put_column, put_varint, zag_zig, zig_zag};
use crate::limits::RESULT_BYTES_MAX;
use crate::{
    Event, EventBody, ExecutionId, Holds, MaterializedResult, Materializer, RecordKind, Timestamp, body, json,
};

const VERSION: u8 = 1;
/// Most records of one piece.
pub const ROWS_MAX: usize = 65_536;
/// Bytes of bodies that one folded byte may stand for: what bounds the memory of [`unfold`]. A piece that would save
/// more is so odd that it is not folded.
const BODY_BYTES_PER_BYTE: usize = 64;
const BODY_BYTES_FREE: usize = 4096 + RESULT_BYTES_MAX;

/// How a result's body is kept.
const RESULT_TEXT: u64 = 0;
const RESULT_HASH: u64 = 1;
const RESULT_BODY: u64 = 2;

/// One record of an execution: its envelope and its body as the journal keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub sequence: u64,
    /// Of the writer that wrote it.
    pub epoch: u64,
    pub kind: u16,
    /// Opaque here.
    pub class: u8,
    /// 0: not an event.
    pub event_number: u64,
    pub time_ms: u64,
    pub logical_size: u64,
    pub body: Vec<u8>,
}

/// Bytes that no fold makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a folded execution does not read back")]
pub struct NotFolded;

/// The records of one execution, in sequence order, as columns. `None` if they are not what this execution's records
/// look like or are too odd to be worth it; then they are kept as they are.
#[must_use]
pub fn fold(id: ExecutionId, rows: &[Row]) -> Option<Vec<u8>> {
    let folded = encode(id, rows)?;
    // The promise itself rather than a list of what it rests on.
    let again = unfold(id, rows.first()?.sequence, &folded).ok()?;
    (again == rows).then_some(folded)
}

/// The records that [`fold`] was given; `first_sequence` is that of the first one.
///
/// # Errors
/// Bytes that [`fold`] does not make. Memory is bounded by a multiple of their length.
pub fn unfold(id: ExecutionId, first_sequence: u64, bytes: &[u8]) -> Result<Vec<Row>, NotFolded> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != VERSION {
        return Err(NotFolded);
    }
    let count = reader.small()?;
    if count == 0 || count > ROWS_MAX.min(bytes.len()) {
        return Err(NotFolded);
    }
    let mut rows = Vec::with_capacity(count);
    kinds(&mut reader, count, &mut rows)?;
    envelopes(&mut reader, first_sequence, &mut rows)?;
    let sizes = reader.column(count)?;
    let budget = BODY_BYTES_FREE + BODY_BYTES_PER_BYTE * bytes.len();
    let elided = Bodies { budget }.read(&mut reader, &mut rows)?;
    reader.end()?;
    if let Some((at, form)) = elided {
        rows[at].body = result_body(id, &rows, form).ok_or(NotFolded)?;
    }
    for (at, size) in sizes.into_iter().enumerate() {
        let usual = usual_size(id, &rows[at]).ok_or(NotFolded)?;
        rows[at].logical_size = usual.wrapping_add(zag_zig(size) as u64);
    }
    Ok(rows)
}

fn kinds(reader: &mut Reader<'_>, count: usize, rows: &mut Vec<Row>) -> Result<(), NotFolded> {
    while rows.len() < count {
        let kind = u16::try_from(reader.varint()?).map_err(|_| NotFolded)?;
        let (class, run) = (reader.byte()?, reader.small()?);
        RecordKind::from_number(kind).ok_or(NotFolded)?;
        if run == 0 || run > count - rows.len() {
            return Err(NotFolded);
        }
        let row = Row {
            sequence: 0,
            epoch: 0,
            kind,
            class,
            event_number: 0,
            time_ms: 0,
            logical_size: 0,
            body: Vec::new(),
        };
        rows.extend(std::iter::repeat_n(row, run));
    }
    Ok(())
}

/// Epochs, event numbers, times and sequences.
fn envelopes(reader: &mut Reader<'_>, first_sequence: u64, rows: &mut [Row]) -> Result<(), NotFolded> {
    let mut at = 0;
    while at < rows.len() {
        let (epoch, run) = (reader.varint()?, reader.small()?);
        let end = at.checked_add(run).filter(|end| *end > at && *end <= rows.len()).ok_or(NotFolded)?;
        rows[at..end].iter_mut().for_each(|row| row.epoch = epoch);
        at = end;
    }
    let mut number = reader.varint()?;
    for row in rows.iter_mut().filter(|row| is_event(row.kind)) {
        row.event_number = number;
        number = number.checked_add(1).ok_or(NotFolded)?;
    }
    let mut time = reader.varint()?;
    rows[0].time_ms = time;
    let steps = reader.column(rows.len() - 1)?;
    for (row, step) in rows[1..].iter_mut().zip(steps) {
        time = time.checked_add_signed(zag_zig(step)).ok_or(NotFolded)?;
        row.time_ms = time;
    }
    let mut sequence = first_sequence;
    rows[0].sequence = sequence;
    let steps = reader.column(rows.len() - 1)?;
    for (row, step) in rows[1..].iter_mut().zip(steps) {
        sequence = step.checked_add(1).and_then(|step| sequence.checked_add(step)).ok_or(NotFolded)?;
        row.sequence = sequence;
    }
    Ok(())
}

fn is_event(kind: u16) -> bool {
    RecordKind::from_number(kind).is_some_and(RecordKind::is_event)
}

/// Reads bodies as long as the memory that they take stands in a proportion to the bytes that they come from.
struct Bodies {
    budget: usize,
}

impl Bodies {
    fn spend(&mut self, bytes: usize) -> Result<(), NotFolded> {
        self.budget = self.budget.checked_sub(bytes).ok_or(NotFolded)?;
        Ok(())
    }

    /// Fills in every body but that of a result which is not kept: its place and its form.
    fn read(mut self, reader: &mut Reader<'_>, rows: &mut [Row]) -> Result<Option<(usize, u64)>, NotFolded> {
        self.deltas(reader, rows)?;
        self.arguments(reader, rows)?;
        let mut elided = None;
        for (at, row) in rows.iter_mut().enumerate() {
            match RecordKind::from_number(row.kind).ok_or(NotFolded)? {
                RecordKind::OutputDelta | RecordKind::ToolCallArgumentsDelta => {}
                RecordKind::MaterializedResult => match reader.varint()? {
                    RESULT_BODY => row.body = self.own(reader)?,
                    form @ (RESULT_TEXT | RESULT_HASH) if elided.is_none() => elided = Some((at, form)),
                    _ => return Err(NotFolded),
                },
                RecordKind::Created
                | RecordKind::Origin
                | RecordKind::AttemptEvidence
                | RecordKind::Labels
                | RecordKind::Accepted
                | RecordKind::RouteSelected
                | RecordKind::RouteAttemptFailed
                | RecordKind::ToolCallStarted
                | RecordKind::Progress
                | RecordKind::OutputResult
                | RecordKind::UsageReported
                | RecordKind::Completed
                | RecordKind::CompletedFor
                | RecordKind::Failed => row.body = self.own(reader)?,
            }
        }
        Ok(elided)
    }

    fn own(&mut self, reader: &mut Reader<'_>) -> Result<Vec<u8>, NotFolded> {
        let bytes = reader.sized()?;
        self.spend(bytes.len())?;
        Ok(bytes.to_vec())
    }

    fn deltas(&mut self, reader: &mut Reader<'_>, rows: &mut [Row]) -> Result<(), NotFolded> {
        let places = places(rows, RecordKind::OutputDelta);
        let outputs = reader.column(places.len())?;
        let lengths = reader.column(places.len())?;
        for (at, (output, length)) in places.into_iter().zip(outputs.into_iter().zip(lengths)) {
            let output_index = u32::try_from(output).map_err(|_| NotFolded)?;
            let delta = self.text(reader, length)?;
            rows[at].body = encoded(&EventBody::OutputDelta { output_index, delta })?;
        }
        Ok(())
    }

    fn arguments(&mut self, reader: &mut Reader<'_>, rows: &mut [Row]) -> Result<(), NotFolded> {
        let places = places(rows, RecordKind::ToolCallArgumentsDelta);
        if places.is_empty() {
            return Ok(());
        }
        let named = reader.small()?;
        if named > places.len() {
            return Err(NotFolded);
        }
        let mut names = Vec::with_capacity(named);
        for _ in 0..named {
            names.push(str::from_utf8(reader.sized()?).map_err(|_| NotFolded)?);
        }
        let calls = reader.column(places.len())?;
        let lengths = reader.column(places.len())?;
        for (at, (call, length)) in places.into_iter().zip(calls.into_iter().zip(lengths)) {
            let name = usize::try_from(call).ok().and_then(|call| names.get(call)).ok_or(NotFolded)?;
            self.spend(name.len())?;
            let (call_id, delta) = ((*name).to_owned(), self.text(reader, length)?);
            rows[at].body = encoded(&EventBody::ToolCallArgumentsDelta { call_id, delta })?;
        }
        Ok(())
    }

    fn text(&mut self, reader: &mut Reader<'_>, length: u64) -> Result<String, NotFolded> {
        let bytes = reader.take(usize::try_from(length).map_err(|_| NotFolded)?)?;
        self.spend(bytes.len())?;
        Ok(str::from_utf8(bytes).map_err(|_| NotFolded)?.to_owned())
    }
}

fn places(rows: &[Row], kind: RecordKind) -> Vec<usize> {
    (0..rows.len()).filter(|at| rows[*at].kind == kind.number()).collect()
}

fn encoded(body: &EventBody) -> Result<Vec<u8>, NotFolded> {
    body::encode(body).map_err(|_| NotFolded)
}

/// The event of a row; `None` if its body does not decode.
fn event(row: &Row) -> Option<Event> {
    let body = body::decode(row.kind, &row.body).ok()?;
    Some(Event { sequence: row.event_number, time: Timestamp(row.time_ms), body })
}

/// What a record's logical size usually is: an event's is the length of its text. `None` if its body does not decode.
fn usual_size(id: ExecutionId, row: &Row) -> Option<u64> {
    match RecordKind::from_number(row.kind)?.holds() {
        Holds::Creation => body::decode_created(&row.body).ok().map(|_| 0),
        Holds::Origin => body::decode_origin(&row.body).ok().map(|_| 0),
        Holds::Labels => body::decode_labels(&row.body).ok().map(|_| 0),
        Holds::Result => body::decode_result(&row.body).ok().map(|_| 0),
        Holds::Evidence => body::decode_evidence(&row.body).ok().map(|_| 0),
        Holds::Event => Some(json::event_json_bytes(id, &event(row)?) as u64),
    }
}

/// The body of the result that these events give; `None` if they do not end.
fn result_body(id: ExecutionId, rows: &[Row], form: u64) -> Option<Vec<u8>> {
    let mut fold = Materializer::new(id, Timestamp(0));
    for row in rows.iter().filter(|row| is_event(row.kind)) {
        fold.push(&event(row)?);
    }
    let text_bytes_max = if form == RESULT_TEXT { RESULT_BYTES_MAX } else { 0 };
    body::encode_result(&MaterializedResult::of(&fold.into_snapshot(), text_bytes_max)?).ok()
}

fn encode(id: ExecutionId, rows: &[Row]) -> Option<Vec<u8>> {
    let (first, rest) = rows.split_first()?;
    if rows.len() > ROWS_MAX {
        return None;
    }
    let mut out = vec![VERSION];
    put_varint(&mut out, rows.len() as u64);
    for run in rows.chunk_by(|a, b| (a.kind, a.class) == (b.kind, b.class)) {
        RecordKind::from_number(run[0].kind)?;
        put_varint(&mut out, u64::from(run[0].kind));
        out.push(run[0].class);
        put_varint(&mut out, run.len() as u64);
    }
    for run in rows.chunk_by(|a, b| a.epoch == b.epoch) {
        put_varint(&mut out, run[0].epoch);
        put_varint(&mut out, run.len() as u64);
    }
    put_varint(&mut out, rows.iter().find(|row| is_event(row.kind)).map_or(0, |row| row.event_number));
    put_varint(&mut out, first.time_ms);
    let before = || rows.iter().zip(rest);
    let times = before()
        .map(|(a, b)| Some(zig_zag(i64::try_from(i128::from(b.time_ms) - i128::from(a.time_ms)).ok()?)));
    put_column(&mut out, &times.collect::<Option<Vec<u64>>>()?);
    let steps = before().map(|(a, b)| b.sequence.checked_sub(a.sequence)?.checked_sub(1));
    put_column(&mut out, &steps.collect::<Option<Vec<u64>>>()?);
    let sizes = rows.iter().map(|row| {
        let usual = usual_size(id, row)?;
        Some(zig_zag(row.logical_size.wrapping_sub(usual) as i64))
    });
    put_column(&mut out, &sizes.collect::<Option<Vec<u64>>>()?);
    put_deltas(&mut out, rows)?;
    put_arguments(&mut out, rows)?;
    put_others(&mut out, id, rows)?;
    Some(out)
}

fn put_deltas(out: &mut Vec<u8>, rows: &[Row]) -> Option<()> {
    let (mut outputs, mut texts) = (Vec::new(), Vec::new());
    for at in places(rows, RecordKind::OutputDelta) {
        let EventBody::OutputDelta { output_index, delta } = event(&rows[at])?.body else { return None };
        outputs.push(u64::from(output_index));
        texts.push(delta);
    }
    put_column(out, &outputs);
    put_texts(out, &texts);
    Some(())
}

fn put_arguments(out: &mut Vec<u8>, rows: &[Row]) -> Option<()> {
    let (mut names, mut calls, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for at in places(rows, RecordKind::ToolCallArgumentsDelta) {
        let EventBody::ToolCallArgumentsDelta { call_id, delta } = event(&rows[at])?.body else {
            return None;
        };
        let known = names.iter().position(|name| *name == call_id);
        calls.push(known.unwrap_or(names.len()) as u64);
        if known.is_none() {
            names.push(call_id);
        }
        texts.push(delta);
    }
    if calls.is_empty() {
        return Some(());
    }
    put_varint(out, names.len() as u64);
    for name in &names {
        put_sized(out, name.as_bytes());
    }
    put_column(out, &calls);
    put_texts(out, &texts);
    Some(())
}

/// The lengths, then the texts in one.
fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    let lengths: Vec<u64> = texts.iter().map(|text| text.len() as u64).collect();
    put_column(out, &lengths);
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}

fn put_others(out: &mut Vec<u8>, id: ExecutionId, rows: &[Row]) -> Option<()> {
    let mut elided = false;
    for row in rows {
        match RecordKind::from_number(row.kind)? {
            RecordKind::OutputDelta | RecordKind::ToolCallArgumentsDelta => {}
            RecordKind::MaterializedResult => {
                let same = |form: &u64| !elided && result_body(id, rows, *form).as_ref() == Some(&row.body);
                match [RESULT_TEXT, RESULT_HASH].into_iter().find(same) {
                    Some(form) => {
                        elided = true;
                        put_varint(out, form);
                    }
                    None => {
                        put_varint(out, RESULT_BODY);
                        put_sized(out, &row.body);
                    }
                }
            }
            RecordKind::Created
            | RecordKind::Origin
            | RecordKind::AttemptEvidence
            | RecordKind::Labels
            | RecordKind::Accepted
            | RecordKind::RouteSelected
            | RecordKind::RouteAttemptFailed
            | RecordKind::ToolCallStarted
            | RecordKind::Progress
            | RecordKind::OutputResult
            | RecordKind::UsageReported
            | RecordKind::Completed
            | RecordKind::CompletedFor
            | RecordKind::Failed => put_sized(out, &row.body),
        }
    }
    Some(())
}

fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests;
