//! Columns of numbers: varints, and packed low bits with the few values that need more kept apart.

use super::NotFolded;

/// The header byte of a column of nothing but zeros.
const ALL_ZERO: u8 = 0xff;
/// In the header byte, beside the width: some values have higher bits, which are listed.
const PATCHED: u8 = 0x80;
const VARINT_BYTES_MAX: usize = 10;
const WIDTH_MAX: u32 = 64;

/// Reads what the functions below wrote, front to back.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8, NotFolded> {
        let (&byte, rest) = self.rest.split_first().ok_or(NotFolded)?;
        self.rest = rest;
        Ok(byte)
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], NotFolded> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(NotFolded)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A varint length and that many bytes.
    pub(super) fn sized(&mut self) -> Result<&'a [u8], NotFolded> {
        let bytes = self.small()?;
        self.take(bytes)
    }

    /// LEB128 in shortest form.
    pub(super) fn varint(&mut self) -> Result<u64, NotFolded> {
        let mut value = 0_u64;
        for at in 0..VARINT_BYTES_MAX {
            let byte = self.byte()?;
            // The tenth byte holds bit 63 alone.
            if (at == VARINT_BYTES_MAX - 1 && byte > 1) || (byte == 0 && at > 0) {
                return Err(NotFolded);
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(NotFolded)
    }

    /// A varint that fits this machine's sizes.
    pub(super) fn small(&mut self) -> Result<usize, NotFolded> {
        usize::try_from(self.varint()?).map_err(|_| NotFolded)
    }

    /// A column of `count` numbers. The caller has bounded `count` by the bytes it was given.
    pub(super) fn column(&mut self, count: usize) -> Result<Vec<u64>, NotFolded> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let head = self.byte()?;
        if head == ALL_ZERO {
            return Ok(vec![0; count]);
        }
        let width = u32::from(head & !PATCHED);
        if width > WIDTH_MAX {
            return Err(NotFolded);
        }
        let least = self.varint()?;
        let mut patches = Vec::new();
        if head & PATCHED != 0 {
            let listed = self.small()?;
            // Each takes two bytes at least.
            if listed > count.min(self.remaining() / 2) || width == WIDTH_MAX {
                return Err(NotFolded);
            }
            let mut at = 0_usize;
            for _ in 0..listed {
                at = at.checked_add(self.small()?).ok_or(NotFolded)?;
                patches.push((at, self.varint()?));
            }
        }
        let mut values = self.packed(count, width)?;
        for (at, high) in patches {
            let value = values.get_mut(at).ok_or(NotFolded)?;
            if high > u64::MAX >> width {
                return Err(NotFolded);
            }
            *value |= high << width;
        }
        for value in &mut values {
            *value = value.checked_add(least).ok_or(NotFolded)?;
        }
        Ok(values)
    }

    fn packed(&mut self, count: usize, width: u32) -> Result<Vec<u64>, NotFolded> {
        let bytes = self.take(packed_bytes(count, width).ok_or(NotFolded)?)?;
        let mut values = Vec::with_capacity(count);
        let (mut held, mut bits, mut next) = (0_u128, 0_u32, bytes.iter());
        for _ in 0..count {
            while bits < width {
                held |= u128::from(*next.next().ok_or(NotFolded)?) << bits;
                bits += 8;
            }
            values.push((held & ((1_u128 << width) - 1)) as u64);
            held >>= width;
            bits -= width;
        }
        if held == 0 { Ok(values) } else { Err(NotFolded) }
    }

    pub(super) const fn end(&self) -> Result<(), NotFolded> {
        if self.rest.is_empty() { Ok(()) } else { Err(NotFolded) }
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The shorter of the widths that could be: low bits for all, the rest listed where there is one.
pub(super) fn put_column(out: &mut Vec<u8>, values: &[u64]) {
    let Some(least) = values.iter().min().copied() else { return };
    if values.iter().all(|value| *value == 0) {
        out.push(ALL_ZERO);
        return;
    }
    let width = best_width(values, least);
    let low = |value: u64| if width == WIDTH_MAX { value } else { value & ((1 << width) - 1) };
    let high = |value: u64| value.checked_shr(width).unwrap_or(0);
    let patches = values.iter().map(|value| value - least).enumerate().filter(|(_, value)| high(*value) > 0);
    let patches: Vec<(usize, u64)> = patches.collect();
    out.push(width as u8 | if patches.is_empty() { 0 } else { PATCHED });
    put_varint(out, least);
    if !patches.is_empty() {
        put_varint(out, patches.len() as u64);
        let mut before = 0;
        for (at, value) in patches {
            put_varint(out, (at - before) as u64);
            put_varint(out, high(value));
            before = at;
        }
    }
    let (mut held, mut bits) = (0_u128, 0_u32);
    for value in values {
        held |= u128::from(low(value - least)) << bits;
        bits += width;
        while bits >= 8 {
            out.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(held as u8);
    }
}

/// The width with the fewest bytes, each listed value taken as three of them and its further bits.
fn best_width(values: &[u64], least: u64) -> u32 {
    let mut of_width = [0_u64; WIDTH_MAX as usize + 1];
    for value in values {
        of_width[(u64::BITS - (value - least).leading_zeros()) as usize] += 1;
    }
    let cost = |width: u32| {
        let listed = (width + 1..=WIDTH_MAX)
            .map(|wide| of_width[wide as usize] * (16 + 8 * u64::from((wide - width).div_ceil(7))));
        values.len() as u64 * u64::from(width) + listed.sum::<u64>()
    };
    (0..=WIDTH_MAX).min_by_key(|width| cost(*width)).unwrap_or(WIDTH_MAX)
}

fn packed_bytes(count: usize, width: u32) -> Option<usize> {
    Some(count.checked_mul(width as usize)?.div_ceil(8))
}

/// Numbers near zero of either sign as small numbers.
pub(super) const fn zig_zag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) const fn zag_zig(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
