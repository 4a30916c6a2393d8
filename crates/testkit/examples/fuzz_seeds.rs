//! Writes first inputs for every fuzz target, from the vectors of `spec/` and from small programs:
//! `cargo run -p sealog-testkit --example fuzz_seeds -- fuzz/corpus`. Files that are there already stay.
#![expect(clippy::disallowed_methods, reason = "writes into the source tree, not into a journal")]

use std::fs;
use std::path::{Path, PathBuf};

use sealog_events::RecordKind;
use sealog_seal::testing::{SeededRandom, hex, test_bounds, test_params};
use sealog_seal::{KeyFile, Keyring, NewSlot, Secret, StoreId};

fn main() {
    let corpus = PathBuf::from(std::env::args().nth(1).expect("the folder of the corpora"));
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors");
    journal_vectors(&corpus, &spec.join("journal"));
    event_vectors(&corpus, &spec.join("events/v1"));
    folded_vector(&corpus, &spec.join("events/v1/folded.hex"));
    keys(&corpus);
    export_lines(&corpus);
    texts(&corpus);
    images(&corpus);
}

fn seed(corpus: &Path, target: &str, name: &str, bytes: &[u8]) {
    let folder = corpus.join(target);
    fs::create_dir_all(&folder).expect("the folder can be made");
    let path = folder.join(format!("seed-{name}"));
    if !path.exists() {
        fs::write(&path, bytes).expect("the seed can be written");
    }
}

/// Lines of `key: value`, a blank line, hexadecimal bytes with `00*3692` for a byte repeated.
fn journal_vectors(corpus: &Path, folder: &Path) {
    for entry in fs::read_dir(folder).expect("the vectors are part of the source tree") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a vector is text");
        let (fields, digits) = text.split_once("\n\n").unwrap_or((text.as_str(), ""));
        let field = |key: &str| {
            let line = fields.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")));
            line.unwrap_or_default().to_owned()
        };
        let bytes = vector_bytes(digits);
        // Long zeros cost room and teach nothing: the targets fill them in.
        let trimmed = &bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)];
        match field("what").as_str() {
            "store" => seed(corpus, "store", &name, &bytes),
            "head-slot" => seed(corpus, "head", &name, &trimmed[..trimmed.len().min(512)]),
            "end" => seed(corpus, "head", &name, &bytes),
            "segment-header" => seed(corpus, "segment_header", &name, &trimmed[..trimmed.len().min(404)]),
            "frame-header" => seed(corpus, "frame", &name, &bytes),
            "group" if bytes.len() < 4096 => {
                let records: u32 = field("records").parse().unwrap_or(1);
                let count = u16::try_from(records).unwrap_or(u16::MAX).to_le_bytes();
                seed(corpus, "group", &name, &[&[0], &count[..], &bytes[..]].concat());
            }
            "sources" if bytes.len() < 4096 => seed(corpus, "compacted", &name, &[&[0], &bytes[..]].concat()),
            "folded" if bytes.len() < 4096 => seed(corpus, "compacted", &name, &[&[1], &bytes[..]].concat()),
            "summary-header" => seed(corpus, "summary", &name, &[&[0], &bytes[..]].concat()),
            "summary-body" if bytes.len() < 4096 => {
                seed(corpus, "summary", &name, &[&[1], &bytes[..]].concat());
            }
            "manifest" if bytes.len() < 4096 => seed(corpus, "manifest", &name, &bytes),
            "name" => seed(corpus, "file_names", &name, &bytes),
            _ => {}
        }
    }
}

fn vector_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('*') {
            Some((byte, count)) => {
                let count = count.parse().expect("a count of bytes");
                bytes.extend(std::iter::repeat_n(hex(byte)[0], count));
            }
            None => bytes.extend(hex(word)),
        }
    }
    bytes
}

fn event_vectors(corpus: &Path, folder: &Path) {
    for (choice, kind) in RecordKind::ALL.iter().enumerate() {
        let path = folder.join(format!("{}-{}.hex", kind.number(), kind.as_str()));
        let text = fs::read_to_string(&path).expect("every kind has vectors");
        for (number, vector) in text.split("# value:").skip(1).enumerate() {
            let digits: String = vector.lines().skip(1).collect();
            let choice = u8::try_from(choice).expect("a handful of kinds");
            let name = format!("{}-{number}", kind.number());
            let bytes = hex(&digits);
            if bytes.len() < 4096 {
                seed(corpus, "record_body", &name, &[&[choice], &bytes[..]].concat());
            }
        }
        let events = fs::read_to_string(path.with_extension("jsonl")).unwrap_or_default();
        for (number, line) in events.lines().enumerate().filter(|(_, line)| line.len() < 4096) {
            seed(corpus, "json_text", &format!("{}-{number}", kind.number()), line.as_bytes());
            seed(corpus, "canonical_json", &format!("{}-{number}", kind.number()), line.as_bytes());
        }
    }
}

/// The vector of a folded execution.
fn folded_vector(corpus: &Path, file: &Path) {
    let text = fs::read_to_string(file).expect("the vectors are part of the source tree");
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    seed(corpus, "folded", "example", &hex(&digits));
}

fn keys(corpus: &Path) {
    let mut random = SeededRandom::new(7);
    let file = KeyFile::generate(StoreId([3; 16]), &mut random).expect("this randomness is always there");
    seed(corpus, "key_file", "written", file.encode().as_slice());
    seed(corpus, "key_file", "raw", &[7; 32]);
    seed(corpus, "key_file", "passphrase", b"correct horse\n");
    // Not the secrets of the target: it holds that only its own keyring opens.
    let (raw, phrase) = (Secret::raw([7; 32]), Secret::passphrase(b"words").expect("not empty"));
    let slots = [
        NewSlot { name: "key", secret: &raw, params: test_params() },
        NewSlot { name: "words", secret: &phrase, params: test_params() },
    ];
    let keyring = Keyring::create_within(StoreId([5; 16]), &slots, &mut random, test_bounds());
    let bytes = keyring.expect("two named slots make a keyring").encode();
    seed(corpus, "keyring", "written", &[&[0], &bytes[..]].concat());
    seed(corpus, "keyring", "untouched", &[1]);
    for (name, place) in [("magic", 0), ("generation", 32), ("slot", 70), ("wrap", 170), ("mac", 640)] {
        let place = u32::to_le_bytes(place);
        seed(corpus, "keyring", name, &[&[1], &place[..], &[1]].concat());
    }
}

fn texts(corpus: &Path) {
    let requests = [
        r#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}]}"#,
        r#"{"ability":"a","input":[{"type":"json","value":{"b":[1,2.50,null]}},{"type":"image","uri":"https://h/i.png","media_type":"image/png"}],
"requirements":{"input_modalities":["text","image"],"output_modalities":["json"],"stream":true,"tools":false,"structured_output":true,"async":false,"cancel":true},
"routing":{"strategy":"ordered","provider_order":["p","q"],"allow_fallback":true,"max_attempts":3,"retry_budget_ms":5e3},
"deadline_ms":60000,"metadata":{"k":"v","n":1.5,"b":true},"extensions":{"mock":{"chunks":2}}}"#,
    ];
    for (number, request) in requests.iter().enumerate() {
        seed(corpus, "request", &number.to_string(), request.as_bytes());
        seed(corpus, "canonical_json", &format!("request-{number}"), request.as_bytes());
        seed(corpus, "json_text", &format!("request-{number}"), request.as_bytes());
    }
    let pairs = [
        ("integers", "9007199254740993\x009007199254740992"),
        ("spellings", "[1.0,1e3,-0,0.10]\0[1,1000,0,1e-1]"),
        ("members", "{\"b\":1,\"a\":2}\0{\"a\":2,\"b\":1.0}"),
        ("utf16-order", "{\"\u{ff5e}\":1,\"\u{1f600}\":2}"),
        ("escapes", "\"\\u00e9\\ud83d\\ude00\\b\\/\"\0\"\u{e9}\u{1f600}\\u0008/\""),
        ("exponents", "0.1e-1000000000"),
        ("exponent-overflow", "1e9223372036854775807"),
        ("smallest", "[4.9e-324,1.7976931348623157e308,1e21,1e-7,123456789012345678901234567890]"),
    ];
    for (name, pair) in pairs {
        seed(corpus, "canonical_json", name, pair.as_bytes());
    }
    configurations(corpus);
    let urls = [
        "https://api.example.com/v1\nchat",
        "http://127.0.0.1:8080/\n../x",
        "http://[::1]/a/b/\nhttps://evil.example/x",
        "https://h\n//other/x",
        "http://localhost\nAPI_KEY_2",
    ];
    for (number, url) in urls.iter().enumerate() {
        seed(corpus, "base_url", &number.to_string(), url.as_bytes());
    }
    for cursor in
        ["", "7", " 5 ", "0x1F", "0b11", "0o17", "1e2", "5.0", "-0", "9007199254740991", "1.5", "%37", "+3"]
    {
        seed(
            corpus,
            "sse_cursor",
            &format!("{}", cursor.bytes().map(u32::from).sum::<u32>()),
            cursor.as_bytes(),
        );
    }
    seed(corpus, "sse_cursor", "query", b"before=1&after=%2B7&after=8");
    let streams: [&[u8]; 4] = [
        b"\x03\x01\x05\x02event: e\nid: 1\ndata: {\"a\":1}\ndata: b\n\n: note\n\ndata: [DONE]\n\n",
        b"\x02\x00\x07data: a\r\rdata:b\r\n\r\nretry: 5\n\ndata\n\n",
        b"\x01\x02\xef\xbb\xbfdata: \xc3\xa9\xf0\x9f\x98\x80\n\nda",
        b"\x00data: \xff\n\ndata: x\n\n",
    ];
    for (number, stream) in streams.iter().enumerate() {
        seed(corpus, "upstream_sse", &number.to_string(), stream);
    }
    for name in ["000000000001.seg", "1234567890123.idx", "000000000001-000000000003.000000000002.seg"] {
        seed(corpus, "file_names", name, name.as_bytes());
    }
    seed(corpus, "file_names", "tail", b"000000000001-000000000000.tail");
    seed(
        corpus,
        "group",
        "write",
        b"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x50\x01\x02\x03\x00\x02\x03abc\x01",
    );
}

/// Every member once, and a pasted secret where a value, a key or a name is refused.
fn configurations(corpus: &Path) {
    let whole = r#"max_active_executions = 1_000

[store]
max_executions = 1
max_bytes = 0x10
retention_ms = 5
boot_check_bytes = "full"

[[providers]]
type = "mock"
id = "a"
model = "m"
abilities = ["text-generation"]

[[providers]]
type = "openai-chat"
id = "b"
model = "gpt"
base_url = "https://api.example.com/v1"
api_key_env = "KEY"
max_tokens = 16
capabilities = { input_modalities = ["text"], output_modalities = ["text"], tools = true }
"#;
    let texts = [
        whole,
        "",
        "providers = []",
        "[[providers]]\ntype = \"s\u{20ac}cret!\"",
        "[[providers]]\ntype = \"mock\"\nid = \"s\u{20ac}cret!\"\n[[providers]]\ntype = \"mock\"\nid = \"s\u{20ac}cret!\"",
        "[[providers]]\ntype = \"ollama\"\nmodel = \"m\"\nbase_url = \"http://s\u{20ac}cret!@h/\"",
        "[[providers]]\ntype = \"fal-queue\"\nmodel = \"../s\u{20ac}cret!\"\napi_key_file = \"/nowhere\"",
        "[[providers]]\ntype = \"anthropic-messages\"\nmodel = \"m\"\napi_key_env = \"s\u{20ac}cret!\"",
        "[[providers]]\ntype = \"openai-responses\"\nmodel = \"m\"\nmax_tokens = -1",
        "[[providers]]\ntype = \"mock\"\nabilities = [\"s\u{20ac}cret!\", \"s\u{20ac}cret!\"]",
        "\"s\u{20ac}cret!\" = 1",
        "[store]\n\"s\u{20ac}cret!\" = 1",
        "[store]\nmax_bytes = \"s\u{20ac}cret!\"",
        "max_active_executions = 1979-05-27T07:32:00Z",
        "a = [[[[[[[[[[[[[[[[[[[[[[[[{b.c.d=1}]]]]]]]]]]]]]]]]]]]]]]]]",
    ];
    for (number, text) in texts.iter().enumerate() {
        seed(corpus, "config", &number.to_string(), text.as_bytes());
    }
}

/// An export with every kind of line, and each line alone.
fn export_lines(corpus: &Path) {
    use sealog_engine::store::journal::transfer::lines::{Counts, Line};
    use sealog_events::{
        Created, Event, EventBody, ExecutionId, Identity, MaterializedResult, Materializer, StopReason,
        Target, Timestamp,
    };
    use sealog_journal_format::EndRecord;
    use sealog_journal_format::journal_records::Restored;
    let id = ExecutionId::from_random([7; 16]);
    let created = Created {
        created_at: Timestamp(1_767_225_600_000),
        identity: Some(Identity { key_hash: [1; 32], fingerprint: [2; 32] }),
    };
    let target = Target { provider: "p".into(), model: "m".into() };
    let bodies = [
        EventBody::Accepted,
        EventBody::RouteSelected { target: target.clone(), attempt: 1 },
        EventBody::OutputDelta { output_index: 0, delta: "hi \u{e9}\"".into() },
        EventBody::Completed { target, stop_reason: Some(StopReason::Length) },
    ];
    let events: Vec<Event> = bodies
        .into_iter()
        .zip(1..)
        .map(|(body, sequence)| Event { sequence, time: Timestamp(1_767_225_600_001), body })
        .collect();
    let mut fold = Materializer::new(id, created.created_at);
    events.iter().for_each(|event| fold.push(event));
    let result = MaterializedResult::of(&fold.into_snapshot(), 1000).expect("the execution has ended");
    let mut lines = vec![
        Line::Header { store_id: [1; 16], created_ms: 1_767_225_600_000, last_sequence: 9 },
        Line::Execution { id, created },
    ];
    lines.extend(events.into_iter().map(|event| Line::Event { id, event }));
    lines.insert(lines.len() - 1, Line::Result { id, time_ms: 1_767_225_600_001, result });
    lines.push(Line::Forget { time_ms: 1_767_225_600_002, ids: vec![id] });
    let restored = Restored { from: EndRecord::NONE, restored_ms: 1_767_225_600_002, fenced: true };
    lines.push(Line::Restored { time_ms: 1_767_225_600_002, restored });
    lines.push(Line::Unfenced { time_ms: 1_767_225_600_003 });
    lines.push(Line::Missing { id: ExecutionId::from_random([8; 16]), first: 0, last: 2 });
    lines.push(Line::Gap { segment: 1, offset: 8288, first_sequence: 3, last_sequence: None });
    lines.push(Line::End {
        counts: Counts { executions: 1, events: 4, forgotten: 0, partial: false },
        digest: [3; 32],
    });
    let spelled: Vec<String> = lines.iter().map(Line::spell).collect();
    for (number, line) in spelled.iter().enumerate() {
        seed(corpus, "export_lines", &format!("line-{number}"), line.as_bytes());
    }
    seed(corpus, "export_lines", "whole", (spelled.join("\n") + "\n").as_bytes());
}

/// One step of every kind of damage on every journal, and a few of two steps.
fn images(corpus: &Path) {
    for base in 0..4_u8 {
        seed(corpus, "journal_image", &format!("{base}-untouched"), &[base]);
        for kind in 0..11_u8 {
            for file in [0, 1, 2, 3, 4] {
                let step = [kind, file, 0x40, 0x21, 0, 0, 7, 1, 0, 0, 9];
                let name = format!("{base}-{kind}-{file}");
                seed(corpus, "journal_image", &name, &[&[base], &step[..]].concat());
            }
        }
        // The newest group cut, zeroed and damaged under an older head.
        for (name, last) in [("cut", [1_u8, 3, 0x80, 0x21]), ("zeroed", [3, 3, 0x80, 0x21])] {
            let steps = [&[base, 10, 0][..], &last, &[0, 0, 0, 2, 0, 0, 0]].concat();
            seed(corpus, "journal_image", &format!("{base}-older-head-{name}"), &steps);
        }
    }
}
