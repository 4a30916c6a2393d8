//! The pieces of a file, read past the page cache before they are asked for: the device works while what it gave is
//! looked at.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;

use sealog_disk::{AlignedBuf, DiskError, LogFile};

/// Each read past the cache has a price of its own, and so has memory that is touched for the first time. Few in tests, whose
/// segments are short.
const PIECE_BYTES: usize = if cfg!(test) { 16 << 10 } else { 256 << 10 };
/// Room before each piece for what is left of the one before, so that what lies across both is in one place: longer than
/// all but the largest frames. Memory that is never touched costs nothing.
pub(crate) const HEADROOM_BYTES: usize = if cfg!(test) { 4 << 10 } else { 256 << 10 };
/// Pieces that wait, beside the one that is read and the one that is looked at: whoever looks at them may have ended segments
/// to check first, and the device need not wait for that.
const PIECES_AHEAD: usize = 6;

/// `len` bytes of the file, in `memory` behind the headroom.
pub(crate) struct Piece {
    pub len: usize,
    pub memory: AlignedBuf,
}

/// A thread that reads; it ends where it was told to, with its first error, or when nobody takes the pieces any more.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    pieces: Receiver<Result<Piece, DiskError>>,
    /// Memory to be used again.
    free: Sender<AlignedBuf>,
}

impl ReadAhead {
    /// From `from`, where a block begins, to `to`. `None`: there was no thread to be had.
    pub fn start(file: Arc<dyn LogFile>, from: u64, to: u64) -> Option<ReadAhead> {
        let (give, pieces) = sync_channel(PIECES_AHEAD);
        let (free, used) = channel();
        let read = move || read(&*file, from, to, &give, &used);
        Builder::new().name("journal-ahead".into()).spawn(read).ok()?;
        Some(ReadAhead { pieces, free })
    }

    /// The next piece. `None`: that was all.
    pub fn next(&self) -> Option<Result<Piece, DiskError>> {
        self.pieces.recv().ok()
    }

    /// The memory of a piece that was looked at.
    pub fn done(&self, memory: AlignedBuf) {
        if memory.len() == HEADROOM_BYTES + PIECE_BYTES {
            // Whoever reads may have come to its end.
            drop(self.free.send(memory));
        }
    }
}

fn read(
    file: &dyn LogFile,
    from: u64,
    to: u64,
    give: &SyncSender<Result<Piece, DiskError>>,
    used: &Receiver<AlignedBuf>,
) {
    let mut start = from;
    while start < to {
        let len = (PIECE_BYTES as u64).min(to - start) as usize;
        let mut memory = used.try_recv().unwrap_or_else(|_| AlignedBuf::zeroed(HEADROOM_BYTES + PIECE_BYTES));
        let read = file.read_uncached(&mut memory[HEADROOM_BYTES..HEADROOM_BYTES + len], start);
        let failed = read.is_err();
        if give.send(read.map(|_| Piece { len, memory })).is_err() || failed {
            return;
        }
        start += len as u64;
    }
}
