//! The bytes of one file as copy-on-write pages. Owns sparseness and length; knows nothing of durability.
//!
//! A copy of an image costs one pointer per 256 KiB, which is what makes a crash image cheap.

use std::sync::Arc;

pub(super) const PAGE: usize = 4096;
pub(super) const SECTOR: usize = 512;
const BLOCK_PAGES: usize = 64;

static ZEROS: [u8; PAGE] = [0; PAGE];

/// 4 KiB of a file. `Hole` takes no space on the disk, `Zero` does.
#[derive(Clone, Debug)]
pub(super) enum Page {
    Hole,
    Zero,
    Data(Arc<[u8; PAGE]>),
}

impl Page {
    pub(super) fn bytes(&self) -> &[u8; PAGE] {
        match self {
            Page::Hole | Page::Zero => &ZEROS,
            Page::Data(bytes) => bytes,
        }
    }

    /// Sector `index` (0 to 7) of this page.
    pub(super) fn sector(&self, index: usize) -> &[u8] {
        &self.bytes()[index * SECTOR..(index + 1) * SECTOR]
    }

    fn is_hole(&self) -> bool {
        match self {
            Page::Hole => true,
            Page::Zero | Page::Data(_) => false,
        }
    }

    fn same(&self, other: &Page) -> bool {
        match (self, other) {
            (Page::Data(a), Page::Data(b)) => Arc::ptr_eq(a, b) || a == b,
            (a, b) => a.bytes() == b.bytes(),
        }
    }

    /// The page with `bytes` at `start`. All-zero pages stay unallocated in our memory.
    fn with(self, start: usize, bytes: &[u8]) -> Page {
        let zero = bytes == &ZEROS[..bytes.len()];
        match self {
            Page::Hole | Page::Zero if zero => Page::Zero,
            Page::Data(_) if zero && bytes.len() == PAGE => Page::Zero,
            Page::Hole | Page::Zero => {
                let mut page = ZEROS;
                page[start..start + bytes.len()].copy_from_slice(bytes);
                Page::Data(Arc::new(page))
            }
            Page::Data(mut page) => {
                Arc::make_mut(&mut page)[start..start + bytes.len()].copy_from_slice(bytes);
                Page::Data(page)
            }
        }
    }
}

type Block = [Page; BLOCK_PAGES];

/// A length and the pages below it. Pages may be put above the length; they show when it grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    blocks: Vec<Option<Arc<Block>>>,
    length: u64,
    allocated: u64,
}

impl Image {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Pages that take space.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated
    }

    pub(super) fn page(&self, index: u64) -> &Page {
        let (block, slot) = split(index);
        match self.blocks.get(block) {
            Some(Some(pages)) => &pages[slot],
            Some(None) | None => &Page::Hole,
        }
    }

    pub(super) fn set_page(&mut self, index: u64, page: Page) {
        let (block, slot) = split(index);
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, None);
        }
        let pages = self.blocks[block].get_or_insert_with(|| Arc::new([const { Page::Hole }; BLOCK_PAGES]));
        let old = std::mem::replace(&mut Arc::make_mut(pages)[slot], page);
        let new = &pages[slot];
        self.allocated += u64::from(!new.is_hole());
        self.allocated -= u64::from(!old.is_hole());
    }

    /// Puts `bytes` into one page and does not touch the length.
    pub(super) fn put(&mut self, index: u64, start: usize, bytes: &[u8]) {
        let page = self.page(index).clone().with(start, bytes);
        self.set_page(index, page);
    }

    pub(super) fn put_sector(&mut self, sector: u64, page: &Page) {
        let slot = (sector % (PAGE / SECTOR) as u64) as usize;
        self.put(sector / (PAGE / SECTOR) as u64, slot * SECTOR, page.sector(slot));
    }

    /// Writes and grows as one step, for damage done from outside.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (index, start, piece) in pieces(offset, bytes) {
            self.put(index, start, piece);
        }
        self.length = self.length.max(offset + bytes.len() as u64);
    }

    /// Sets the length and forgets everything above it, if `cut` or if that is shorter than now.
    pub(super) fn set_length(&mut self, length: u64, cut: bool) {
        if cut || length < self.length {
            self.cut(length);
        }
        self.length = length;
    }

    /// Forgets every byte from `from` on; the length stays.
    pub(super) fn cut(&mut self, from: u64) {
        let start = (from % PAGE as u64) as usize;
        if start != 0 && !self.page(from / PAGE as u64).is_hole() {
            self.put(from / PAGE as u64, start, &ZEROS[start..]);
        }
        let first = from.div_ceil(PAGE as u64);
        let (block, slot) = split(first);
        if block < self.blocks.len() && slot != 0 {
            for index in first..first + (BLOCK_PAGES - slot) as u64 {
                if !self.page(index).is_hole() {
                    self.set_page(index, Page::Hole);
                }
            }
        }
        for dropped in
            self.blocks.drain(first.div_ceil(BLOCK_PAGES as u64).min(self.blocks.len() as u64) as usize..)
        {
            let held = dropped.map_or(0, |pages| pages.iter().filter(|page| !page.is_hole()).count());
            self.allocated -= held as u64;
        }
    }

    /// Reads from `offset` on, as far as the file goes.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let count = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let mut done = 0;
        while done < count {
            let at = offset + done as u64;
            let start = (at % PAGE as u64) as usize;
            let piece = (PAGE - start).min(count - done);
            let page = self.page(at / PAGE as u64).bytes();
            buf[done..done + piece].copy_from_slice(&page[start..start + piece]);
            done += piece;
        }
        count
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(usize::MAX)];
        self.read(&mut bytes, 0);
        bytes
    }

    /// Same length and same bytes below it.
    pub(super) fn same(&self, other: &Image) -> bool {
        let pages = self.length.div_ceil(PAGE as u64);
        self.length == other.length
            && (0..pages.div_ceil(BLOCK_PAGES as u64)).all(|block| {
                let shared = match (self.blocks.get(block as usize), other.blocks.get(block as usize)) {
                    (Some(Some(a)), Some(Some(b))) => Arc::ptr_eq(a, b),
                    (None | Some(None), None | Some(None)) => true,
                    (Some(Some(_)), None | Some(None)) | (None | Some(None), Some(Some(_))) => false,
                };
                let first = block * BLOCK_PAGES as u64;
                shared
                    || (first..first + BLOCK_PAGES as u64)
                        .all(|index| self.page(index).same(other.page(index)))
            })
    }

    /// Feeds length and all non-zero pages to a hasher.
    pub(super) fn hash(&self, hasher: &mut impl std::hash::Hasher) {
        hasher.write_u64(self.length);
        for (number, block) in self.blocks.iter().enumerate() {
            let Some(pages) = block else { continue };
            for (slot, page) in pages.iter().enumerate() {
                if page.bytes() != &ZEROS {
                    hasher.write_u64((number * BLOCK_PAGES + slot) as u64);
                    hasher.write(page.bytes());
                }
            }
        }
    }
}

fn split(index: u64) -> (usize, usize) {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    (index / BLOCK_PAGES, index % BLOCK_PAGES)
}

/// `bytes` at `offset`, cut at page boundaries: page, start inside it, piece.
pub(super) fn pieces(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, usize, &[u8])> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % PAGE as u64) as usize;
        let piece = (PAGE - start).min(bytes.len() - done);
        let found = (at / PAGE as u64, start, &bytes[done..done + piece]);
        done += piece;
        (piece > 0).then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_behave_like_a_vector() {
        let mut image = Image::default();
        let mut model: Vec<u8> = Vec::new();
        let mut state = 1_u64;
        for step in 0..400 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (state >> 33) as usize % 600_000;
            let len = (state >> 20) as usize % 9000;
            if step % 7 == 6 {
                image.set_length(offset as u64, false);
                model.resize(offset, 0);
                continue;
            }
            let bytes = vec![if step % 3 == 0 { 0 } else { step as u8 }; len];
            if model.len() < offset + len {
                model.resize(offset + len, 0);
            }
            model[offset..offset + len].copy_from_slice(&bytes);
            image.write(offset as u64, &bytes);
            let copy = image.clone();
            assert!(copy.same(&image));
        }
        assert!(image.to_vec() == model);
        let counted =
            (0..image.length().div_ceil(PAGE as u64)).filter(|page| !image.page(*page).is_hole()).count();
        assert_eq!(image.allocated(), counted as u64);
    }

    #[test]
    fn a_cut_forgets_and_frees() {
        let mut image = Image::default();
        image.write(0, &[1; 3 * PAGE]);
        assert_eq!(image.allocated(), 3);
        image.set_length(100, false);
        assert_eq!((image.allocated(), image.length()), (1, 100));
        image.set_length(3 * PAGE as u64, false);
        let bytes = image.to_vec();
        assert!(bytes[..100].iter().all(|byte| *byte == 1) && bytes[100..].iter().all(|byte| *byte == 0));
    }
}
