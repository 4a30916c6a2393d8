//! The plaintext of a commit group, read and written.

use sealog_journal_format::limits::{BODY_BYTES_MAX, TIME_MS_MAX, UNIT_BYTES_MAX, padded};
use sealog_journal_format::record::{check_unit, unit_bytes};
use sealog_journal_format::{Class, FormatError, GroupEncoder, GroupReader, RecordRef};

use super::allocation::within;
use super::input::Input;

/// First byte even: a plaintext to read (record count, then the bytes, padded). Odd: records to write.
pub(super) fn group(data: &[u8]) {
    let mut input = Input::new(data);
    if input.byte().is_multiple_of(2) {
        let count = u32::from(input.u16());
        let mut plaintext = input.rest().to_vec();
        plaintext.resize(padded(plaintext.len()), 0);
        read(&plaintext, count);
    } else {
        write(input);
    }
}

fn read(plaintext: &[u8], count: u32) {
    // JF-11: memory follows what was read, never what a count claims.
    let walked = within(8 * plaintext.len() + 4096, || GroupReader::new(plaintext, count)?.check());
    let records: Result<Vec<RecordRef<'_>>, FormatError> =
        GroupReader::new(plaintext, count).and_then(Iterator::collect);
    assert_eq!(walked, records.as_ref().map(|_| ()).map_err(|error| *error));
    let Ok(records) = records else { return };
    assert_eq!(records.len(), count as usize);
    let base = GroupReader::new(plaintext, count).map_or(0, |reader| reader.base_time_ms());
    let mut encoder = GroupEncoder::new(base);
    for record in &records {
        assert_eq!(record.check(), Ok(()));
        assert_eq!(encoder.push(record), Ok(()), "what was read can be written");
    }
    assert!(encoder.finish() == plaintext, "a group has one spelling");
}

fn write(mut input: Input<'_>) {
    let mut encoder = GroupEncoder::new(input.u64());
    let mut written: Vec<RecordRef<'_>> = Vec::new();
    while !input.is_empty() && written.len() < 64 {
        let unit: Vec<RecordRef<'_>> = (0..input.byte() % 3).map(|_| record(&mut input)).collect();
        let before = encoder.len();
        let expected = encoder.would_be_len(&unit);
        assert_eq!(encoder.len(), before, "asking changes nothing");
        let checkpoint = encoder.checkpoint();
        let pushed = unit.iter().try_for_each(|record| encoder.push(record));
        assert_eq!(expected, pushed.map(|()| encoder.len()), "what was foretold happens");
        if pushed.is_err() || input.byte().is_multiple_of(4) {
            encoder.rollback(checkpoint);
            assert_eq!(encoder.len(), before, "a unit leaves whole");
        } else {
            written.extend(unit);
        }
    }
    measured(&written);
    let bad = RecordRef { kind: 9, class: Class::NONE, ..record(&mut Input::new(&[])) };
    assert!(check_unit([bad].into_iter()).is_err(), "a unit with a record that breaks a rule");
    if written.is_empty() {
        return;
    }
    assert_eq!(encoder.record_count() as usize, written.len());
    let (count, length) = (encoder.record_count(), encoder.len());
    let plaintext = encoder.finish();
    assert_eq!(plaintext.len(), length);
    assert!(length <= BODY_BYTES_MAX);
    let read: Result<Vec<_>, _> = GroupReader::new(&plaintext, count).and_then(Iterator::collect);
    assert_eq!(read, Ok(written), "what was written is read");
}

/// JF-11: a unit that passes its limit fits a group of its own, and its measure is that group's length.
fn measured(unit: &[RecordRef<'_>]) {
    assert_eq!(check_unit(unit.iter().copied()).is_ok(), unit_bytes(unit).is_ok(), "one verdict");
    let Ok(bytes) = unit_bytes(unit) else { return };
    assert!(bytes <= UNIT_BYTES_MAX);
    let mut alone = GroupEncoder::new(unit.first().map_or(0, |record| record.time_ms));
    for record in unit {
        assert_eq!(alone.push(record), Ok(()), "a measured unit fits");
    }
    assert_eq!(alone.len(), padded(bytes));
}

fn record<'a>(input: &mut Input<'a>) -> RecordRef<'a> {
    let shape = input.byte();
    RecordRef {
        kind: if shape & 1 == 0 { 64 + u16::from(input.byte()) } else { input.u16() },
        class: Class::from_bits(if shape & 2 == 0 { 0 } else { input.byte() & 15 }).unwrap_or(Class::NONE),
        // Few streams, so that references happen.
        stream: (shape & 4 == 0).then(|| [input.byte() % 5; 16]),
        event_number: if shape & 8 == 0 { u64::from(input.byte()) } else { input.u64() },
        time_ms: match shape & 48 {
            0 | 32 => u64::from(input.u16()),
            16 => input.u64() & TIME_MS_MAX,
            _ => input.u64(),
        },
        logical_size: if shape & 64 == 0 { u64::from(input.byte()) } else { input.u64() },
        body: {
            let length = usize::from(input.byte());
            input.take(length)
        },
    }
}
