//! Reading what the device holds rather than what the page cache remembers.
//!
//! After a failed sync the kernel may keep pages that never reached the device and call them clean. Recovery
//! must not take those for durable, so it reads past the cache. Two ways, in this order:
//!
//! 1. A second description of the same inode with `O_DIRECT`, unless the file says that it would fall back to
//!    the cache (`statx`, alignment 0).
//! 2. `POSIX_FADV_DONTNEED`, then a proof that no page stayed: a one-byte read with `RWF_NOWAIT` fails for a page
//!    that is not in memory. `DONTNEED` alone proves nothing, it keeps dirty pages and whole large folios.
//!
//! Where neither works the cache is read and the caller is told so.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};

use memmap2::MmapMut;
use rustix::fs::{Advice, AtFlags, Mode, OFlags, StatxFlags, fadvise, fdatasync, open, statx};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use crate::DIRECT_ALIGN;

/// Scratch memory of a direct read, in bytes.
const SCRATCH_BYTES: usize = 1 << 20;

const PAGE_BYTES: u64 = 4096;

pub(super) struct Uncached {
    /// Bytes read; fewer than asked for only at the end of the file.
    pub(super) count: usize,
    pub(super) from_device: bool,
}

pub(super) fn read(file: &OwnedFd, buf: &mut [u8], offset: u64) -> rustix::io::Result<Uncached> {
    if direct_works(file)
        && let Some(direct) = reopen(file)
    {
        match read_direct(&direct, buf, offset) {
            Ok(count) => return Ok(Uncached { count, from_device: true }),
            // Some file systems open and then refuse the read.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno),
        }
    }
    let from_device = evict(file, buf.len(), offset)?;
    let count = read_whole(file, buf, offset)?;
    Ok(Uncached { count, from_device })
}

/// Whether direct access reaches the device with our alignment. Kernels before 6.1 do not say; then it is tried.
pub(super) fn direct_works(file: &OwnedFd) -> bool {
    let Ok(found) = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else { return true };
    if found.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return true;
    }
    let fits = |align: u32| align != 0 && DIRECT_ALIGN.is_multiple_of(align as usize);
    fits(found.stx_dio_mem_align) && fits(found.stx_dio_offset_align)
}

/// The inode behind the descriptor, whatever its name is now. Needs a mounted `/proc`.
fn reopen(file: &OwnedFd) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    open(path, OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn read_direct(direct: &OwnedFd, buf: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
    let mut done = read_in_place(direct, buf, offset)?;
    if done == buf.len() {
        return Ok(done);
    }
    // An anonymous map is page-aligned, and its memory goes back to the system at once.
    let mut scratch = MmapMut::map_anon(SCRATCH_BYTES).map_err(|_| Errno::NOMEM)?;
    while done < buf.len() {
        let at = offset + done as u64;
        let lead = (at % DIRECT_ALIGN as u64) as usize;
        let wanted = (lead + buf.len() - done).next_multiple_of(DIRECT_ALIGN).min(SCRATCH_BYTES);
        let count = pread(direct, &mut scratch[..wanted], at - lead as u64)?;
        let fresh = count.saturating_sub(lead).min(buf.len() - done);
        if fresh == 0 {
            break;
        }
        buf[done..done + fresh].copy_from_slice(&scratch[lead..lead + fresh]);
        done += fresh;
        if count < wanted && count % DIRECT_ALIGN != 0 {
            // Only the end of the file ends inside a block.
            break;
        }
    }
    Ok(done)
}

/// What can be read to where it is wanted, without scratch memory: whole blocks, if place and memory are aligned.
fn read_in_place(direct: &OwnedFd, buf: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
    let aligned =
        offset.is_multiple_of(DIRECT_ALIGN as u64) && buf.as_ptr().addr().is_multiple_of(DIRECT_ALIGN);
    let whole = if aligned { buf.len() / DIRECT_ALIGN * DIRECT_ALIGN } else { 0 };
    let mut done = 0;
    while done < whole {
        let count = pread(direct, &mut buf[done..whole], offset + done as u64)?;
        done += count;
        if count == 0 || !done.is_multiple_of(DIRECT_ALIGN) {
            // Only the end of the file ends inside a block.
            break;
        }
    }
    Ok(done)
}

/// Throws the range out of the cache; `true` only if no page of it stayed.
fn evict(file: &OwnedFd, len: usize, offset: u64) -> rustix::io::Result<bool> {
    let first = offset / PAGE_BYTES * PAGE_BYTES;
    let end = offset + len as u64;
    // Dirty pages cannot be dropped. A failure is the caller's to hear: the kernel reports it only once.
    fdatasync(file)?;
    let range = NonZeroU64::new((end - first).next_multiple_of(PAGE_BYTES));
    // Random: the probe of one page must not bring in its neighbours.
    let advised =
        fadvise(file, first, range, Advice::Random).and(fadvise(file, first, range, Advice::DontNeed));
    Ok(advised.is_ok() && (first..end).step_by(PAGE_BYTES as usize).all(|page| absent(file, page)))
}

fn absent(file: &OwnedFd, page: u64) -> bool {
    let mut byte = [0];
    let probe = preadv2(file, &mut [IoSliceMut::new(&mut byte)], page, ReadWriteFlags::NOWAIT);
    probe == Err(Errno::AGAIN)
}

fn read_whole(file: &OwnedFd, buf: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match pread(file, &mut buf[done..], offset + done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::time::{Duration, Instant};

    use super::super::file_system::{Warning, judge};
    use super::*;

    /// Longest wait for the kernel to let go of a page.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Beside the test binary, which is on a disk even where `/tmp` is memory.
    fn scratch() -> std::fs::File {
        let binary = std::env::current_exe().unwrap();
        tempfile::tempfile_in(binary.parent().unwrap()).unwrap()
    }

    #[test]
    fn both_ways_read_the_same_bytes_at_odd_places() {
        let file = scratch();
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|i| (i % 251) as u8).collect();
        file.write_all_at(&bytes, 0).unwrap();
        let file = OwnedFd::from(file);
        for (offset, len) in [(0, 1), (4095, 2), (511, 2_500_000), (2_999_000, 1001), (1 << 20, 1 << 20)] {
            let expected = &bytes[offset as usize..offset as usize + len];
            let mut buf = vec![0; len];
            assert_eq!(read(&file, &mut buf, offset).unwrap().count, len);
            assert!(buf == expected);
            if direct_works(&file) {
                let mut buf = vec![0; len];
                assert_eq!(read_direct(&reopen(&file).unwrap(), &mut buf, offset).unwrap(), len);
                assert!(buf == expected);
            }
            let mut buf = vec![0; len];
            evict(&file, len, offset).unwrap();
            assert_eq!(read_whole(&file, &mut buf, offset).unwrap(), len);
            assert!(buf == expected);
        }
    }

    #[test]
    fn memory_that_is_aligned_is_read_into() {
        let file = scratch();
        let bytes: Vec<u8> = (0..100_001_u32).map(|i| (i % 249) as u8).collect();
        file.write_all_at(&bytes, 0).unwrap();
        let file = OwnedFd::from(file);
        for (offset, len) in [(0, 8192), (4096, 12_289), (8192, 100_001 - 8192), (4096, 300), (100, 9000)] {
            let mut buf = crate::AlignedBuf::zeroed(len);
            assert_eq!(read(&file, &mut buf, offset).unwrap().count, len);
            assert!(buf[..] == bytes[offset as usize..offset as usize + len]);
        }
        let mut buf = crate::AlignedBuf::zeroed(16_384);
        let got = read(&file, &mut buf, 98_304).unwrap();
        assert_eq!((got.count, &buf[..1697]), (1697, &bytes[98_304..]));
        assert_eq!(read(&file, &mut buf, 102_400).unwrap().count, 0);
    }

    #[test]
    fn the_end_of_the_file_ends_the_read() {
        let file = scratch();
        file.write_all_at(&[9; 5000], 0).unwrap();
        let file = OwnedFd::from(file);
        let mut buf = vec![0; 9000];
        let got = read(&file, &mut buf, 0).unwrap();
        assert_eq!((got.count, &buf[..5000]), (5000, &[9; 5000][..]));
        assert_eq!(read(&file, &mut buf, 6000).unwrap().count, 0);
    }

    #[test]
    fn pages_in_memory_are_seen_and_go() {
        let file = scratch();
        file.write_all_at(&[1; 8192], 0).unwrap();
        let file = OwnedFd::from(file);
        assert!(!absent(&file, 0), "just written");
        if matches!(judge(&file, true).unwrap()[..], [Warning::Memory(_)]) {
            assert!(!evict(&file, 8192, 0).unwrap(), "there is nowhere to go");
        } else if direct_works(&file) {
            // A real device below: nothing has to stay in memory. The kernel may hold a page for a moment, as it does
            // while it compacts memory.
            let end = Instant::now() + PATIENCE;
            while !evict(&file, 8192, 0).unwrap() {
                assert!(Instant::now() < end, "a page stayed");
            }
        }
    }
}
