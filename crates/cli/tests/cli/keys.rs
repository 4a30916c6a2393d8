//! Key sources: the same for every verb, and what is refused as a key.

use std::os::fd::AsRawFd;

use crate::bench::{Bench, without_ground};

const VERIFY: [&str; 3] = ["journal", "verify", "data"];

fn verify(bench: &Bench, more: &[&str]) -> crate::bench::Ran {
    bench.run(&[&VERIFY[..], more].concat())
}

#[test]
fn a_key_file_has_no_group_or_other_bits() {
    let bench = Bench::new();
    bench.init();
    let key = bench.read("key");
    for mode in [0o640, 0o604, 0o644, 0o660, 0o620, 0o602, 0o601] {
        bench.write("key", &key, mode);
        let ran = verify(&bench, &["--key-file", "key"]).expect(2);
        assert_eq!(ran.word(), "bad_key_file", "{mode:o}");
        assert!(ran.stderr.contains("chmod 600 key"), "{}", ran.stderr);
    }
    for mode in [0o600, 0o400] {
        bench.write("key", &key, mode);
        verify(&bench, &["--key-file", "key"]).expect(0);
    }
}

#[test]
fn anything_that_is_no_key_is_2() {
    let bench = Bench::new();
    bench.init();
    let key = bench.read("key");
    assert_eq!(key.len(), 64);
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("short", &key[..63]),
        ("long", &[&key[..], &[0]].concat()),
        ("text", b"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
        ("newline", &[&[7; 32][..], b"\n"].concat()),
    ] {
        bench.write(name, bytes, 0o600);
        let ran = verify(&bench, &["--key-file", name]).expect(2);
        assert_eq!(ran.word(), "bad_key_file", "{name}");
        assert!(!ran.stderr.contains("chmod"), "{name}: other bits would not help: {}", ran.stderr);
    }
    let mut flipped = key;
    flipped[40] ^= 1;
    bench.write("flipped", &flipped, 0o600);
    assert_eq!(verify(&bench, &["--key-file", "flipped"]).expect(2).word(), "bad_key_file");
    assert_eq!(verify(&bench, &["--key-file", "."]).expect(2).word(), "bad_key_file");
    assert_eq!(verify(&bench, &["--key-file", "absent"]).expect(2).word(), "no_such_key_file");
}

#[test]
fn a_raw_key_makes_and_opens_a_journal() {
    let bench = Bench::new();
    bench.write("raw", &[7; 32], 0o600);
    bench.run(&["journal", "init", "data", "--key-file", "raw"]).expect(0);
    assert_eq!(bench.read("raw"), [7; 32]);
    verify(&bench, &["--key-file", "raw"]).expect(0);
}

#[test]
fn a_descriptor_hands_the_key_over() {
    let bench = Bench::new();
    bench.init();
    let input = bench.read("key");
    bench.run_with_input(&[&VERIFY[..], &["--key-fd", "0"]].concat(), &input).expect(0);
    let short = bench.run_with_input(&[&VERIFY[..], &["--key-fd", "0"]].concat(), &input[..31]);
    assert_eq!(short.expect(2).word(), "bad_key_fd");
    assert_eq!(verify(&bench, &["--key-fd", "99"]).expect(2).word(), "bad_key_fd");
    // An inherited descriptor other than standard input: a pipe without close-on-exec.
    let (read, write) = rustix::pipe::pipe().unwrap();
    rustix::io::write(&write, &input).unwrap();
    drop(write);
    verify(&bench, &["--key-fd", &read.as_raw_fd().to_string()]).expect(0);
}

#[test]
fn a_passphrase_file_makes_and_opens_a_journal() {
    let bench = Bench::new();
    bench.write("phrase", b"correct horse battery staple\n", 0o600);
    bench.run(&["journal", "init", "data", "--passphrase-file", "phrase"]).expect(0);
    verify(&bench, &["--passphrase-file", "phrase"]).expect(0);
    bench.write("bare", b"correct horse battery staple", 0o600);
    verify(&bench, &["--passphrase-file", "bare"]).expect(0);
    bench.write("wrong", b"correct horse battery staple\n\n", 0o600);
    assert_eq!(verify(&bench, &["--passphrase-file", "wrong"]).expect(12).word(), "wrong_key");
    bench.write("nothing", b"\n", 0o600);
    assert_eq!(verify(&bench, &["--passphrase-file", "nothing"]).expect(2).word(), "bad_passphrase_file");
    // Nobody can be asked here.
    assert_eq!(verify(&bench, &["--prompt"]).expect(2).word(), "no_terminal");
    let inspect = bench.run(&["journal", "inspect", "data", "--passphrase-file", "phrase", "--json"]).json();
    assert_eq!(inspect["keyring"]["slots"][0]["kind"], "passphrase");
}

#[test]
fn the_credential_of_the_service_manager_is_found() {
    let bench = Bench::new();
    bench.init();
    bench.make_dir("credentials", 0o700);
    let key = bench.read("key");
    // The service manager's bits are its own affair.
    bench.write("credentials/sealog.key", &key, 0o440);
    let with = |folder: &str| -> crate::bench::Ran {
        let mut command = bench.command(&VERIFY);
        command.env("CREDENTIALS_DIRECTORY", bench.path(folder)).output().unwrap().into()
    };
    with("credentials").expect(0);
    assert_eq!(with("elsewhere").expect(2).word(), "no_key");
    bench.write("credentials/sealog.key", b"no key", 0o440);
    assert_eq!(with("credentials").expect(2).word(), "bad_credential");
}

#[test]
fn without_a_key_the_store_id_finds_it() {
    let bench = Bench::new();
    let made = bench.run(&["journal", "init", "data", "--json"]).expect(0).json();
    let id = made["store_id"].as_str().unwrap();
    let key = bench.path(&format!("config/sealog/{id}.key"));
    assert_eq!(made["key_file"], key.to_str().unwrap());
    verify(&bench, &[]).expect(0);
    bench.run(&["run", "hi", "--data-dir", "data"]).expect(0);
    bench.remove(&format!("config/sealog/{id}.key"));
    let lost = verify(&bench, &[]).expect(2);
    assert_eq!(lost.word(), "no_key");
    assert!(lost.stderr.contains(id), "{}", lost.stderr);
}

/// A process whose terminal is ours: what it wrote there and its exit code, once each of `typed` was entered at a prompt.
pub fn at_a_terminal(bench: &Bench, arguments: &[&str], typed: &[&[u8]]) -> (String, Option<i32>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let theirs = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).unwrap();
    let mut command = bench.command(arguments);
    command.stdin(theirs.try_clone().unwrap()).stderr(theirs).stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    // Its ends of the terminal; without this the reading below would never end.
    drop(command);
    let mut shown = Vec::new();
    let mut buf = [0; 256];
    let mut typed = typed.iter();
    // A prompt is answered once: what stands before it was asked already.
    let mut answered = 0;
    // The system says EIO once nobody has the other end open any more.
    while let Ok(count) = rustix::io::read(&ours, &mut buf) {
        shown.extend_from_slice(&buf[..count]);
        // Other words may end like a prompt where one read ends.
        let prompted = shown.ends_with(b"passphrase: ") || shown.ends_with(b"once more: ");
        let asks = shown.len() > answered && prompted;
        if let Some(line) = asks.then(|| typed.next()).flatten() {
            answered = shown.len();
            rustix::io::write(&ours, line).unwrap();
        }
    }
    (String::from_utf8(shown).unwrap(), child.wait().unwrap().code())
}

#[test]
fn a_terminal_is_asked_without_echo() {
    let bench = Bench::new();
    bench.write("phrase", b"correct horse", 0o600);
    bench.run(&["journal", "init", "data", "--passphrase-file", "phrase"]).expect(0);
    for (typed, code) in [(&b"correct horse\n"[..], 0), (b"wrong horse\n", 12), (b"corr\x03", 1)] {
        let (shown, found) = at_a_terminal(&bench, &VERIFY, &[typed]);
        assert_eq!(found, Some(code), "{shown}");
        let shown = without_ground(&shown);
        assert!(shown.starts_with("passphrase: \r\n") && !shown.contains("horse"), "{shown}");
    }
}

/// A slip at the terminal would make a journal that nobody opens.
#[test]
fn a_new_journal_asks_for_its_passphrase_twice() {
    let bench = Bench::new();
    let init = ["journal", "init", "data", "--prompt"];
    for (second, code) in [(&b"correct hrose\n"[..], 2), (b"\x03", 1)] {
        let (shown, found) = at_a_terminal(&bench, &init, &[b"correct horse\n", second]);
        assert_eq!(found, Some(code), "{shown}");
        assert!(shown.contains("once more: ") && !shown.contains("horse"), "{shown}");
        assert!(!bench.path("data").exists());
    }
    let (shown, found) = at_a_terminal(&bench, &init, &[b"correct horse\n", b"correct horse\n"]);
    assert_eq!(found, Some(0), "{shown}");
    // Where one stands, once is enough.
    let verify = ["journal", "verify", "data", "--prompt"];
    let (shown, found) = at_a_terminal(&bench, &verify, &[b"correct horse\n"]);
    assert_eq!(found, Some(0), "{shown}");
    assert!(!shown.contains("once more"), "{shown}");
}

#[test]
fn a_key_may_come_from_where_it_can_be_read_only_once() {
    let bench = Bench::new();
    bench.finished();
    let key = bench.read("key");
    let verbs: [&[&str]; 6] =
        [&["verify"], &["inspect"], &["compact"], &["unfence"], &["rekey", "list"], &["rekey", "rotate"]];
    for verb in verbs {
        let arguments = [&["journal", verb[0], "data"], &verb[1..], &["--key-fd", "0"]].concat();
        bench.run_with_input(&arguments, &key).expect(0);
    }
}

/// A key file that is open to others is refused; a passphrase's file comes from elsewhere, with the mode of there.
#[test]
fn a_passphrase_file_that_others_may_read_is_taken_and_told() {
    let bench = Bench::new();
    bench.write("phrase", b"correct horse", 0o444);
    let init = bench.run(&["journal", "init", "data", "--passphrase-file", "phrase"]).expect(0);
    assert!(init.stderr.contains("phrase can be read by its group or others"), "{}", init.stderr);
    bench.remove("phrase");
    bench.write("phrase", b"correct horse", 0o400);
    let told = verify(&bench, &["--passphrase-file", "phrase"]).expect(0).stderr;
    assert!(!told.contains("group or others"), "{told}");
}
