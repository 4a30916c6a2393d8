//! Decisions out of a fuzzer's bytes. Past the end everything is zero, so that every input is a whole program.

#[derive(Clone, Debug)]
pub(super) struct Input<'a> {
    left: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(data: &'a [u8]) -> Input<'a> {
        Input { left: data }
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.left.split_first() else { return 0 };
        self.left = rest;
        *byte
    }

    /// Little endian; what is missing counts as zero.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// A place in `0..=last`.
    pub fn up_to(&mut self, last: u64) -> u64 {
        let drawn = u64::from(self.u32());
        last.checked_add(1).map_or(drawn, |count| drawn % count)
    }

    /// At most `length` bytes, fewer at the end.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.left.split_at(length.min(self.left.len()));
        self.left = rest;
        taken
    }

    pub fn rest(self) -> &'a [u8] {
        self.left
    }
}

/// `data` cut or filled with zeros to `N` bytes.
pub(super) fn fitted<const N: usize>(data: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let length = data.len().min(N);
    bytes[..length].copy_from_slice(&data[..length]);
    bytes
}

/// Writes `value` at `at`, where there is room for it.
pub(super) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..at + N) {
        place.copy_from_slice(&value);
    }
}
