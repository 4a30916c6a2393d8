//! One file: what the page cache shows, what the device holds, and the changes between the two in their order.

use super::pages::{Image, PAGE, Page, SECTOR, pieces};
use crate::Name;

const PAGE_SECTORS: u64 = (PAGE / SECTOR) as u64;

/// A change that a crash may keep or lose. Several generations of one sector are several changes.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The sector as it was in the cache after the write.
    Sector {
        sector: u64,
        page: Page,
    },
    Length {
        length: u64,
        shrinks: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// Number of the operation that made the change, ascending over the whole disk.
    pub(super) at: u64,
    pub(super) change: Change,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// The name it has, or had last.
    pub(super) name: Option<Name>,
    pub(super) cached: Image,
    pub(super) durable: Image,
    pub(super) pending: Vec<Pending>,
    /// A sync failed and its pages were marked clean: `durable` plus `pending` no longer gives `cached`.
    pub(super) lied: bool,
}

impl Inode {
    /// Holes in the range, which a write would have to allocate.
    pub(super) fn holes(&self, offset: u64, len: u64) -> u64 {
        let pages = offset / PAGE as u64..(offset + len).div_ceil(PAGE as u64);
        pages.filter(|page| matches!(self.cached.page(*page), Page::Hole)).count() as u64
    }

    /// A sector that the write leaves as it is adds no possible content, so it is no change. After a lie even
    /// equal bytes are dirty: the device has others.
    pub(super) fn write(&mut self, at: u64, offset: u64, bytes: &[u8]) {
        for (index, start, piece) in pieces(offset, bytes) {
            let old = self.cached.page(index).clone();
            self.cached.put(index, start, piece);
            let new = self.cached.page(index).clone();
            let same_page = !self.lied && old.bytes() == new.bytes();
            let sectors =
                if same_page { 0..0 } else { start / SECTOR..(start + piece.len()).div_ceil(SECTOR) };
            for slot in sectors {
                if self.lied || old.sector(slot) != new.sector(slot) {
                    let sector = index * PAGE_SECTORS + slot as u64;
                    self.pending.push(Pending { at, change: Change::Sector { sector, page: new.clone() } });
                }
            }
        }
        let end = offset + bytes.len() as u64;
        if end > self.cached.length() {
            self.set_length(at, end);
        }
    }

    pub(super) fn set_length(&mut self, at: u64, length: u64) {
        let shrinks = length < self.cached.length();
        if length != self.cached.length() || self.lied {
            self.pending.push(Pending { at, change: Change::Length { length, shrinks } });
        }
        self.cached.set_length(length, false);
    }

    /// fsync: every change reaches the device.
    pub(super) fn sync(&mut self) {
        if self.lied {
            self.durable = self.device();
        } else {
            self.durable = self.cached.clone();
        }
        self.pending.clear();
    }

    /// RWF_DSYNC: the range and the length become durable, other dirty sectors stay undecided.
    pub(super) fn sync_range(&mut self, offset: u64, len: u64) {
        let shrinks = |one: &Pending| matches!(one.change, Change::Length { shrinks: true, .. });
        if self.pending.iter().any(shrinks) {
            // A cut below undecided sectors would need an order between them; syncing more is allowed.
            return self.sync();
        }
        let covered = offset / SECTOR as u64..(offset + len).div_ceil(SECTOR as u64);
        let pending = std::mem::take(&mut self.pending);
        for one in pending {
            match one.change {
                Change::Length { .. } => apply(&mut self.durable, &one.change),
                Change::Sector { sector, .. } if covered.contains(&sector) => {
                    apply(&mut self.durable, &one.change);
                }
                Change::Sector { .. } => self.pending.push(one),
            }
        }
        self.keep_allocation(offset, len);
    }

    /// Zeros written over a hole are no change of content, yet their space must stay allocated.
    fn keep_allocation(&mut self, offset: u64, len: u64) {
        for page in offset / PAGE as u64..(offset + len).div_ceil(PAGE as u64) {
            if matches!((self.durable.page(page), self.cached.page(page)), (Page::Hole, Page::Zero)) {
                self.durable.set_page(page, Page::Zero);
            }
        }
    }

    /// A failed sync whose pages the kernel marks clean: nothing is dirty and nothing was written.
    pub(super) fn lie(&mut self) {
        self.pending.clear();
        self.lied = true;
    }

    /// What a read past the cache finds: dirty pages are written back first.
    pub(super) fn device(&self) -> Image {
        if !self.lied {
            return self.cached.clone();
        }
        let mut image = self.durable.clone();
        self.pending.iter().for_each(|one| apply(&mut image, &one.change));
        image.cut(image.length());
        image
    }

    /// Nothing is undecided and the cache is what the device holds.
    pub(super) fn is_settled(&self) -> bool {
        self.pending.is_empty() && !self.lied
    }

    /// The file after a crash that left it as `image`.
    pub(super) fn settled(name: Option<Name>, mut image: Image) -> Inode {
        image.cut(image.length());
        Inode { name, cached: image.clone(), durable: image, pending: Vec::new(), lied: false }
    }
}

/// Puts a surviving change onto a device image. Sectors above the length wait for a length change to show.
pub(super) fn apply(image: &mut Image, change: &Change) {
    match change {
        Change::Sector { sector, page } => image.put_sector(*sector, page),
        Change::Length { length, shrinks } => image.set_length(*length, *shrinks),
    }
}
