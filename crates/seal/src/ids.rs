//! The two public identifiers: of a store and of a root key. Neither is secret; both stand in every file.

use std::fmt;

/// Names one journal for its whole life. 16 random bytes, drawn at `init`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub [u8; 16]);

/// Names one root key inside a keyring. 16 random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 16]);

impl StoreId {
    /// Reads the 32 hexadecimal digits that `Display` prints; either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<StoreId> {
        parse_hex(text).map(StoreId)
    }
}

impl KeyId {
    /// Reads the 32 hexadecimal digits that `Display` prints; either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<KeyId> {
        parse_hex(text).map(KeyId)
    }
}

fn parse_hex(text: &str) -> Option<[u8; 16]> {
    let digits = text.as_bytes();
    if digits.len() != 32 {
        return None;
    }
    let mut bytes = [0u8; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

fn write_hex(bytes: &[u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_refuses_everything_else() {
        let id = StoreId([0x0f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff]);
        assert_eq!(id.to_string(), "0f0102030405060708090a0b0c0d0eff");
        assert_eq!(StoreId::parse(&id.to_string()), Some(id));
        assert_eq!(StoreId::parse(&id.to_string().to_uppercase()), Some(id));
        assert_eq!(KeyId::parse(&id.to_string()), Some(KeyId(id.0)));
        for wrong in ["", "0f", &"g".repeat(32), &"+".repeat(32), &"0".repeat(33), &"é".repeat(16)] {
            assert_eq!(StoreId::parse(wrong), None, "{wrong}");
        }
    }
}
