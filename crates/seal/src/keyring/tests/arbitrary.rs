//! Bytes that nobody wrote as a keyring never open.

use proptest::prelude::*;

use super::*;

proptest! {
    // JK-30
    #[test]
    fn arbitrary_bytes_never_panic_and_never_open(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(open(&bytes, &[raw(1), phrase("horse")]).is_err());
        prop_assert!(choose([Some(&bytes), Some(&bytes)], None).is_err());
    }

    // JK-30: with right sums and a right magic, so that the inner rules meet arbitrary bytes too.
    #[test]
    fn arbitrary_bytes_behind_right_sums_never_open(
        slots in 0u16..10, roots in 0u16..4, tail in proptest::collection::vec(any::<u8>(), 0..2000), fit: bool,
    ) {
        let mut tail = tail;
        if fit {
            tail.resize(144 + 208 * usize::from(slots) + 56 * usize::from(roots), 0x20);
        }
        let mut bytes = layout::fixed_part(&STORE, 1, 1, 1).to_vec();
        bytes.extend_from_slice(&tail);
        let length = u32::try_from(bytes.len()).unwrap();
        let bytes = resummed(&bytes, |bytes| {
            bytes[12..16].copy_from_slice(&length.to_le_bytes());
            bytes[40..42].copy_from_slice(&slots.to_le_bytes());
            bytes[42..44].copy_from_slice(&roots.to_le_bytes());
        });
        prop_assert!(open(&bytes, &[raw(1)]).is_err());
    }

    // JK-37, JK-36: several changed bytes, with the sums wrong or right again.
    #[test]
    fn a_changed_keyring_never_opens(
        changes in proptest::collection::vec((0usize..680, 1u8..=255), 1..6), right_sums: bool, known: bool,
    ) {
        let original = pair().encode();
        let mut bytes = original.clone();
        for (at, mask) in &changes {
            let at = at % bytes.len();
            bytes[at] ^= mask;
        }
        // Two changes of one byte can cancel out.
        prop_assume!(bytes != original);
        let secret = if known { raw(1) } else { raw(2) };
        if right_sums {
            let bytes = resummed(&bytes, |_| ());
            prop_assume!(bytes != original);
            prop_assert!(open(&bytes, &[secret]).is_err());
        } else {
            prop_assert_eq!(class(&bytes, &[secret]), "damaged");
        }
    }
}
