//! Walks the plaintext of a group. Records borrow from it; the only memory taken is the table of stream ids, which
//! grows by what was read (at least seventeen bytes an id), never by a count that a header claims.

use super::{Class, RecordRef, StreamTable};
use crate::cursor::Cursor;
use crate::error::{FormatError, Why};
use crate::limits::{
    BODY_ALIGN, BODY_BYTES_MAX, RECORD_BYTES_MAX, RECORD_BYTES_MIN, RECORDS_MAX, TIME_MS_MAX,
};

/// Yields exactly `record_count` records, or an error and then nothing. What follows the last record is judged after
/// it: only a walk that reached its end without an error has checked all of JF-12.
#[derive(Clone, Debug)]
pub struct GroupReader<'a> {
    cursor: Cursor<'a>,
    base_time_ms: u64,
    left: u32,
    streams: StreamTable,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Records,
    Padding,
    Over,
}

impl<'a> GroupReader<'a> {
    /// A walk over an opened body, with the record count of its frame header.
    ///
    /// # Errors
    /// A length that no body has, a count that is 0, above the limit or above what the bytes can hold; a bad base
    /// time.
    pub fn new(plaintext: &'a [u8], record_count: u32) -> Result<Self, FormatError> {
        if plaintext.len() > BODY_BYTES_MAX {
            return Err(Why::TooLong.of("body length", 0));
        }
        if plaintext.is_empty() || !plaintext.len().is_multiple_of(BODY_ALIGN) {
            return Err(Why::OutOfRange.of("body length", 0));
        }
        if record_count > RECORDS_MAX {
            return Err(Why::TooLong.of("record count", 0));
        }
        if record_count == 0 {
            return Err(Why::OutOfRange.of("record count", 0));
        }
        let mut cursor = Cursor::new(plaintext);
        let base_time_ms = cursor.varint("base time")?;
        if base_time_ms > TIME_MS_MAX {
            return Err(Why::OutOfRange.of("base time", 0));
        }
        if record_count as usize > cursor.remaining() / RECORD_BYTES_MIN {
            return Err(Why::Short.of("record count", 0));
        }
        Ok(Self {
            cursor,
            base_time_ms,
            left: record_count,
            streams: StreamTable::default(),
            state: State::Records,
        })
    }

    /// What times of this group are relative to.
    pub fn base_time_ms(&self) -> u64 {
        self.base_time_ms
    }

    /// Bytes of the plaintext that were read: the body of the record that was read last is their end.
    pub fn read_bytes(&self) -> usize {
        self.cursor.position()
    }

    /// Walks to the end and keeps nothing.
    ///
    /// # Errors
    /// The first there is.
    pub fn check(mut self) -> Result<(), FormatError> {
        self.try_for_each(|record| record.map(drop))
    }

    fn record(&mut self) -> Result<RecordRef<'a>, FormatError> {
        let start = self.cursor.position();
        let Ok(kind) = u16::try_from(self.cursor.varint("record kind")?) else {
            return Err(Why::OutOfRange.of("record kind", start));
        };
        let at = self.cursor.position();
        let Some(class) = Class::from_bits(self.cursor.byte("class")?) else {
            return Err(Why::NotZero.of("class", at));
        };
        let stream = self.stream()?;
        let event_number = self.cursor.varint("event number")?;
        let at = self.cursor.position();
        let delta = unzigzag(self.cursor.varint("time")?);
        let Some(time_ms) = self.base_time_ms.checked_add_signed(delta) else {
            return Err(Why::OutOfRange.of("time", at));
        };
        let logical_size = self.cursor.varint("logical size")?;
        let body = self.cursor.sized(RECORD_BYTES_MAX, "body length")?;
        let record = RecordRef { kind, class, stream, event_number, time_ms, logical_size, body };
        record.check().map_err(|error| error.shifted(start))?;
        Ok(record)
    }

    fn stream(&mut self) -> Result<Option<[u8; 16]>, FormatError> {
        let at = self.cursor.position();
        match self.cursor.varint("stream")? {
            0 => Ok(None),
            1 => {
                let id = self.cursor.array("stream")?;
                // An id that was named before has a reference, and that is its only spelling.
                if self.streams.find_or_insert(&id).is_some() {
                    return Err(Why::NotMinimal.of("stream", at));
                }
                Ok(Some(id))
            }
            reference => {
                let named = usize::try_from(reference - 2).ok().and_then(|index| self.streams.get(index));
                named.map(|id| Some(*id)).ok_or(Why::OutOfRange.of("stream", at))
            }
        }
    }
}

impl<'a> Iterator for GroupReader<'a> {
    type Item = Result<RecordRef<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.state {
            State::Records => {
                let record = self.record();
                self.left -= 1;
                self.state = match record {
                    Err(_) => State::Over,
                    Ok(_) if self.left == 0 => State::Padding,
                    Ok(_) => State::Records,
                };
                Some(record)
            }
            State::Padding => {
                self.state = State::Over;
                self.cursor.padding(BODY_ALIGN).err().map(Err)
            }
            State::Over => None,
        }
    }
}

impl std::iter::FusedIterator for GroupReader<'_> {}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
