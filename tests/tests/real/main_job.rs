//! The main job on real input: a prompt through the HTTP API of a running node to a real model and back, then the
//! same bytes out of the journal.
#![expect(clippy::disallowed_methods, reason = "prepares a node's configuration from outside")]

use std::fs;

use crashbox::frame;
use sealog_tests::workbench::{Workbench, accepted, events, get};
use serde_json::json;

use crate::local_model::LocalModel;

#[test]
fn a_real_prompt_streams_to_its_end_and_result_usage_and_replay_agree() {
    let model = LocalModel::start();
    let workbench = Workbench::new();
    let config = workbench.home.config.as_ref().unwrap();
    fs::write(config, model.configuration().to_string()).unwrap();
    let node = workbench.start();
    let mut client = Workbench::client(&node);

    let prompt = json!({
        "ability": "text-generation",
        "input": [{"type": "text", "text": "Write one sentence about the sea."}],
        "extensions": {"openai_chat": {"request": {"max_tokens": 32, "temperature": 0, "seed": 7}}},
    });
    let id = accepted(&mut client, &prompt, Some("sea"));
    let live = events(&mut client, &id);

    let frames = frame::cut(live.as_bytes()).unwrap();
    let told: Vec<_> = frames.iter().map(|frame| frame.event()).collect();
    assert_eq!(told.first().unwrap()["type"], "execution.accepted");
    assert_eq!(told.last().unwrap()["type"], "execution.completed", "{live}");
    let text: String = told.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert!(!text.trim().is_empty());
    let usage = told.iter().find(|event| event["type"] == "usage.reported").unwrap();

    let (status, result) = get(&mut client, &format!("/v1/executions/{id}/result"));
    assert_eq!(status, 200);
    assert_eq!(result["result"]["outputs"][0]["text"], text.as_str());
    assert_eq!(result["usage"], usage["facts"]);
    let (_, snapshot) = get(&mut client, &format!("/v1/executions/{id}"));
    assert_eq!(snapshot["result"], result["result"]);
    assert_eq!(snapshot["last_sequence"], told.last().unwrap()["sequence"]);

    assert!(events(&mut client, &id) == live, "a second reader gets other bytes");
    node.kill().unwrap();
    let offline = workbench.home.journal("replay").arg(&id).args(["--format", "sse"]).output().unwrap();
    assert!(offline.status.success(), "{}", String::from_utf8_lossy(&offline.stderr));
    assert!(offline.stdout == live.as_bytes(), "the offline replay gives other bytes");
}
