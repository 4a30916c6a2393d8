//! Samples that break each rule of the floors, beside samples that keep them.

use serde_json::json;

use super::*;
use crate::workspace::TextFile;

/// A workspace with one package, made as cargo would describe it.
fn graph(name: &str, dependencies: &[(&str, Option<&str>)]) -> Graph {
    let named: Vec<Value> =
        dependencies.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect();
    let deps: Vec<Value> = dependencies
        .iter()
        .map(|(name, kind)| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] }))
        .collect();
    let others = dependencies.iter().map(|(name, _)| json!({ "id": name, "name": name, "dependencies": [] }));
    let mut packages = vec![json!({ "id": "me", "name": name, "dependencies": named })];
    packages.extend(others);
    let metadata = json!({
        "workspace_members": ["me"],
        "packages": packages,
        "resolve": { "nodes": [{ "id": "me", "deps": deps }] },
    });
    Graph::read(&metadata).unwrap()
}

#[track_caller]
fn check(name: &str, dependencies: &[(&str, Option<&str>)], expected: &[&str]) {
    let graph = graph(name, dependencies);
    let mut findings = arrows(&graph.packages);
    findings.extend(purity::dependencies(&graph));
    assert_eq!(findings.len(), expected.len(), "{findings:?}");
    for (finding, expected) in findings.iter().zip(expected) {
        assert!(finding.contains(expected), "{finding}");
    }
}

#[test]
fn downward_arrows_are_fine() {
    check("sealog-journal", &[("sealog-disk", None), ("sealog-seal", None), ("thiserror", None)], &[]);
    check("sealog", &[("sealog-http", None), ("sealog-client", None)], &[]);
    check("sealog-upstream", &[("sealog-execution", None)], &[]);
}

#[test]
fn upward_arrows_are_named() {
    check("sealog-journal", &[("sealog-engine", None)], &["upward from floor 2 to floor 4"]);
    check("sealog-execution", &[("sealog-upstream", None)], &["upward from floor 3 to floor 3.5"]);
    check("sealog-disk", &[("sealog-journal", Some("dev"))], &["as a dev-dependency: upward"]);
}

#[test]
fn sideways_arrows_are_named() {
    check("sealog-http", &[("sealog-client", None)], &["sideways on floor 5"]);
    check("sealog-seal", &[("sealog-events", None)], &["sideways on floor 0"]);
    check("sealog-engine", &[("sealog-providers-mock", Some("dev"))], &["sideways on floor 4"]);
}

#[test]
fn a_crate_may_switch_on_its_own_testing_feature() {
    check("sealog-disk", &[("sealog-disk", Some("dev"))], &[]);
}

#[test]
fn the_testkit_is_no_part_of_the_product_and_stays_below_the_binary() {
    check("sealog-journal", &[("sealog-testkit", Some("dev"))], &["no product crate names the testkit"]);
    check("sealog-testkit", &[("sealog-http", None)], &[]);
    check("sealog-testkit", &[("sealog", None)], &["the testkit reaches floor 5"]);
    check("sealog-tests", &[("sealog-testkit", Some("dev"))], &[]);
}

#[test]
fn nobody_names_a_tool() {
    check("sealog", &[("crashbox", Some("build"))], &["nobody names a tool"]);
    check("sealog-testkit", &[("crashbox", None)], &["nobody names a tool"]);
    check("sealog-tests", &[("crashbox", None), ("xtask", None)], &["sealog-tests names xtask"]);
    check("sealog-benches", &[("xtask", None)], &["nobody names a tool"]);
}

#[test]
fn a_package_without_a_floor_is_a_finding() {
    check("sealog-new", &[], &["sealog-new has no floor"]);
}

#[test]
fn floor_0_is_built_from_its_list_only() {
    check("sealog-seal", &[("argon2", None), ("proptest", Some("dev"))], &[]);
    check("sealog-seal", &[("regex", None)], &["names regex, which is not on the list"]);
    check("sealog-seal", &[("proptest", None)], &["names proptest"]);
    check("sealog-seal", &[("getrandom", None)], &["names getrandom", "built with getrandom"]);
}

#[test]
fn the_host_is_found_below_an_allowed_dependency_but_not_behind_a_dev_one() {
    let mut graph = graph("sealog-seal", &[("argon2", None), ("proptest", Some("dev"))]);
    graph.edges.insert("argon2".into(), vec!["rand".into()]);
    graph.edges.insert("proptest".into(), vec!["getrandom".into()]);
    graph.names.insert("rand".into(), "rand".into());
    graph.names.insert("getrandom".into(), "getrandom".into());
    assert_eq!(purity::dependencies(&graph), ["sealog-seal is built with rand, which reaches the host"]);
}

#[test]
fn uses_of_the_host_in_floor_0_are_found_outside_tests_and_comments() {
    let text =
        "//! Never calls std::fs.\nfn f() { std::fs::read(p); }\n#[cfg(test)]\nmod tests { use std::env; }\n";
    let file = TextFile { path: "crates/seal/src/key.rs".into(), text: text.into() };
    let elsewhere = TextFile { path: "crates/disk/src/real.rs".into(), ..file.clone() };
    assert_eq!(
        purity::sources(&[file, elsewhere]),
        ["crates/seal/src/key.rs:2 uses std::fs; floor 0 has no host"]
    );
}
