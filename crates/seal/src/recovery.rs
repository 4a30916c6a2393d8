//! The text of a recovery secret (JK-48): random bits as a passphrase that can be written down and typed.

use zeroize::Zeroizing;

use crate::random::{RandomBytes, RandomUnavailable};

/// Without the letters that are taken for digits or for each other.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const RANDOM_BYTES: usize = 20;
const GROUP_DIGITS: usize = 4;

/// A fresh recovery secret: 160 random bits. It opens its slot as a passphrase of exactly these bytes.
///
/// # Errors
/// [`RandomUnavailable`] if the source has nothing to give.
pub fn recovery_text(random: &mut dyn RandomBytes) -> Result<Zeroizing<String>, RandomUnavailable> {
    let mut bytes = Zeroizing::new([0u8; RANDOM_BYTES]);
    random.fill(bytes.as_mut_slice())?;
    Ok(spelled(&bytes))
}

fn spelled(bytes: &[u8; RANDOM_BYTES]) -> Zeroizing<String> {
    let digits = RANDOM_BYTES * 8 / 5;
    // Allocated once at its final size: growing would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(digits + digits / GROUP_DIGITS - 1));
    for digit in 0..digits {
        if digit > 0 && digit.is_multiple_of(GROUP_DIGITS) {
            text.push('-');
        }
        let value = (0..5).fold(0, |value, bit| {
            let at = digit * 5 + bit;
            value << 1 | bytes[at / 8] >> (7 - at % 8) & 1
        });
        text.push(char::from(DIGITS[usize::from(value)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;
    use crate::testing::SeededRandom;

    #[test]
    fn jk_48_digits_in_groups_of_four() {
        assert_eq!(*spelled(&[0; 20]), "0000-0000-0000-0000-0000-0000-0000-0000");
        assert_eq!(*spelled(&[0xff; 20]), "zzzz-zzzz-zzzz-zzzz-zzzz-zzzz-zzzz-zzzz");
        let mut one = [0; 20];
        (one[0], one[19]) = (0b0000_1000, 0b0000_0011);
        assert_eq!(*spelled(&one), "1000-0000-0000-0000-0000-0000-0000-0003");
    }

    #[test]
    fn jk_48_it_is_a_passphrase_and_never_the_same() {
        let random = &mut SeededRandom::new(4);
        let (first, second) = (recovery_text(random).unwrap(), recovery_text(random).unwrap());
        assert_ne!(*first, *second);
        assert_eq!(first.len(), 39);
        assert!(Secret::passphrase(first.as_bytes()).is_ok());
    }
}
