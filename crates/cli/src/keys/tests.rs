use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::exit::Exit;

const RENDER: Render = Render { json: false };

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "a test prepares files from outside")]
    fn file(&self, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

#[track_caller]
fn refused(path: &Path, code: &str) {
    let failure = key_file(path).unwrap_err();
    assert_eq!((failure.exit, failure.code), (Exit::Usage, code), "{}", failure.what);
}

#[test]
fn both_forms_of_a_key_file_are_read() {
    let folder = Folder::new();
    let raw = key_file(&folder.file("raw", &[7; 32], 0o600)).unwrap().unwrap();
    assert_eq!(raw.store_id, None);
    let mut random = |buf: &mut [u8]| {
        buf.fill(9);
        Ok(())
    };
    let made = KeyFile::generate(StoreId([3; 16]), &mut random).unwrap();
    let path = folder.0.path().join("deep/er/made.key");
    write(&path, &made).unwrap();
    assert_eq!(key_file(&path).unwrap().unwrap().store_id, Some(StoreId([3; 16])));
    assert_eq!(write(&path, &made).unwrap_err().kind, ErrorKind::AlreadyExists);
    assert!(key_file(&folder.0.path().join("absent")).unwrap().is_none());
    let link = folder.0.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(key_file(&link).unwrap().is_some());
}

#[test]
fn anything_else_is_no_key_file() {
    let folder = Folder::new();
    for (bytes, name) in [(&b""[..], "empty"), (&[1; 31], "short"), (&[1; 33], "longer"), (&[1; 64], "magic")]
    {
        refused(&folder.file(name, bytes, 0o600), "bad_key_file");
    }
    refused(&folder.file("long", &[1; 65], 0o600), "bad_key_file");
    for mode in [0o640, 0o604, 0o660, 0o601, 0o610, 0o644] {
        refused(&folder.file("open", &[1; 32], mode), "bad_key_file");
    }
    refused(folder.0.path(), "bad_key_file");
    refused(Path::new("/dev/null"), "bad_key_file");
    let pipe = folder.0.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    refused(&pipe, "bad_key_file");
}

#[test]
fn a_named_source_that_is_missing_is_told_apart_from_none() {
    let folder = Folder::new();
    let absent = KeyArgs { key_file: vec![folder.0.path().join("k")], ..KeyArgs::default() };
    assert!(matches!(Given::read(&absent, RENDER), Ok(Given::Absent(_))));
    let passphrase = folder.file("p", b"correct horse\n", 0o600);
    let both = KeyArgs { passphrase_file: vec![passphrase], ..absent };
    assert_eq!(Given::read(&both, RENDER).unwrap_err().code, "no_such_key_file");
    let empty = KeyArgs { passphrase_file: vec![folder.file("e", b"\n", 0o600)], ..KeyArgs::default() };
    assert_eq!(Given::read(&empty, RENDER).unwrap_err().code, "bad_passphrase_file");
}

#[test]
fn several_key_files_are_all_read_and_must_all_be_there() {
    let folder = Folder::new();
    let (one, two) = (folder.file("one", &[1; 32], 0o600), folder.file("two", &[2; 32], 0o600));
    let both = KeyArgs { key_file: vec![one.clone(), two], ..KeyArgs::default() };
    assert!(matches!(Given::read(&both, RENDER), Ok(Given::Keys(keys)) if keys.len() == 2));
    let absent = KeyArgs { key_file: vec![one, folder.0.path().join("k")], ..KeyArgs::default() };
    assert_eq!(Given::read(&absent, RENDER).unwrap_err().code, "no_such_key_file");
}

#[test]
fn what_was_typed_stands_in_no_text() {
    let typed = Zeroizing::new(b"correct horse".to_vec());
    let key = Key { secret: Secret::passphrase(&typed).unwrap(), store_id: None, typed: Some(typed) };
    let text = format!("{key:?}");
    assert!(!text.contains("horse") && !text.contains("typed") && !text.contains("99, 111"), "{text}");
}
