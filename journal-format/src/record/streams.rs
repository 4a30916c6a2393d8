//! Stream ids of one frame and their numbers, in order of first appearance. Open addressing over the ids themselves:
//! ids are random, so their own bits place them; one probe finds or refuses almost every one.

/// Slots of the first table; a power of two.
const SLOTS_MIN: usize = 64;
/// Odd and without pattern, so that the product's high bits depend on all bits of its input.
const MIX: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// Grows with the ids it holds, never with a count that something else claims.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamTable {
    ids: Vec<[u8; 16]>,
    /// Index into `ids` plus one; 0 = free. At least twice as many as ids.
    slots: Vec<u32>,
}

impl StreamTable {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&[u8; 16]> {
        self.ids.get(index)
    }

    /// The number of an id that is here; otherwise takes it in as the next one and returns `None`.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, id: &[u8; 16]) -> Option<usize> {
        if self.ids.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(id) & mask;
        loop {
            match self.slots[at] {
                0 => break,
                number => {
                    let index = number as usize - 1;
                    if self.ids[index] == *id {
                        return Some(index);
                    }
                }
            }
            at = (at + 1) & mask;
        }
        self.ids.push(*id);
        self.slots[at] = self.ids.len() as u32;
        None
    }

    /// Takes out all ids but the first `length`. Newest first: no older id was placed past a newer one, so freeing
    /// the newest never breaks a probe.
    pub(crate) fn truncate(&mut self, length: usize) {
        while self.ids.len() > length {
            let number = self.ids.len() as u32;
            if let Some(id) = self.ids.pop() {
                let mask = self.slots.len() - 1;
                let mut at = hash(&id) & mask;
                while self.slots[at] != number {
                    at = (at + 1) & mask;
                }
                self.slots[at] = 0;
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        self.ids.reserve(slots / 2 - self.ids.len());
        self.slots.clear();
        self.slots.resize(slots, 0);
        // In order of their numbers, which `truncate` relies on.
        for (index, id) in self.ids.iter().enumerate() {
            let mut at = hash(id) & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = index as u32 + 1;
        }
    }
}

#[inline]
fn hash(id: &[u8; 16]) -> usize {
    let value = u128::from_le_bytes(*id);
    let (low, high) = (value as u64, (value >> 64) as u64);
    ((low.wrapping_mul(MIX[0]) ^ high.wrapping_mul(MIX[1])) >> 32) as usize
}
