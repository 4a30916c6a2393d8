//! Many small things under ids of their own, in little memory: the things lie in a slab, and a table of their numbers
//! finds them. Knows nothing of what lies there; hashes and comparisons are the owner's.

/// Places of things that stay where they are. Memory is taken a block at a time, so none of it waits to be used.
#[derive(Debug)]
pub struct Slab<T> {
    blocks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { blocks: Vec::new(), free: Vec::new() }
    }
}

const BLOCK_BITS: u32 = 10;

impl<T> Slab<T> {
    /// Where `thing` lies now.
    ///
    /// # Panics
    /// With more than 2^32 things.
    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self[slot] = thing;
            return slot;
        }
        if self.blocks.last().is_none_or(|block| block.len() == 1 << BLOCK_BITS) {
            self.blocks.push(Vec::with_capacity(1 << BLOCK_BITS));
        }
        let at = (self.blocks.len() - 1) << BLOCK_BITS;
        let block = self.blocks.last_mut().expect("one was pushed if there was none");
        block.push(thing);
        u32::try_from(at + block.len() - 1).expect("there is no memory for so many")
    }

    /// Takes what lies there and leaves `blank` until the place is used again.
    pub fn take(&mut self, slot: u32, blank: T) -> T {
        self.free.push(slot);
        std::mem::replace(&mut self[slot], blank)
    }

    /// What it takes, in bytes; what the things themselves have elsewhere comes on top.
    pub fn memory_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.capacity() * size_of::<T>()).sum();
        blocks + self.blocks.capacity() * size_of::<Vec<T>>() + self.free.capacity() * size_of::<u32>()
    }
}

fn place(slot: u32) -> (usize, usize) {
    ((slot >> BLOCK_BITS) as usize, (slot & ((1 << BLOCK_BITS) - 1)) as usize)
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, slot: u32) -> &T {
        let (block, at) = place(slot);
        &self.blocks[block][at]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        let (block, at) = place(slot);
        &mut self.blocks[block][at]
    }
}

/// Numbers of things by the hash of what they are found by: five bytes for each bucket, at most seven of eight taken.
#[derive(Debug, Default)]
pub struct SlotTable {
    /// 0: nobody's; else a part of the hash that the place does not say.
    tags: Vec<u8>,
    slots: Vec<u32>,
    len: usize,
}

const BUCKETS_MIN: usize = 8;

impl SlotTable {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.tags.capacity() + self.slots.capacity() * size_of::<u32>()
    }

    fn bucket(&self, hash: u64) -> usize {
        // The high bits of the product depend on all bits of the hash.
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.tags.len() - 1)
    }

    fn tag(hash: u64) -> u8 {
        (hash >> 57) as u8 | 0x80
    }

    fn place(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let (mut at, tag) = (self.bucket(hash), Self::tag(hash));
        loop {
            match self.tags[at] {
                0 => return None,
                held if held == tag && is(self.slots[at]) => return Some(at),
                _ => at = (at + 1) & (self.tags.len() - 1),
            }
        }
    }

    /// The number under this hash of which `is` says that it is the one.
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.place(hash, is).map(|at| self.slots[at])
    }

    /// Takes another number; `hash_of` says the hash of one that is here. Whoever may be here already is removed first.
    pub fn insert(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.len + 1) * 8 > self.tags.len() * 7 {
            self.grow(hash_of);
        }
        self.put(hash, slot);
        self.len += 1;
    }

    /// Room for so many more numbers at once.
    pub fn reserve(&mut self, more: usize, hash_of: impl Fn(u32) -> u64) {
        let mut buckets = self.tags.len().max(BUCKETS_MIN);
        while (self.len + more) * 8 > buckets * 7 {
            buckets *= 2;
        }
        if buckets > self.tags.len() {
            self.resize(buckets, hash_of);
        }
    }

    fn put(&mut self, hash: u64, slot: u32) {
        let mut at = self.bucket(hash);
        while self.tags[at] != 0 {
            at = (at + 1) & (self.tags.len() - 1);
        }
        (self.tags[at], self.slots[at]) = (Self::tag(hash), slot);
    }

    fn grow(&mut self, hash_of: impl Fn(u32) -> u64) {
        self.resize((self.tags.len() * 2).max(BUCKETS_MIN), hash_of);
    }

    fn resize(&mut self, buckets: usize, hash_of: impl Fn(u32) -> u64) {
        let tags = std::mem::replace(&mut self.tags, vec![0; buckets]);
        let slots = std::mem::replace(&mut self.slots, vec![0; buckets]);
        for (tag, slot) in tags.into_iter().zip(slots) {
            if tag != 0 {
                self.put(hash_of(slot), slot);
            }
        }
    }

    /// Takes the number out under this hash of which `is` says that it is the one.
    pub fn remove(
        &mut self,
        hash: u64,
        is: impl Fn(u32) -> bool,
        hash_of: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        let mut hole = self.place(hash, is)?;
        let (removed, mask) = (self.slots[hole], self.tags.len() - 1);
        // What was pushed on by the one that goes moves back: no search may end at the hole.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.tags[at] == 0 {
                break;
            }
            let from_home = at.wrapping_sub(self.bucket(hash_of(self.slots[at]))) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                (self.tags[hole], self.slots[hole]) = (self.tags[at], self.slots[at]);
                hole = at;
            }
        }
        self.tags[hole] = 0;
        self.len -= 1;
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use sealog_disk::testing::SeededEntropy;

    use super::*;

    /// Beside a map of the standard library, with few hashes so that many things share one.
    #[test]
    fn a_slab_with_its_table_is_a_map() {
        for hashes in [1, 7, 1 << 40] {
            let (mut slab, mut table) = (Slab::<u64>::default(), SlotTable::default());
            let mut map: HashMap<u64, u32> = HashMap::new();
            let draws = SeededEntropy::new(hashes);
            let hash = |key: u64| (key % hashes).wrapping_mul(0x1234_5678_9abc_def1);
            for _ in 0..20_000 {
                let (key, remove) = (draws.draw() % 900, draws.draw().is_multiple_of(3));
                if draws.draw().is_multiple_of(100) {
                    table.reserve((draws.draw() % 60) as usize, |slot| hash(slab[slot]));
                }
                let found = table.find(hash(key), |slot| slab[slot] == key);
                assert_eq!(found, map.get(&key).copied());
                match (found, remove) {
                    (None, false) => {
                        let slot = slab.insert(key);
                        table.insert(hash(key), slot, |slot| hash(slab[slot]));
                        map.insert(key, slot);
                    }
                    (_, true) => {
                        let removed =
                            table.remove(hash(key), |slot| slab[slot] == key, |slot| hash(slab[slot]));
                        assert_eq!(removed, map.remove(&key));
                        if let Some(slot) = removed {
                            assert_eq!(slab.take(slot, u64::MAX), key);
                        }
                    }
                    (Some(_), false) => {}
                }
                assert_eq!(table.len(), map.len());
            }
            assert!(!table.is_empty());
            map.iter().for_each(|(key, slot)| assert_eq!(slab[*slot], *key));
        }
    }
}
