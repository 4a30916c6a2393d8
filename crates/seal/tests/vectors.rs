//! The vectors of `spec/vectors/keys`: read and judged as a stranger's files, and compared with what this build makes.
//!
//! With `SEALOG_WRITE_VECTORS` set, vectors that do not exist yet are written; a file that exists is never changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use sealog_seal::{
    KeyFile, KeyFileError, Keyring, KeyringError, NewSlot, RandomUnavailable, Secret, SlotParams, StoreId,
    sha256,
};

const STORE: StoreId = StoreId([0x51; 16]);
const PHRASE: &str = "correct horse battery staple";

/// One file: its header lines and its bytes.
#[derive(Debug, PartialEq)]
struct Vector {
    fields: BTreeMap<String, String>,
    bytes: Vec<u8>,
}

impl Vector {
    fn new(kind: &str, expect: &str, bytes: Vec<u8>) -> Vector {
        let fields = [("kind", kind), ("expect", expect)];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Vector { fields, bytes }
    }

    fn with(mut self, name: &str, value: impl ToString) -> Vector {
        self.fields.insert(name.to_owned(), value.to_string());
        self
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    fn parse(text: &str) -> Vector {
        let (head, body) = text.split_once("bytes:\n").expect("a line `bytes:`");
        let fields = head
            .lines()
            .map(|line| line.split_once(": ").expect("name: value"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Vector { fields, bytes: unhex(body) }
    }

    fn render(&self) -> String {
        let mut text: String = self.fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        text.push_str("bytes:\n");
        for line in self.bytes.chunks(32) {
            text.push_str(&hex(line));
            text.push('\n');
        }
        text
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).expect("a digit")).collect();
    assert!(digits.len().is_multiple_of(2));
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("a byte")).collect()
}

/// SHA-256 in counter mode: the vectors must come out the same at every run.
fn repeatable() -> impl FnMut(&mut [u8]) -> Result<(), RandomUnavailable> {
    let mut counter = 0u64;
    move |buf: &mut [u8]| {
        for chunk in buf.chunks_mut(32) {
            counter += 1;
            chunk.copy_from_slice(&sha256(&[b"sealog key vectors", &counter.to_le_bytes()])[..chunk.len()]);
        }
        Ok(())
    }
}

fn raw() -> Secret {
    Secret::raw([0x0b; 32])
}

fn phrase() -> Secret {
    Secret::passphrase(PHRASE.as_bytes()).expect("a passphrase")
}

/// What a reader must find in a keyring that opens.
fn found(ring: &Keyring) -> [(&'static str, String); 3] {
    let mac = ring.active_root().mac_key(b"vector", &ring.store_id()).mac(b"sealog");
    [
        ("generation", ring.generation().to_string()),
        ("active", ring.active_root().id().to_string()),
        ("mac", hex(&mac)),
    ]
}

fn opens(ring: &Keyring) -> Vector {
    let vector = Vector::new("keyring", "opens", ring.encode()).with("store", STORE);
    found(ring).into_iter().fold(vector, |vector, (name, value)| vector.with(name, value))
}

/// The bytes with a change and both unkeyed sums right again.
fn resummed(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    let hash_at = bytes.len() - 32;
    let hash = sha256(&[&bytes[..hash_at]]);
    bytes[hash_at..].copy_from_slice(&hash);
    bytes
}

/// Vectors by file name.
#[derive(Default)]
struct Set(BTreeMap<String, Vector>);

impl Set {
    fn put(&mut self, name: &str, vector: Vector) {
        assert!(self.0.insert(format!("{name}.hex"), vector).is_none(), "{name} twice");
    }
}

fn raw_hex() -> String {
    hex(&[0x0b; 32])
}

fn refused(expect: &str, bytes: Vec<u8>) -> Vector {
    Vector::new("keyring", expect, bytes).with("store", STORE).with("raw", raw_hex())
}

/// Every vector, as this build makes it.
fn made() -> BTreeMap<String, Vector> {
    let random = &mut repeatable();
    let (raw, phrase) = (raw(), phrase());
    let file_slot = NewSlot { name: "key file", secret: &raw, params: SlotParams::DEFAULT };
    let phrase_slot = NewSlot { name: "passphrase", secret: &phrase, params: SlotParams::FLOOR };
    let one = Keyring::create(STORE, &[file_slot], random).expect("a keyring");
    let spoken = Keyring::create(STORE, &[phrase_slot], random).expect("a keyring");
    let both = one.add_slot(&phrase_slot, random).expect("a second slot");
    let both = both.rotate(&[raw.clone(), phrase.clone()], &[], random).expect("a rotation");

    let set = &mut Set::default();
    set.put("keyring-raw", opens(&one).with("raw", raw_hex()));
    set.put("keyring-passphrase", opens(&spoken).with("passphrase", PHRASE));
    set.put("keyring-rotated-raw", opens(&both).with("raw", raw_hex()));
    set.put("keyring-rotated-passphrase", opens(&both).with("passphrase", PHRASE));

    let ring = both.encode();
    refusals(set, &ring, &spoken);
    damages(set, &ring);
    forgeries(set, &ring);
    key_files(set, &KeyFile::generate(STORE, random).expect("a key file"));
    std::mem::take(&mut set.0)
}

fn refusals(set: &mut Set, ring: &[u8], spoken: &Keyring) {
    set.put("keyring-wrong-raw", refused("wrong-key", ring.to_vec()).with("raw", hex(&[0x0c; 32])));
    let wrong = Vector::new("keyring", "wrong-key", spoken.encode()).with("store", STORE);
    set.put("keyring-wrong-passphrase", wrong.with("passphrase", "correct horse battery stapler"));
    set.put("keyring-no-secret", Vector::new("keyring", "wrong-key", ring.to_vec()).with("store", STORE));
    set.put("keyring-wrong-store", refused("wrong-store", ring.to_vec()).with("store", StoreId([0x52; 16])));
    set.put("keyring-newer", refused("newer-format", resummed(ring, |b| b[8] = 2)));
    set.put("keyring-nine-slots", refused("too-large", resummed(ring, |b| b[40] = 9)));
    set.put(
        "keyring-1025-root-keys",
        refused("too-large", resummed(ring, |b| b[42..44].copy_from_slice(&[1, 4]))),
    );
    let memory = |kib: u32| resummed(ring, |b| b[276..280].copy_from_slice(&kib.to_le_bytes()));
    set.put("keyring-memory-below-floor", refused("bad-parameters", memory(19_455)));
    set.put("keyring-memory-above-ceiling", refused("bad-parameters", memory(1_048_577)));
}

fn damages(set: &mut Set, ring: &[u8]) {
    let flipped = |at: usize| {
        let mut bytes = ring.to_vec();
        bytes[at] ^= 0x10;
        bytes
    };
    set.put("keyring-empty", refused("damaged", Vec::new()));
    set.put("keyring-truncated", refused("damaged", ring[..ring.len() - 1].to_vec()));
    set.put("keyring-flipped-magic", refused("damaged", flipped(0)));
    set.put("keyring-flipped-version", refused("damaged", flipped(8)));
    set.put("keyring-flipped-store", refused("damaged", flipped(16)));
    set.put("keyring-flipped-slot-check", refused("damaged", flipped(64 + 128)));
    set.put("keyring-flipped-list", refused("damaged", flipped(ring.len() - 70)));
    set.put("keyring-flipped-sha-256", refused("damaged", flipped(ring.len() - 1)));
    set.put("keyring-foreign-magic", refused("damaged", resummed(ring, |b| b[7] = b'X')));
    set.put("keyring-no-generation", refused("damaged", resummed(ring, |b| b[32..40].fill(0))));
    set.put("keyring-no-slot", refused("damaged", resummed(ring, |b| b[40] = 0)));
    set.put("keyring-unknown-suite", refused("damaged", resummed(ring, |b| b[44] = 2)));
    set.put("keyring-unused-not-zero", refused("damaged", resummed(ring, |b| b[50] = 1)));
    set.put("keyring-unknown-slot-kind", refused("damaged", resummed(ring, |b| b[64] = 3)));
    set.put("keyring-control-in-name", refused("damaged", resummed(ring, |b| b[64 + 32] = 0x1b)));
}

fn forgeries(set: &mut Set, ring: &[u8]) {
    set.put("keyring-forged-generation", refused("damaged-behind-slot", resummed(ring, |b| b[33] = 1)));
    set.put("keyring-forged-slot", refused("damaged-behind-slot", resummed(ring, |b| b[64 + 160] ^= 1)));
    set.put(
        "keyring-forged-other-slot",
        refused("damaged-behind-slot", resummed(ring, |b| b[64 + 208 + 160] ^= 1)),
    );
    set.put("keyring-forged-list", refused("damaged-behind-slot", resummed(ring, |b| b[64 + 416 + 80] ^= 1)));
    let mac_at = ring.len() - 64;
    set.put("keyring-forged-mac", refused("damaged-behind-slot", resummed(ring, |b| b[mac_at] ^= 1)));
}

fn key_files(set: &mut Set, file: &KeyFile) {
    let file = file.encode().to_vec();
    let written = Vector::new("key-file", "opens", file.clone()).with("store", STORE);
    set.put("key-file-written", written.with("raw", hex(&file[28..60])));
    set.put("key-file-raw", Vector::new("key-file", "opens", vec![0x0b; 32]).with("raw", raw_hex()));
    let changed = |at: usize, value: u8, resum: bool| {
        let mut bytes = file.clone();
        bytes[at] = value;
        if resum {
            let crc = crc32fast::hash(&bytes[..60]);
            bytes[60..].copy_from_slice(&crc.to_le_bytes());
        }
        bytes
    };
    set.put("key-file-short", Vector::new("key-file", "wrong-length", file[..63].to_vec()));
    set.put(
        "key-file-newline-behind",
        Vector::new("key-file", "wrong-length", [&[0x0b; 32][..], b"\n"].concat()),
    );
    set.put("key-file-foreign", Vector::new("key-file", "not-a-key-file", vec![b'k'; 64]));
    set.put("key-file-flipped", Vector::new("key-file", "damaged", changed(30, file[30] ^ 1, false)));
    set.put("key-file-unused-not-zero", Vector::new("key-file", "damaged", changed(10, 1, true)));
    set.put("key-file-newer", Vector::new("key-file", "newer-format", changed(8, 2, true)));
}

fn keyring_class(error: &KeyringError) -> &'static str {
    match error {
        KeyringError::Damaged { .. } => "damaged",
        KeyringError::UnsupportedVersion(_) => "newer-format",
        KeyringError::WrongStore => "wrong-store",
        KeyringError::WrongKey => "wrong-key",
        KeyringError::BadParameters => "bad-parameters",
        KeyringError::TooLarge => "too-large",
        KeyringError::DamagedBehindSlot => "damaged-behind-slot",
        KeyringError::OutOfMemory => "out-of-memory",
        KeyringError::Missing => "missing",
    }
}

fn key_file_class(error: KeyFileError) -> &'static str {
    match error {
        KeyFileError::WrongLength => "wrong-length",
        KeyFileError::NotAKeyFile => "not-a-key-file",
        KeyFileError::Damaged => "damaged",
        KeyFileError::UnsupportedVersion(_) => "newer-format",
    }
}

fn judge_keyring(name: &str, vector: &Vector) {
    let expect_store = vector.field("store").map(|text| StoreId::parse(text).expect("a store id"));
    let raw = vector.field("raw").map(|text| Secret::raw(unhex(text).try_into().expect("32 bytes")));
    let phrase =
        vector.field("passphrase").map(|text| Secret::passphrase(text.as_bytes()).expect("a passphrase"));
    let secrets: Vec<Secret> = raw.into_iter().chain(phrase).collect();
    match Keyring::open(&vector.bytes, expect_store, &secrets) {
        Ok(ring) => {
            assert_eq!(vector.field("expect"), Some("opens"), "{name}");
            for (field, value) in found(&ring) {
                assert_eq!(vector.field(field), Some(value.as_str()), "{name}: {field}");
            }
            assert_eq!(ring.encode(), vector.bytes, "{name}");
        }
        Err(error) => assert_eq!(vector.field("expect"), Some(keyring_class(&error)), "{name}"),
    }
}

fn judge_key_file(name: &str, vector: &Vector) {
    match KeyFile::parse(&vector.bytes) {
        Ok((store, Secret::Raw(raw))) => {
            assert_eq!(vector.field("expect"), Some("opens"), "{name}");
            assert_eq!(
                vector.field("store").map(str::to_owned),
                store.map(|store| store.to_string()),
                "{name}"
            );
            assert_eq!(vector.field("raw"), Some(hex(raw.as_slice()).as_str()), "{name}");
        }
        Ok((_, Secret::Passphrase(_))) => panic!("{name}: a key file holds no passphrase"),
        Err(error) => assert_eq!(vector.field("expect"), Some(key_file_class(error)), "{name}"),
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors/keys")
}

#[expect(clippy::disallowed_methods, reason = "reads the repository's own vectors, no journal")]
fn stored() -> BTreeMap<String, Vector> {
    let mut stored = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).expect("the folder of vectors") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_str().expect("ASCII").to_owned();
        let text = std::fs::read_to_string(&path).expect("a readable vector");
        stored.insert(name, Vector::parse(&text));
    }
    stored
}

#[expect(clippy::disallowed_methods, reason = "writes new vectors into the repository when asked to")]
fn write_new_ones(made: &BTreeMap<String, Vector>) {
    std::fs::create_dir_all(folder()).expect("the folder of vectors");
    for (name, vector) in made {
        let path = folder().join(name);
        if !path.exists() {
            std::fs::write(path, vector.render()).expect("a written vector");
        }
    }
}

#[test]
fn jk_70_stored_vectors_are_judged_as_they_say_and_still_made() {
    let made = made();
    if std::env::var_os("SEALOG_WRITE_VECTORS").is_some() {
        write_new_ones(&made);
    }
    let stored = stored();
    assert!(stored.keys().eq(made.keys()), "files {:?}\nmade {:?}", stored.keys(), made.keys());
    for (name, vector) in &stored {
        match vector.field("kind") {
            Some("keyring") => judge_keyring(name, vector),
            Some("key-file") => judge_key_file(name, vector),
            kind => panic!("{name}: kind {kind:?}"),
        }
        assert!(*vector == made[name], "{name} is no longer made as it was");
    }
}
