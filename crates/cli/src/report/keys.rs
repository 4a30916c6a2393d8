//! A keyring as JSON and as text: slots and root keys by name and number, never a key.

use std::fmt::Write as _;

use sealog_journal::{KeyFacts, RootFacts};
use sealog_seal::{SlotInfo, SlotKind};
use serde::Serialize;

use super::{copy_word, counted, hex};

/// What `rekey` and `inspect --keys` print.
#[derive(Serialize)]
pub struct KeysBody {
    store_id: String,
    generation: u64,
    copies: [&'static str; 2],
    /// `null` behind a change.
    opened_slot: Option<String>,
    slots: Vec<SlotBody>,
    root_keys: Vec<RootBody>,
    /// Some file does not tell which key it was made with.
    unreadable_files: bool,
}

#[derive(Serialize)]
struct SlotBody {
    name: String,
    kind: &'static str,
    /// Of a passphrase.
    #[serde(skip_serializing_if = "Option::is_none")]
    stretch: Option<StretchBody>,
}

#[derive(Serialize)]
struct StretchBody {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

#[derive(Serialize)]
struct RootBody {
    id: String,
    state: &'static str,
    segments: u64,
    head_slots: u64,
    quarantined: u64,
}

impl KeysBody {
    pub fn new(facts: &KeyFacts) -> KeysBody {
        KeysBody {
            store_id: hex(&facts.store_id),
            generation: facts.generation,
            copies: facts.copies.map(copy_word),
            opened_slot: facts.opened_slot.clone(),
            slots: facts.slots.iter().map(slot).collect(),
            root_keys: facts.roots.iter().map(root).collect(),
            unreadable_files: facts.unreadable,
        }
    }

    pub fn text(&self) -> String {
        let [first, second] = self.copies;
        let mut text = format!("keyring: generation {}, copies {first} and {second}\n", self.generation);
        for slot in &self.slots {
            let opened = if self.opened_slot.as_ref() == Some(&slot.name) {
                ", opened with what was given"
            } else {
                ""
            };
            let _ = write!(text, "slot {}: {}", slot.name, slot.kind);
            if let Some(StretchBody { memory_kib, passes, lanes }) = &slot.stretch {
                let _ = write!(text, " (Argon2id {memory_kib} KiB, {passes} passes, {lanes} lanes)");
            }
            let _ = writeln!(text, "{opened}");
        }
        for RootBody { id, state, segments, head_slots, quarantined } in &self.root_keys {
            let _ = write!(text, "root key {id}: {state}, {}", counted(*segments, "segment"));
            for (count, word) in [(*head_slots, "head slot"), (*quarantined, "quarantined tail")] {
                if count > 0 {
                    let _ = write!(text, ", {}", counted(count, word));
                }
            }
            text.push('\n');
        }
        if self.unreadable_files {
            text += "a file does not tell which key it was made with: no root key is dropped\n";
        }
        text
    }
}

fn slot(slot: &SlotInfo) -> SlotBody {
    let (kind, stretch) = match slot.kind {
        SlotKind::Raw => ("raw", None),
        SlotKind::Passphrase(params) => {
            let stretch = StretchBody {
                memory_kib: params.memory_kib(),
                passes: params.passes(),
                lanes: params.lanes(),
            };
            ("passphrase", Some(stretch))
        }
    };
    SlotBody { name: slot.name.clone(), kind, stretch }
}

fn root(root: &RootFacts) -> RootBody {
    RootBody {
        id: hex(&root.id),
        state: if root.active { "active" } else { "retired" },
        segments: root.named_by.segments,
        head_slots: root.named_by.head_slots,
        quarantined: root.named_by.quarantined,
    }
}
