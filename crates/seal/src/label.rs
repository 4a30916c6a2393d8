//! Every domain label, in one place, so that no two derivations can share an input.

/// HKDF info of a segment's data key; followed by the caller's hedge.
pub(crate) const DATA_KEY: &[u8] = b"sealog data key";
/// HKDF info of a segment's body key; followed by SHA-256 of the segment header.
pub(crate) const BODY_KEY: &[u8] = b"sealog body key v1";
/// HKDF info of a segment's header key; followed by SHA-256 of the segment header.
pub(crate) const HEADER_KEY: &[u8] = b"sealog header key v1";
/// HKDF info of a segment's summary key; followed by SHA-256 of the segment header.
pub(crate) const SUMMARY_KEY: &[u8] = b"sealog summary key v1";
/// HKDF info of a one-time wrapping key; followed by what is wrapped.
pub(crate) const WRAP: &[u8] = b"sealog wrap v1";
/// HKDF info of the key check beside a wrap; followed by what is wrapped.
pub(crate) const CHECK: &[u8] = b"sealog check v1";
/// HKDF info of a MAC key under a root key; followed by the caller's label and the store id.
pub(crate) const MAC: &[u8] = b"sealog mac v1";
/// HKDF info of the keyring's own MAC key; followed by the store id.
pub(crate) const KEYRING_MAC: &[u8] = b"sealog keyring mac v1";

/// What a slot wraps; followed by store id, keyring version, suite id.
pub(crate) const SLOT: &[u8] = b"sealog keyring key";
/// What the keyring key wraps; followed by store id, keyring version, suite id.
pub(crate) const ROOT_LIST: &[u8] = b"sealog root keys";
/// What a summary key seals; followed by store id, format version, suite id.
pub(crate) const SUMMARY: &[u8] = b"sealog summary";

#[cfg(test)]
mod tests {
    use super::*;

    // JK-2
    #[test]
    fn no_label_is_a_prefix_of_another() {
        let infos = [DATA_KEY, BODY_KEY, HEADER_KEY, SUMMARY_KEY, WRAP, CHECK, MAC, KEYRING_MAC];
        for (i, a) in infos.iter().enumerate() {
            for (j, b) in infos.iter().enumerate() {
                assert!(i == j || !b.starts_with(a), "label {i} is a prefix of label {j}");
            }
        }
        let whats = [SLOT, ROOT_LIST, SUMMARY];
        for (i, a) in whats.iter().enumerate() {
            assert!(whats.iter().enumerate().all(|(j, b)| i == j || !b.starts_with(a)), "label {i}");
        }
    }
}
