use sealog_engine::store::StoreLimits;
use sealog_execution::Modality::{File, Image, Json, Text};

use super::*;

const SECRET: &str = "sk-hunter2";

#[track_caller]
fn providers(text: &str) -> Vec<String> {
    let config = parse(text).unwrap();
    config.providers.providers().iter().map(|provider| provider.id().to_owned()).collect()
}

/// Line and key of the refusal, and that no value is in it.
#[track_caller]
pub(super) fn refused(text: &str, line: usize, key: &str, why: &str) {
    let refused = parse(text).unwrap_err();
    let found = refused.at.map(|at| text[..at].matches('\n').count() + 1);
    assert_eq!(found, Some(line), "{refused:?}");
    assert_eq!(refused.key.as_deref(), (!key.is_empty()).then_some(key));
    assert!(refused.why.contains(why), "{refused:?}");
    assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
}

#[test]
fn without_providers_the_mock_answers() {
    for text in ["", "max_active_executions = 3"] {
        assert_eq!(providers(text), ["provider-mock"]);
        assert!(parse(text).unwrap().mock_only);
    }
    assert_eq!(parse("max_active_executions = 1_000").unwrap().max_active_executions, Some(1000));
}

#[test]
fn the_store_section_is_read_whole_and_in_part() {
    let text = "
[store]
max_executions = 1
max_bytes = 2
max_execution_bytes = 3
max_events = 4
retention_ms = 5
min_key_age_ms = 0
max_disk_bytes = 7
reader_stall_ms = 9007199254740991
boot_check_bytes = 0
";
    let store = parse(text).unwrap().store;
    let StoreConfig { limits, reader_stall_ms, boot_check_bytes } = store;
    let kept =
        [limits.max_executions as u64, limits.max_bytes, limits.max_execution_bytes, limits.max_events];
    assert_eq!(kept, [1, 2, 3, 4]);
    assert_eq!([limits.retention_ms, limits.min_key_age_ms], [5, 0]);
    assert_eq!([limits.max_disk_bytes, reader_stall_ms, boot_check_bytes], [7, (1 << 53) - 1, 0]);
    let full = parse("[store]\nboot_check_bytes = 'full'").unwrap().store;
    assert_eq!(full, StoreConfig { boot_check_bytes: u64::MAX, ..StoreConfig::default() });

    let default = parse("").unwrap().store;
    assert_eq!(default, StoreConfig::default());
    assert_eq!(default, NodeConfig::without_file().unwrap().store);
    let node = default.limits;
    assert_eq!([node.max_executions as u64, node.max_bytes], [100_000, 2 << 30]);
    assert_eq!([node.max_execution_bytes, node.max_events], [4_194_304, 4096]);
    assert_eq!([node.retention_ms, node.min_key_age_ms], [604_800_000, 600_000]);
    assert_eq!([default.limits.max_disk_bytes, default.reader_stall_ms], [4 << 30, 300_000]);
    assert_eq!(default.boot_check_bytes, 4 << 30);
    let part = parse("[store]\nmax_events = 10").unwrap().store;
    assert_eq!(part.limits, StoreLimits { max_events: 10, ..node });
}

#[test]
fn a_limit_that_would_be_lowered_is_refused() {
    let most = "[store]\nmax_execution_bytes = 4_194_304\n";
    assert_eq!(parse(most).unwrap().store.limits.max_execution_bytes, StoreLimits::EXECUTION_BYTES_MAX);
    for more in [4_194_305_u64, 8_388_608, (1 << 53) - 1] {
        let text = format!("[store]\nmax_events = 8\nmax_execution_bytes = {more}\n");
        refused(&text, 3, "store.max_execution_bytes", "an integer from 1 to 4194304");
    }
}

#[test]
fn the_whole_form_is_read() {
    let text = r#"
max_active_executions = 2

[[providers]]
type = "mock"
id = "a"
model = "m"
abilities = ["x", "y"]

[[providers]]
type = "openai-chat"
id = "b"
model = "m"
abilities = ["text-generation"]
base_url = "http://127.0.0.1:4330/v1"
api_key_env = "SOME_KEY"
max_tokens = 9

[providers.capabilities]
input_modalities = ["text", "image"]
output_modalities = ["text"]
tools = true
"#;
    assert_eq!(providers(text), ["a", "b"]);
    let manifest = parse(text).unwrap().providers.providers()[0].manifest().unwrap();
    assert_eq!(manifest.models[0].abilities, ["x", "y"]);
}

#[test]
fn unknown_members_are_refused_by_line_and_key() {
    refused("a = 1", 1, "a", UNSUPPORTED);
    refused("\n[event_store]\ntype = 'file'", 2, "event_store", UNSUPPORTED);
    refused("[store]\ndirectory = 'x'", 2, "store.directory", UNSUPPORTED);
    refused(&format!("[store]\n'{SECRET} x' = 1"), 2, "a key that is not printed", UNSUPPORTED);
    refused("[[providers]]\ntype = 'mock'\nbase_url = 'x'", 3, "providers.base_url", UNSUPPORTED);
    let chat = "[[providers]]\ntype = 'openai-chat'\nmodel = 'm'\nbase_url = 'https://h/v1'\n";
    refused(&format!("{chat}api_key = '{SECRET}'"), 5, "providers.api_key", UNSUPPORTED);
    refused(&format!("{chat}headers = {{ a = '{SECRET}' }}"), 5, "providers.headers", UNSUPPORTED);
    let inner = format!("{chat}[providers.capabilities]\nstream = true");
    refused(&inner, 6, "providers.capabilities.stream", UNSUPPORTED);
    refused(&format!("'{SECRET} x' = 1"), 1, "a key that is not printed", UNSUPPORTED);
}

#[test]
fn unsafe_addresses_are_refused() {
    for url in ["http://example.com/v1", "https://u:hunter2@h/v1", "ftp://h", "https://h/v1?k=hunter2"] {
        let text = format!("[[providers]]\ntype = 'openai-chat'\nmodel = 'm'\nbase_url = '{url}'");
        refused(&text, 4, "providers.base_url", UNSUPPORTED);
    }
}

#[test]
fn values_of_another_kind_are_refused_without_being_repeated() {
    refused("max_active_executions = 0", 1, "max_active_executions", "integer");
    refused(&format!("max_active_executions = '{SECRET}'"), 1, "max_active_executions", "integer");
    refused("store = 1", 1, "store", "table");
    for key in ["max_executions", "max_bytes", "max_execution_bytes", "max_events", "retention_ms"]
        .into_iter()
        .chain(["max_disk_bytes", "reader_stall_ms"])
    {
        for value in ["0", "-1", "1.5", "9007199254740992", "'hunter2'"] {
            refused(&format!("[store]\n{key} = {value}"), 2, &format!("store.{key}"), "integer from 1");
        }
    }
    refused("[store]\nmin_key_age_ms = -1", 2, "store.min_key_age_ms", "integer from 0");
    refused("providers = 1", 1, "providers", "list");
    refused("providers = []", 1, "providers", "at least one");
    refused("providers = [1]", 1, "providers", "table");
    refused("[[providers]]\nid = 'x'", 1, "providers.type", "one of mock, openai-chat");
    refused(&format!("[[providers]]\ntype = '{SECRET}'"), 2, "providers.type", "one of mock, openai-chat");
    for value in ["-1", "'whole'", "true"] {
        let text = format!("[store]\nboot_check_bytes = {value}");
        refused(&text, 2, "store.boot_check_bytes", "integer from 0 to 9007199254740991, or \"full\"");
    }
    refused("[[providers]]\ntype = 'mock'\nid = 3", 3, "providers.id", "text");
    refused("[[providers]]\ntype = 'mock'\nid = ''", 3, "providers.id", "1 to 256");
    refused("[[providers]]\ntype = 'mock'\nabilities = []", 3, "providers.abilities", "different names");
    refused("[[providers]]\ntype = 'mock'\nabilities = ['a', 1]", 3, "providers.abilities", "list of texts");
    refused("[[providers]]\ntype = 'openai-chat'\nbase_url = 'https://h'", 1, "providers.model", "must be");
    let chat = "[[providers]]\ntype = 'openai-chat'\nmodel = 'm'\nbase_url = 'https://h/v1'\n";
    refused(&format!("{chat}max_tokens = -1"), 5, "providers.max_tokens", "integer");
    refused(&format!("{chat}max_tokens = 0"), 5, "providers.max_tokens", "at least 1");
    refused(&format!("{chat}api_key_env = '{SECRET}'"), 5, "providers.api_key_env", "environment variable");
    refused(&format!("{chat}api_key_file = '{SECRET}'"), 5, "providers.api_key_file", "absolute");
    let two = "[[providers]]\ntype = 'mock'\n[[providers]]\ntype = 'mock'";
    refused(two, 3, "providers.id", "already registered");
}

/// What such a provider completes could not be written down, so every execution of it would end as failed.
#[test]
fn names_that_no_terminal_event_can_hold_are_refused() {
    let named =
        |id: &str, model: &str| format!("[[providers]]\ntype = 'mock'\nid = \"{id}\"\nmodel = \"{model}\"");
    let control = "\\u0001".repeat(256);
    refused(&named(&control, &control), 4, "providers.model", "too long for an event");
    refused(&named(&control[..64 * 6], &control), 4, "providers.model", "too long for an event");
    providers(&named("p", &control));
    providers(&named(&"p".repeat(256), &"\u{1f600}".repeat(256)));
    providers(&named(&"\\\"".repeat(256), &"m".repeat(256)));
    let type_line = "type = 'ollama'";
    let of_another = named(&control, &control).replace("type = 'mock'", type_line);
    refused(&of_another, 4, "providers.model", "too long for an event");
}

#[test]
fn what_is_not_toml_is_refused_by_its_line_alone() {
    refused(&format!("a = 1\nb = {SECRET}\n"), 2, "", "not valid TOML");
    refused("a = 1\na = 2\n", 2, "", "not valid TOML");
}

#[test]
fn types_of_the_common_form_have_their_default_ids_and_rules() {
    for (kind, id) in
        [("openai-responses", "openai"), ("anthropic-messages", "anthropic"), ("ollama", "ollama")]
    {
        let least = format!("[[providers]]\ntype = '{kind}'\nmodel = 'm'\napi_key_env = 'SOME_KEY'\n");
        assert_eq!(providers(&least), [id]);
        let full = "id = 'x'\nabilities = ['a']\nbase_url = 'http://127.0.0.1:1'\nmax_tokens = 5\n\
                    [providers.capabilities]\ninput_modalities = ['text', 'image']\n\
                    output_modalities = ['text']\ntools = true";
        assert_eq!(providers(&format!("{least}{full}")), ["x"]);
        refused(&format!("{least}api_key = '{SECRET}'"), 5, "providers.api_key", UNSUPPORTED);
        refused(&format!("{least}base_url = 'http://hunter2.example'"), 5, "providers.base_url", UNSUPPORTED);
        refused(&format!("{least}max_tokens = 0"), 5, "providers.max_tokens", "at least 1");
        refused(&format!("{least}max_tokens = 99999999999"), 5, "providers.max_tokens", "integer from 1");
        let audio = "[providers.capabilities]\ninput_modalities = ['audio']";
        refused(&format!("{least}{audio}"), 5, "providers.capabilities", "this type can take");
        let keyless = format!("[[providers]]\ntype = '{kind}'\nmodel = 'm'\n");
        if kind == "ollama" {
            assert_eq!(providers(&keyless), ["ollama"]);
        } else {
            refused(&keyless, 1, "providers.api_key_env", "must be there");
        }
        refused(&format!("[[providers]]\ntype = '{kind}'"), 1, "providers.model", "must be there");
    }
    let two = "[[providers]]\ntype = 'openai-responses'\nmodel = 'm'\napi_key_env = 'K1'\n";
    refused(&format!("{two}{two}"), 5, "providers.id", "already registered");
}

#[test]
fn a_queue_has_abilities_and_no_tokens() {
    let queue = "[[providers]]\ntype = 'fal-queue'\nmodel = 'a/b'\napi_key_env = 'SOME_KEY'\n";
    let full = format!("{queue}abilities = ['image-generation']\n");
    assert_eq!(providers(&full), ["fal"]);
    let lists = "[providers.capabilities]\ninput_modalities = ['image']\noutput_modalities = ['video']";
    assert_eq!(providers(&format!("{full}{lists}")), ["fal"]);
    refused(queue, 1, "providers.abilities", "different names");
    refused(&format!("{full}max_tokens = 5"), 6, "providers.max_tokens", UNSUPPORTED);
    let tools = "[providers.capabilities]\ntools = true";
    refused(&format!("{full}{tools}"), 7, "providers.capabilities.tools", UNSUPPORTED);
}

#[test]
fn the_mock_has_capabilities_like_every_type() {
    let mock = "[[providers]]\ntype = 'mock'\n[providers.capabilities]\n";
    let model = |text: &str| {
        let providers = parse(text).unwrap().providers;
        providers.providers()[0].manifest().unwrap().models.remove(0)
    };
    let bare = model("[[providers]]\ntype = 'mock'");
    assert_eq!((&bare.input_modalities[..], &bare.output_modalities[..]), (&[Text][..], &[Text][..]));
    assert!(!bare.tools);
    assert_eq!(model(mock), bare);
    let full =
        "input_modalities = ['text', 'image', 'file']\noutput_modalities = ['image', 'json']\ntools = true";
    let full = model(&format!("{mock}{full}"));
    assert_eq!(full.input_modalities, [Text, Image, File]);
    assert_eq!(full.output_modalities, [Image, Json]);
    assert!(full.tools);
    for (wrong, why) in [
        ("input_modalities = []", "input_modalities must be"),
        ("input_modalities = ['text', 'text']", "input_modalities must be"),
        ("output_modalities = ['hunter2']", "output_modalities must be"),
    ] {
        refused(&format!("{mock}{wrong}"), 3, "providers.capabilities", why);
    }
    refused(&format!("{mock}tools = 'hunter2'"), 4, "providers.capabilities.tools", "true or false");
    refused(&format!("{mock}stream = true"), 4, "providers.capabilities.stream", UNSUPPORTED);
}

#[test]
fn a_near_name_is_told() {
    refused("[[provider]]\ntype = 'mock'\n", 1, "provider", "is providers meant?");
    refused("[[providers]]\ntype = 'mock'\nability = ['a']\n", 3, "providers.ability", "is abilities meant?");
    let text = "[[providers]]\ntype = 'openai-chat'\nmodel = 'm'\n[providers.capabilities]\ntool = true\n";
    refused(text, 5, "providers.capabilities.tool", "is tools meant?");
    refused("[store]\nmax_disk_byte = 5\n", 2, "store.max_disk_byte", "is max_disk_bytes meant?");
    let far = parse("hunter2 = 1").unwrap_err();
    assert_eq!(far.why, UNSUPPORTED);
    // The members of the section and the list of names for it are one.
    for name in store::MEMBERS {
        assert!(parse(&format!("[store]\n{name} = 5")).is_ok(), "{name}");
    }
}

/// The interface page names every member that is taken, and the names here are those that are.
#[test]
fn every_member_is_documented() {
    let page = include_str!("../../../../docs/interface.md");
    let section =
        page.split("\n## Configuration file (TOML)\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = |begins: &str| -> String {
        section.lines().filter(|line| line.starts_with(&format!("| `{begins}"))).collect()
    };
    let all_of = |table: &str, members: &[&str]| {
        let rows = rows(table);
        for member in members {
            assert!(rows.contains(&format!("`{member}`")), "{table} {member}");
        }
    };
    all_of("max_active_executions", &["max_active_executions"]);
    all_of("[store]`", &store::MEMBERS);
    all_of("[http]`", &["hosts", "origins", "token_file"]);
    all_of("[tls]`", &["cert_file", "key_file"]);
    all_of("[[providers]]`", &["type", "max_concurrency", "max_queue_depth"]);
    let types = TYPES.trim_start_matches("one of ").split(", ");
    for kind in types {
        assert!(rows("[[providers]]` `type`").contains(&format!("`{kind}`")), "{kind}");
        let members = models::Type::of(kind).map_or(mock::MEMBERS, |known| known.members);
        for (member, kind_of) in members {
            assert!(section.contains(&format!("`{member}`")), "{kind} {member}");
            if let Kind::Table(inner) = kind_of {
                assert!(
                    inner.iter().all(|(name, _)| section.contains(&format!("`{name}`"))),
                    "{kind} {member}"
                );
            }
        }
    }
}

#[test]
fn facts_57_what_is_unsafe_or_contradicts_itself_is_refused() {
    let chat = "[[providers]]\ntype = 'openai-chat'\nmodel = 'm'\nbase_url = 'https://h/v1'\n";
    refused(&format!("{chat}api_key = '{SECRET}'\n"), 5, "providers.api_key", UNSUPPORTED);
    let remote = chat.replace("https://h", "http://hunter2.example.com");
    refused(&remote, 4, "providers.base_url", UNSUPPORTED);
    refused(&format!("[store]\nencryption_key = '{SECRET}'\n"), 2, "store.encryption_key", UNSUPPORTED);
    refused("server = 1\n", 1, "server", UNSUPPORTED);
    for limit in
        ["max_executions", "max_bytes", "max_execution_bytes", "max_events", "retention_ms", "max_disk_bytes"]
    {
        refused(&format!("[store]\n{limit} = 0\n"), 2, &format!("store.{limit}"), "an integer from 1");
    }
    refused("max_active_executions = 0\n", 1, "max_active_executions", "an integer from 1");
    // There is one store, and a flag says where it is: nothing here can contradict it.
    refused("[store]\ntype = 'memory'\ndirectory = 'd'\n", 3, "store.directory", UNSUPPORTED);
    refused("[store]\ndirectory = 'd'\n", 2, "store.directory", UNSUPPORTED);
}
