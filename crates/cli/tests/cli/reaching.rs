//! The verbs that ask a node, over TLS and over a socket in the file system: whom they trust, and what they keep to
//! themselves.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ED25519, date_time_ymd,
};

use crate::asking::{goes_on_across_a_restart, stalled};
use crate::bench::{Bench, Node, Ran};

const TLS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
const TRUSTING: [&str; 2] = ["--ca-file", "ca.pem"];
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];
const NO_ID: &str = "11111111-2222-4333-8444-555555555555";

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A new CA, its certificate in `file`. All have one name, as those of one company have.
fn authority(bench: &Bench, file: &str) -> Authority {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let made = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    bench.write(file, made.pem().as_bytes(), 0o644);
    made
}

/// A certificate and its key for the next start of a node.
fn certificate(bench: &Bench, by: &Authority, names: &[&str], years: (i32, i32)) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    let key = KeyPair::generate().unwrap();
    let made = params.signed_by(&key, by).unwrap();
    bench.write("cert.pem", made.pem().as_bytes(), 0o644);
    bench.write("key.pem", key.serialize_pem().as_bytes(), 0o600);
}

const VALID: (i32, i32) = (2000, 4000);

fn trusted(bench: &Bench) -> Authority {
    let made = authority(bench, "ca.pem");
    certificate(bench, &made, &NAMES, VALID);
    made
}

/// Every verb that asks a node.
fn verbs() -> [Vec<&'static str>; 6] {
    [
        vec!["run", "hi"],
        vec!["ps"],
        vec!["show", NO_ID],
        vec!["tail", NO_ID],
        vec!["tail", "-f", NO_ID],
        vec!["cancel", NO_ID],
    ]
}

/// What a node at `place` is asked for, from a submission to its end.
fn every_verb_is_answered(bench: &Bench, place: &[&str]) {
    let asked = |words: &[&str]| bench.run(&[words, place].concat());
    assert_eq!(asked(&["run", "hi"]).expect(0).stdout, "hello from mock\n");
    let id = stalled(bench, place);
    assert!(asked(&["ps", "--status", "running"]).expect(0).stdout.contains(&id));
    assert_eq!(asked(&["tail", &id]).expect(0).stdout, "hello\n");
    asked(&["cancel", &id]).expect(0);
    assert_eq!(asked(&["tail", "-f", &id]).expect(22).word(), "execution_cancelled");
    assert!(asked(&["show", &id]).expect(0).stdout.contains("status     cancelled"));
    assert_eq!(asked(&["show", NO_ID]).expect(4).word(), "not_found");
}

#[test]
fn a_node_with_tls_is_asked_and_followed_across_a_restart() {
    let bench = Bench::new();
    trusted(&bench);
    let node = bench.node(&TLS);
    let url = node.url().to_owned();
    let place = [&["--url", &url], &TRUSTING[..]].concat();
    every_verb_is_answered(&bench, &place);
    let by_name = url.replace("127.0.0.1", "localhost");
    bench.run(&["ps", "--url", &by_name, "--ca-file", "ca.pem"]).expect(0);
    let listen = [&["--listen", url.strip_prefix("https://").unwrap()], &TLS[..]].concat();
    goes_on_across_a_restart(&bench, node, &place, &listen);
}

#[test]
fn a_node_on_a_socket_is_asked_and_followed_across_a_restart() {
    let bench = Bench::new();
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", "unix:node.sock"];
    let node = Node::start(bench.command(&serve));
    // Relative as the node's first line says it, and absolute.
    let absolute = format!("unix:{}", bench.text("node.sock"));
    bench.run(&["ps", "--url", &absolute]).expect(0);
    let place = ["--url", node.url()];
    every_verb_is_answered(&bench, &place);
    goes_on_across_a_restart(&bench, node, &["--url", "unix:node.sock"], &["--listen", "unix:node.sock"]);
    assert_eq!(bench.run(&["ps", "--url", "unix:node.sock"]).expect(75).word(), "no_node");
}

#[test]
fn the_systems_roots_count_where_no_file_is_named() {
    let bench = Bench::new();
    trusted(&bench);
    authority(&bench, "other.pem");
    // A CA of the same name whose key is of another kind, as one has that was made anew.
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let made = params.self_signed(&KeyPair::generate_for(&PKCS_ED25519).unwrap()).unwrap();
    bench.write("anew.pem", made.pem().as_bytes(), 0o644);
    let node = bench.node(&TLS);
    let with_roots = |file: &str, more: &[&str]| {
        let mut command = bench.command(&[&["ps", "--url", node.url()], more].concat());
        Ran::from(command.env("SSL_CERT_FILE", bench.path(file)).output().unwrap())
    };
    with_roots("ca.pem", &[]).expect(0);
    assert_eq!(with_roots("other.pem", &[]).expect(2).word(), "not_trusted");
    // A CA of one's own counts in their place, not beside them.
    with_roots("other.pem", &TRUSTING).expect(0);
    assert_eq!(with_roots("ca.pem", &["--ca-file", "other.pem"]).expect(2).word(), "not_trusted");
    for (root, more) in [("anew.pem", &[][..]), ("ca.pem", &["--ca-file", "anew.pem"])] {
        let ran = with_roots(root, more).expect(2);
        assert!(ran.stderr.contains("nobody who is trusted here signed"), "{}", ran.stderr);
    }
    bench.write("empty.pem", b"", 0o644);
    assert_eq!(with_roots("empty.pem", &[]).expect(2).word(), "no_roots");
}

#[test]
fn a_certificate_that_does_not_hold_stops_every_verb_before_anything_is_sent() {
    let bench = Bench::new();
    let own = trusted(&bench);
    let other = authority(&bench, "other.pem");
    let past = (2000, 2001);
    let refused = [
        (&other, &NAMES[..], VALID, "nobody who is trusted here signed", "--ca-file"),
        (&own, &["node.example.com"], VALID, "is for another name", "--url"),
        (&own, &NAMES, past, "has expired", "--tls-cert"),
        (&own, &NAMES, (3000, 4000), "is not valid yet", "--tls-cert"),
    ];
    for (by, names, years, why, next) in refused {
        certificate(&bench, by, names, years);
        let node = bench.node(&TLS);
        for verb in verbs() {
            let ran = bench.run(&[&verb[..], &["--url", node.url()], &TRUSTING].concat()).expect(2);
            assert_eq!(ran.word(), "not_trusted", "{verb:?}");
            assert!(ran.stderr.contains(why) && ran.stderr.contains(next), "{}", ran.stderr);
            assert!(ran.stderr.contains("safe: nothing was sent"), "{}", ran.stderr);
        }
        assert_eq!(node.stop().0, Some(0));
    }
    let listed = bench.run(&["ps", "--json", "--data-dir", "data", "--key-file", "key"]).expect(0).json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 0);
}

/// What `openssl req -x509` makes is a CA: it is refused with what to do about it. The same without that holds.
#[test]
fn a_self_signed_certificate_is_its_own_root_unless_it_is_a_cas() {
    let bench = Bench::new();
    for is_ca in [true, false] {
        let mut params = CertificateParams::new(NAMES.map(str::to_owned)).unwrap();
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        bench.write("cert.pem", made.pem().as_bytes(), 0o644);
        bench.write("key.pem", key.serialize_pem().as_bytes(), 0o600);
        let node = bench.node(&TLS);
        let asked = bench.run(&["ps", "--url", node.url(), "--ca-file", "cert.pem"]);
        if is_ca {
            let ran = asked.expect(2);
            assert_eq!(ran.word(), "not_trusted");
            assert!(ran.stderr.contains("that of a CA") && ran.stderr.contains("CA:FALSE"), "{}", ran.stderr);
        } else {
            asked.expect(0);
        }
        assert_eq!(node.stop().0, Some(0));
    }
}

#[test]
fn a_stream_is_not_taken_up_again_at_somebody_else() {
    let bench = Bench::new();
    trusted(&bench);
    let node = bench.node(&TLS);
    let url = node.url().to_owned();
    let place = [&["--url", &url], &TRUSTING[..]].concat();
    let id = stalled(&bench, &place);
    let following = bench.saying_hello(&[&["tail", "-f", &id], &place[..]].concat());
    node.kill();
    certificate(&bench, &authority(&bench, "other.pem"), &NAMES, VALID);
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen"];
    let listen = [url.strip_prefix("https://").unwrap()];
    let node = Node::start(bench.command(&[&serve, &listen[..], &TLS].concat()));
    let ran = Ran::from(following.wait_with_output().unwrap()).expect(2);
    assert_eq!(ran.word(), "not_trusted");
    assert!(ran.stderr.contains("what was shown is durable"), "{}", ran.stderr);
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn http_and_https_are_told_apart() {
    let bench = Bench::new();
    trusted(&bench);
    let plain = bench.node(&[]);
    let url = plain.url().replace("http://", "https://");
    for verb in verbs() {
        let ran = bench.run(&[&verb[..], &["--url", &url], &TRUSTING].concat()).expect(2);
        assert_eq!(ran.word(), "no_tls", "{verb:?}");
    }
    assert_eq!(plain.stop().0, Some(0));
    let node = bench.node(&TLS);
    let url = node.url().replace("https://", "http://");
    // Whoever speaks TLS has read nothing: no outcome is unknown, and the same command fails again.
    for verb in verbs() {
        let ran = bench.run(&[&verb[..], &["--url", &url]].concat()).expect(2);
        assert_eq!(ran.word(), "needs_tls", "{verb:?}");
        assert!(ran.stderr.contains("safe: nothing was done"), "{}", ran.stderr);
        assert!(ran.stderr.contains("next: give the address as the node's first line"), "{}", ran.stderr);
    }
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn a_token_goes_over_tls_and_a_socket_but_never_to_another_machine_in_the_clear() {
    let bench = Bench::new();
    trusted(&bench);
    let made = bench.run(&["token", "new", "--scope", "read", "--file", "tokens"]).expect(0).stdout;
    bench.write("mine", made.as_bytes(), 0o600);
    let mine = ["--token-file", "mine"];
    let node = bench.node(&[&["--token-file", "tokens"], &TLS[..]].concat());
    let place = [&["ps", "--url", node.url()], &TRUSTING[..]].concat();
    assert_eq!(bench.run(&place).expect(2).word(), "not_allowed");
    bench.run(&[&place[..], &mine].concat()).expect(0);
    assert_eq!(node.stop().0, Some(0));
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", "unix:node.sock"];
    let node = Node::start(bench.command(&[&serve[..], &["--token-file", "tokens"]].concat()));
    bench.run(&["ps", "--url", "unix:node.sock", "--token-file", "mine"]).expect(0);
    assert_eq!(node.stop().0, Some(0));

    // An address that is nobody's: had anything been tried, the answer would be that nobody is there.
    for url in ["http://192.0.2.1:4320", "http://[2001:db8::1]", "http://node.example.com"] {
        for verb in verbs() {
            let ran = bench.run(&[&verb[..], &["--url", url], &mine].concat()).expect(2);
            assert_eq!(ran.word(), "token_in_the_clear", "{verb:?} {url}");
            assert!(ran.stderr.contains("next: ask the node over https"), "{}", ran.stderr);
            assert!(!ran.stderr.contains(made.trim_end()), "{}", ran.stderr);
        }
    }
    let mut named = bench.command(&["ps", "--url", "http://192.0.2.1:4320"]);
    let ran = Ran::from(named.env("SEALOG_TOKEN_FILE", bench.path("mine")).output().unwrap()).expect(2);
    assert_eq!(ran.word(), "token_in_the_clear");
}

#[test]
fn an_address_and_a_file_of_a_ca_are_judged_before_anybody_is_asked() {
    let bench = Bench::new();
    trusted(&bench);
    bench.write("none.pem", b"no certificate", 0o644);
    let word = |url: &str, more: &[&str]| {
        let ran = bench.run(&[&["ps", "--url", url], more].concat()).expect(2);
        ran.word().to_owned()
    };
    let ca = |file: &'static str| ["--ca-file", file];
    for file in ["absent.pem", "none.pem", "key.pem", "."] {
        assert_eq!(word("https://127.0.0.1:1", &ca(file)), "bad_ca_file", "{file}");
    }
    for url in ["http://127.0.0.1:1", "unix:node.sock"] {
        assert_eq!(word(url, &TRUSTING), "bad_ca_file", "{url}");
    }
    for url in ["ftp://a", "unix:", "https://", "https://u:p@a", "127.0.0.1:4320"] {
        assert_eq!(word(url, &[]), "bad_url", "{url}");
    }
    assert_eq!(
        bench.run(&["ps", "--url", "https://127.0.0.1:1", "--ca-file", "ca.pem"]).expect(75).word(),
        "no_node"
    );
    let both = ["ps", "--data-dir", "data", "--ca-file", "ca.pem"];
    bench.run(&both).expect(2);
}
