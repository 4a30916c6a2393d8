//! Memory for block-aligned writes. Owns the alignment and nothing else; must never need `unsafe`.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Address, length and offset of a write past the page cache are multiples of this many bytes.
pub const DIRECT_ALIGN: usize = 4096;

/// A fixed number of bytes whose first byte lies at a multiple of [`DIRECT_ALIGN`].
pub struct AlignedBuf {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// `len` zero bytes. `len` need not be a multiple of the alignment; a direct write of the whole does.
    pub fn zeroed(len: usize) -> AlignedBuf {
        let storage = vec![0; len + DIRECT_ALIGN - 1];
        // The vector is never resized, so its heap block, and with it the start, stays where it is.
        let start = storage.as_ptr().addr().next_multiple_of(DIRECT_ALIGN) - storage.as_ptr().addr();
        AlignedBuf { storage, start, len }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }
}

impl Clone for AlignedBuf {
    /// Aligns anew: a copied vector starts somewhere else.
    fn clone(&self) -> AlignedBuf {
        let mut copy = AlignedBuf::zeroed(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_every_copy_is_aligned() {
        for len in [0, 1, 4095, 4096, 4097, 1 << 20] {
            let mut buf = AlignedBuf::zeroed(len);
            buf.fill(7);
            let copy = buf.clone();
            for one in [&buf, &copy] {
                assert_eq!(one.as_ptr().addr() % DIRECT_ALIGN, 0);
                assert_eq!(one.len(), len);
                assert!(one.iter().all(|byte| *byte == 7));
            }
        }
    }
}
