//! A panic of the real node: it says where and never what, and the node goes on.

use crashbox::http::{Client, Request};
use sealog_tests::canary::{MARKER, find, secret};
use sealog_tests::workbench::{Workbench, accepted, events, get, mock};
use serde_json::json;

use crate::strace::Failing;

#[test]
fn a_panic_says_where_and_not_what() {
    let mut bench = Workbench::new();
    bench.home.environment.push(("SEALOG_LOG".to_owned(), "trace".to_owned()));
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let id = accepted(&mut client, &mock(&secret("prompt"), &json!({})), Some(&secret("key")));
    let known = events(&mut client, &id);
    drop(client);
    node.kill().unwrap();

    // What ended in an earlier life is read on a thread of its own. One is always there; a second one is not to be had, and
    // several ask at once. (A refusal that looks temporary would be waited out.)
    let node = bench.start();
    let failing = Failing::attach(&node, "clone3,clone", "EPERM");
    let path = format!("/v1/executions/{id}");
    let clients: Vec<_> = (0..8).map(|_| Workbench::client(&node)).collect();
    let replies: Vec<_> = std::thread::scope(|scope| {
        let ask = |mut client: Client| {
            let request = Request::get(&path);
            move || (0..200).map(|_| client.ask(&request).unwrap()).find(|reply| reply.status != 200)
        };
        let asking: Vec<_> = clients.into_iter().map(|client| scope.spawn(ask(client))).collect();
        asking.into_iter().filter_map(|asked| asked.join().unwrap()).collect()
    });
    let reply = replies.first().expect("no panic was met");
    assert_eq!(reply.status, 500, "{}", reply.text());
    let mut client = Workbench::client(&node);
    assert_eq!(
        find(&reply.body, &[MARKER.into(), b"panick".to_vec(), b".rs".to_vec()]),
        None,
        "{}",
        reply.text()
    );
    drop(failing);

    let log = bench.log();
    assert!(log.contains("a bug at "), "no panic was met: {log}");
    // The panic's own words, and the secrets that were in reach.
    assert_eq!(find(log.as_bytes(), &[MARKER.into(), b"OS can't spawn".to_vec()]), None, "{log}");
    assert_eq!(get(&mut client, "/v1/runtime").0, 200);
    assert_eq!(get(&mut client, &path).1["status"], "succeeded");
    assert_eq!(events(&mut client, &id), known);
}
