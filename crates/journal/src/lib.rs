//! The sealed journal: writer, recovery, reader.
