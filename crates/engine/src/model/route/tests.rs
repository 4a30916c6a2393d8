use sealog_execution::Modality;
use sealog_execution::manifest::PROTOCOL_VERSION;

use super::*;

fn model(name: &str, change: impl FnOnce(&mut ModelManifest)) -> ModelManifest {
    let mut model = ModelManifest {
        model: name.to_owned(),
        abilities: vec!["chat".to_owned()],
        input_modalities: vec![Modality::Text, Modality::Json],
        output_modalities: vec![Modality::Text],
        stream: true,
        tools: false,
        structured_output: false,
        asynchronous: false,
        cancel: false,
    };
    change(&mut model);
    model
}

fn provider(name: &str, models: Vec<ModelManifest>) -> ProviderManifest {
    ProviderManifest {
        provider: name.to_owned(),
        protocol_version: PROTOCOL_VERSION.to_owned(),
        models,
        limits: None,
    }
}

fn request(members: &str) -> ExecutionRequest {
    let input = if members.contains("\"input\"") { "" } else { r#","input":[{"type":"text","text":"t"}]"# };
    let comma = if members.is_empty() { "" } else { "," };
    let body = format!(r#"{{"ability":"chat"{input}{comma}{members}}}"#);
    ExecutionRequest::parse(body.as_bytes()).unwrap().request
}

#[track_caller]
fn check(members: &str, manifests: &[ProviderManifest], expected: &[&str]) {
    let found: Vec<String> = candidates(&request(members), manifests)
        .iter()
        .map(|target| format!("{}/{}", target.provider, target.model))
        .collect();
    assert_eq!(found, expected, "{members}");
}

/// RM-5, RM-6.
#[test]
fn order_is_registration_then_manifest_unless_ranked() {
    let manifests = [
        provider("a", vec![model("1", |_| {}), model("2", |_| {})]),
        provider("b", vec![model("1", |_| {})]),
        provider("c", vec![model("1", |_| {})]),
    ];
    check("", &manifests, &["a/1", "a/2", "b/1", "c/1"]);
    check(r#""routing":{"provider_order":["c"]}"#, &manifests, &["c/1", "a/1", "a/2", "b/1"]);
    check(r#""routing":{"provider_order":["c","x","b"]}"#, &manifests, &["c/1", "b/1", "a/1", "a/2"]);
    check(r#""routing":{"strategy":"ordered"}"#, &manifests, &["a/1", "a/2", "b/1", "c/1"]);
}

#[test]
fn abilities_match_exactly() {
    let manifests = [
        provider(
            "a",
            vec![model("1", |model| model.abilities = vec!["Chat".to_owned(), "chat ".to_owned()])],
        ),
        provider("b", vec![model("1", |model| model.abilities.clear())]),
    ];
    check("", &manifests, &[]);
    check("", &[], &[]);
}

/// RM-5.
#[test]
fn facts_27_input_parts_count_whether_or_not_they_are_required() {
    let manifests = [
        provider("text", vec![model("1", |_| {})]),
        provider("image", vec![model("1", |model| model.input_modalities.push(Modality::Image))]),
    ];
    let image = r#""input":[{"type":"text","text":"t"},{"type":"image","uri":"u"}]"#;
    check(image, &manifests, &["image/1"]);
    check(&format!(r#"{image},"requirements":{{"input_modalities":["text"]}}"#), &manifests, &["image/1"]);
    check(image, &manifests[..1], &[]);
    check(r#""requirements":{"input_modalities":["image"]}"#, &manifests, &["image/1"]);
    check(r#""requirements":{"output_modalities":["text"]}"#, &manifests, &["text/1", "image/1"]);
    check(r#""requirements":{"output_modalities":["text","json"]}"#, &manifests, &[]);
}

/// RM-5.
#[test]
fn only_true_booleans_constrain() {
    let all = |model: &mut ModelManifest| {
        (model.stream, model.tools, model.structured_output) = (true, true, true);
        (model.asynchronous, model.cancel) = (true, true);
    };
    let none = |model: &mut ModelManifest| model.stream = false;
    let manifests = [provider("none", vec![model("1", none)]), provider("all", vec![model("1", all)])];
    for member in ["stream", "tools", "structured_output", "async", "cancel"] {
        check(&format!(r#""requirements":{{"{member}":true}}"#), &manifests, &["all/1"]);
        check(&format!(r#""requirements":{{"{member}":false}}"#), &manifests, &["none/1", "all/1"]);
    }
}

#[test]
fn a_request_for_one_target_has_no_other_candidate() {
    let models = || vec![model("1", |_| {}), model("2", |_| {})];
    let manifests = [provider("a", models()), provider("b", models())];
    let mut request = request(r#""routing":{"provider_order":["a"]}"#);
    let target =
        |provider: &str, model: &str| Target { provider: provider.to_owned(), model: model.to_owned() };
    request.only = Some(target("b", "2"));
    assert_eq!(candidates(&request, &manifests), [target("b", "2")]);
    request.only = Some(target("b", "3"));
    assert_eq!(candidates(&request, &manifests), []);
}

#[test]
fn tools_in_a_conversation_need_a_model_that_was_declared_to_have_them() {
    let manifests = [
        provider("plain", vec![model("1", |_| {})]),
        provider("tools", vec![model("1", |model| model.tools = true)]),
    ];
    let tools = r#""extensions":{"conversation":{"messages":[{"role":"user","parts":[{"type":"text","text":"t"}]}],
        "tools":[{"name":"f","parameters":{"type":"object"}}]}}"#;
    check(tools, &manifests, &["tools/1"]);
    // No requirement, and none that says otherwise, enables what the configuration did not.
    check(&format!(r#"{tools},"requirements":{{"tools":false}}"#), &manifests[..1], &[]);
}

#[test]
fn a_recheck_asks_for_the_same_model() {
    let manifest = provider("a", vec![model("1", |model| model.tools = true), model("2", |_| {})]);
    let request = request(r#""requirements":{"tools":true}"#);
    assert!(recheck(&request, "1", &manifest).is_ok());
    assert!(recheck(&request, "2", &manifest).is_err());
    assert!(recheck(&request, "3", &manifest).is_err());
}

#[test]
fn one_target_alone_if_it_is_named_and_can_do_it() {
    let manifests = [
        provider("a", vec![model("1", |_| {}), model("2", |_| {})]),
        provider("b", vec![model("2", |model| model.abilities.clear())]),
    ];
    let found = |provider: &str, model: &str| {
        let only = Target { provider: provider.to_owned(), model: model.to_owned() };
        let mut request = request("");
        request.only = Some(only.clone());
        let found = candidates(&request, &manifests);
        assert!(found.iter().all(|target| *target == only));
        found.len()
    };
    assert_eq!((found("a", "2"), found("a", "3"), found("b", "2")), (1, 0, 0));
}

/// RM-5: nobody has to guess which of the things that were asked for is not there.
#[test]
fn what_no_model_has_is_said() {
    let manifests = [
        provider("a", vec![model("1", |model| model.tools = true)]),
        provider("b", vec![model("2", |model| model.input_modalities.push(Modality::Image))]),
    ];
    let check = |members: &str, manifests: &[ProviderManifest], words: &str| {
        let request = request(members);
        assert_eq!(candidates(&request, manifests), [], "{members}");
        let message = unavailable(&request, manifests).message;
        assert!(message.starts_with("No provider ") && message.ends_with(words), "{members}: {message}");
    };
    let image = r#""input":[{"type":"image","uri":"u"}]"#;
    let audio = r#""input":[{"type":"audio","uri":"u"}]"#;
    check("", &[], "has the requested ability");
    check(audio, &manifests, "takes this kind of input");
    check(r#""requirements":{"input_modalities":["video"]}"#, &manifests, "takes this kind of input");
    check(r#""requirements":{"output_modalities":["image"]}"#, &manifests, "gives this kind of output");
    check(r#""requirements":{"tools":true}"#, &manifests[1..], "takes tools");
    check(r#""requirements":{"structured_output":true}"#, &manifests, "has structured output");
    check(r#""requirements":{"async":true}"#, &manifests, "is asynchronous");
    check(r#""requirements":{"cancel":true}"#, &manifests, "can be cancelled");
    // Each is there, but not with the same model.
    check(
        &format!(r#"{image},"requirements":{{"tools":true}}"#),
        &manifests,
        "has all of the requested capabilities",
    );
}
