//! What to do with a directory, as a table without input or output.

use sealog_seal::StoreId;

/// What stands in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No directory, or an empty one.
    Nothing,
    /// Files that no journal put there.
    OtherFiles,
    /// An interrupted creation, with the store id of its keyring.
    Leftovers(Option<StoreId>),
    Journal(StoreId),
}

/// What kind of key is at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    None,
    /// A key file is named that does not exist.
    Absent,
    Given {
        store_id: Option<StoreId>,
        count: usize,
    },
}

/// Which key a new journal gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewKey {
    /// The one that was given.
    Given,
    /// A new key file under the name that was given.
    Named,
    /// A new key file in the configuration directory.
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoJournal,
    /// The key or the command line names a journal that is not here.
    Elsewhere,
    OtherFiles,
    NoSuchKeyFile,
    TwoKeys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Open(StoreId),
    /// `store_id`: complete the creation of this one; `None`: draw a new id.
    Create {
        store_id: Option<StoreId>,
        key: NewKey,
    },
    Refuse(Refusal),
}

/// `expected` is the store id that the command line names.
pub fn plan(found: Found, key: &KeyKind, expected: Option<StoreId>, no_create: bool) -> Plan {
    let held = match key {
        KeyKind::Given { store_id, .. } => *store_id,
        KeyKind::None | KeyKind::Absent => None,
    };
    match found {
        Found::Journal(id) if expected.is_some_and(|expected| expected != id) => {
            Plan::Refuse(Refusal::Elsewhere)
        }
        Found::Journal(_) if *key == KeyKind::Absent => Plan::Refuse(Refusal::NoSuchKeyFile),
        Found::Journal(id) => Plan::Open(id),
        Found::OtherFiles if expected.or(held).is_some() => Plan::Refuse(Refusal::Elsewhere),
        Found::OtherFiles => Plan::Refuse(Refusal::OtherFiles),
        // Only the key file of a creation that stopped before its last step completes it.
        Found::Leftovers(Some(id)) if held == Some(id) && expected.is_none_or(|e| e == id) && !no_create => {
            Plan::Create { store_id: Some(id), key: NewKey::Given }
        }
        Found::Nothing | Found::Leftovers(_) if expected.or(held).is_some() => {
            Plan::Refuse(Refusal::Elsewhere)
        }
        Found::Nothing | Found::Leftovers(_) if no_create => Plan::Refuse(Refusal::NoJournal),
        Found::Nothing | Found::Leftovers(_) => match key {
            KeyKind::None => Plan::Create { store_id: None, key: NewKey::Default },
            KeyKind::Absent => Plan::Create { store_id: None, key: NewKey::Named },
            KeyKind::Given { count: 1, .. } => Plan::Create { store_id: None, key: NewKey::Given },
            KeyKind::Given { .. } => Plan::Refuse(Refusal::TwoKeys),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StoreId = StoreId([1; 16]);
    const B: StoreId = StoreId([2; 16]);
    const RAW: KeyKind = KeyKind::Given { store_id: None, count: 1 };
    const OF_A: KeyKind = KeyKind::Given { store_id: Some(A), count: 1 };

    #[track_caller]
    fn check(found: Found, key: KeyKind, expected: Option<StoreId>, wanted: Plan) {
        assert_eq!(plan(found, &key, expected, false), wanted);
        // --no-create changes nothing but that nothing is made.
        let strict = plan(found, &key, expected, true);
        match wanted {
            Plan::Create { store_id: Some(_), .. } => assert_eq!(strict, Plan::Refuse(Refusal::Elsewhere)),
            Plan::Create { .. } => assert_eq!(strict, Plan::Refuse(Refusal::NoJournal)),
            Plan::Refuse(Refusal::TwoKeys) => assert_eq!(strict, Plan::Refuse(Refusal::NoJournal)),
            Plan::Open(_) | Plan::Refuse(_) => assert_eq!(strict, wanted),
        }
    }

    #[test]
    fn a_journal_is_opened_unless_another_one_was_named() {
        for key in [KeyKind::None, RAW, OF_A, KeyKind::Given { store_id: Some(B), count: 2 }] {
            check(Found::Journal(A), key, None, Plan::Open(A));
            check(Found::Journal(A), key, Some(A), Plan::Open(A));
            check(Found::Journal(A), key, Some(B), Plan::Refuse(Refusal::Elsewhere));
        }
        check(Found::Journal(A), KeyKind::Absent, None, Plan::Refuse(Refusal::NoSuchKeyFile));
    }

    #[test]
    fn an_empty_directory_becomes_a_journal_only_where_none_was_named() {
        for found in [Found::Nothing, Found::Leftovers(None), Found::Leftovers(Some(B))] {
            check(found, KeyKind::None, None, Plan::Create { store_id: None, key: NewKey::Default });
            check(found, KeyKind::Absent, None, Plan::Create { store_id: None, key: NewKey::Named });
            check(found, RAW, None, Plan::Create { store_id: None, key: NewKey::Given });
            check(found, OF_A, None, Plan::Refuse(Refusal::Elsewhere));
            check(found, KeyKind::None, Some(A), Plan::Refuse(Refusal::Elsewhere));
            check(found, RAW, Some(A), Plan::Refuse(Refusal::Elsewhere));
            check(found, KeyKind::Given { store_id: None, count: 2 }, None, Plan::Refuse(Refusal::TwoKeys));
        }
    }

    #[test]
    fn leftovers_are_completed_by_their_own_key_file() {
        let complete = Plan::Create { store_id: Some(A), key: NewKey::Given };
        check(Found::Leftovers(Some(A)), OF_A, None, complete);
        check(Found::Leftovers(Some(A)), OF_A, Some(A), complete);
        check(Found::Leftovers(Some(A)), OF_A, Some(B), Plan::Refuse(Refusal::Elsewhere));
        check(Found::Leftovers(Some(A)), RAW, None, Plan::Create { store_id: None, key: NewKey::Given });
    }

    #[test]
    fn other_files_are_left_alone() {
        check(Found::OtherFiles, KeyKind::None, None, Plan::Refuse(Refusal::OtherFiles));
        check(Found::OtherFiles, RAW, None, Plan::Refuse(Refusal::OtherFiles));
        check(Found::OtherFiles, OF_A, None, Plan::Refuse(Refusal::Elsewhere));
    }
}
