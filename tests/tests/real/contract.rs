//! The generated contract before tools that nobody here wrote: a linter reads the OpenAPI document, and schemathesis
//! tries everything that the document promises on a running node.
//!
//! Owns what is excluded and why. The tools are pinned in `.ci/contract` and installed below the target directory.
#![expect(clippy::disallowed_methods, reason = "installs tools from outside")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sealog_tests::workbench::Workbench;

const PINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.ci/contract");
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/openapi.yaml");

/// Rules of the linter that do not fit, each with its reason.
const LINT_EXCLUDED: &[&str] = &[
    // A node on this machine is what the document describes.
    "no-server-example.com",
    // `Joined` is one of the things that `result` may be, which may be anything.
    "no-unused-components",
];

/// What of schemathesis does not fit, each with its reason; everything else is on. The tool reads it from its directory.
const CONFIG: &str = r#"
[checks]
# Asks for 405 with `Allow` where a method is not known; PA-1: it is 404 like every other unknown route.
unsupported_method.enabled = false
# Tokens are off on this node, so that none and a wrong one are as good as the right one.
ignored_auth.enabled = false
# Takes an execution that has ended for one that is gone: there is nothing to cancel then (PA-21).
ensure_resource_availability.enabled = false

# A key that was used with another request is 400 (PA-14), and no schema says which keys were used.
[[operations]]
include-name = "POST /v1/executions"
checks.positive_data_acceptance.enabled = false

# `after` wins over `Last-Event-ID` (PA-26), which is not read then, so that nothing is wrong with a broken one.
[[operations]]
include-name = "GET /v1/executions/{id}/events"
checks.negative_data_rejection.enabled = false

# A model that nobody has is 404 in these (docs/dialects.md), and the schema of somebody else's request is not written
# down here: any object is a request to it.
[[operations]]
include-path-regex = "^/v1/(chat/completions|responses|messages)$"
checks.positive_data_acceptance.enabled = false
checks.negative_data_rejection.enabled = false
"#;

/// Runs to its end and hands back what it said.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{said}");
    said
}

/// The folder of a tool, installed unless its pins are those of the last installation.
fn installed(name: &str, pins: &[&str], install: impl Fn(&Path)) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let dir = test.ancestors().nth(3).unwrap().join("ci-tools").join(name);
    let wanted: String =
        pins.iter().map(|pin| fs::read_to_string(format!("{PINS}/{pin}")).unwrap()).collect();
    let marker = dir.join("installed");
    if fs::read_to_string(&marker).unwrap_or_default() != wanted {
        // Half an installation is none.
        let _absent = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        for pin in pins {
            fs::copy(format!("{PINS}/{pin}"), dir.join(pin)).unwrap();
        }
        install(&dir);
        fs::write(&marker, wanted).unwrap();
    }
    dir
}

#[test]
fn a_linter_finds_nothing_in_the_document() {
    let tool = installed("redocly", &["package.json", "package-lock.json"], |dir| {
        run(Command::new("npm").current_dir(dir).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]));
    });
    let mut lint = Command::new(tool.join("node_modules/.bin/redocly"));
    lint.current_dir(&tool).env("REDOCLY_TELEMETRY", "off").args([
        "lint",
        DOCUMENT,
        "--max-problems",
        "1000",
    ]);
    for rule in LINT_EXCLUDED {
        lint.args(["--skip-rule", rule]);
    }
    let said = run(&mut lint);
    assert!(said.contains("Your API description is valid"), "{said}");
    // It counts its warnings in a sentence of its own.
    assert!(!said.contains("You have"), "{said}");
}

#[test]
fn schemathesis_finds_nothing_on_a_running_node() {
    let tool = installed("schemathesis", &["schemathesis.txt"], |dir| {
        run(Command::new("python3").args(["-m", "venv"]).arg(dir.join("venv")));
        let mut pip = Command::new(dir.join("venv/bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--require-hashes", "-r"]);
        run(pip.arg(dir.join("schemathesis.txt")));
    });
    let workbench = Workbench::new();
    let node = workbench.start();
    fs::write(workbench.dir().join("schemathesis.toml"), CONFIG).unwrap();
    let mut tests = Command::new(tool.join("venv/bin/schemathesis"));
    tests.current_dir(workbench.dir()).args([
        "run",
        DOCUMENT,
        "--url",
        &format!("http://{}", node.address()),
    ]);
    // The same cases each time: what it finds stays found.
    tests.args(["--seed", "1", "--max-examples", "60", "--continue-on-failure"]);
    let said = run(&mut tests);
    // It warns that it found no way to some resources; what it did try all passed, and it tried every operation.
    assert!(said.contains(" passed\n") && !said.contains("FAILURES"), "{said}");
    let count = |name: &str| {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap_or_default();
        line.trim().split('/').next().and_then(|count| count.parse::<u32>().ok())
    };
    assert!(count("Selected:").is_some_and(|count| count > 10), "{said}");
    assert_eq!(count("Tested:"), count("Selected:"), "{said}");
    let reply = Workbench::client(&node).ask(&crashbox::http::Request::get("/v1/runtime")).unwrap();
    assert_eq!(reply.status, 200, "the node is as ready as before");
}
