//! Conversations that every adapter translates: one with all that is said between user, model and tools, and ways to
//! ask for more.

use sealog_events::PortableCode;
use sealog_execution::{ExecutionRequest, Failure};
use serde_json::{Value, json};

use crate::model::{Model, ModelConfig, Rules};

/// The line of a configuration that declares tools.
pub const TOOLS: &str = "capabilities = { tools = true }";

/// The translating half of an adapter: what it makes of a request, under a configuration.
#[derive(Debug)]
pub struct Adapter {
    /// The configuration of its model `m-1` with these lines of TOML.
    pub configured: fn(&str) -> ModelConfig,
    pub rules: &'static Rules,
    pub body: fn(&Model, &ExecutionRequest) -> Result<Vec<u8>, Failure>,
}

impl Adapter {
    /// The body that is sent for `asked` when `toml` is configured beside the rest; else the code of the refusal.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// The configuration or the request is not valid.
    pub fn sent(&self, toml: &str, asked: Value) -> Result<Value, PortableCode> {
        let model = Model::new((self.configured)(toml), self.rules).expect("a test's configuration is valid");
        let request = super::request(&asked);
        let made = model.supports("m-1", &request).and_then(|()| (self.body)(&model, &request));
        Ok(serde_json::from_slice(&made.map_err(|failure| failure.code)?).expect("JSON is sent"))
    }

    /// What is sent for a conversation of one message with these members, without the members that are always sent.
    ///
    /// # Errors
    /// As [`Adapter::sent`].
    ///
    /// # Panics
    /// As [`Adapter::sent`].
    pub fn added(&self, toml: &str, members: Value) -> Result<Value, PortableCode> {
        let mut body = self.sent(toml, with(members))?;
        for name in ["model", "messages", "input", "stream", "stream_options", "store"] {
            body.as_object_mut().expect("an object is sent").remove(name);
        }
        Ok(body)
    }

    /// # Panics
    /// It is not refused as something that cannot be said.
    #[track_caller]
    pub fn refused(&self, toml: &str, asked: Value) {
        assert_eq!(self.sent(toml, asked), Err(PortableCode::CapabilityUnavailable));
    }

    /// # Panics
    /// A conversation gets tools that the configuration does not declare.
    pub fn needs_tools_to_be_declared(&self) {
        let choice = json!({"tool_choice": "none"});
        for members in [json!({"tools": one_tool()}), choice, json!({"parallel_tool_calls": true})] {
            self.refused("", with(members));
        }
        self.refused("", tool_use());
    }

    /// The members of a conversation that change nothing about what is sent and are not refused either, under a
    /// configuration that declares whatever the type can be declared to take. What an adapter cannot express must be
    /// refused; what is left over is what its protocol does anyway.
    ///
    /// # Panics
    /// What is refused is refused as something else, or a conversation cannot be sent without the member.
    pub fn says_anyway(&self) -> Vec<&'static str> {
        let modalities: Vec<String> =
            self.rules.input_modalities.iter().map(|modality| format!("'{}'", modality.as_str())).collect();
        let all =
            format!("capabilities = {{ tools = true, input_modalities = [{}] }}", modalities.join(", "));
        let mut anyway = Vec::new();
        for More { what, before, after } in every_member() {
            match (self.sent(&all, before), self.sent(&all, after)) {
                (_, Err(code)) => assert_eq!(code, PortableCode::CapabilityUnavailable, "{what}"),
                (before, Ok(after)) => {
                    if before.unwrap_or_else(|code| panic!("without {what}: {code}")) == after {
                        anyway.push(what);
                    }
                }
            }
        }
        anyway
    }

    /// # Panics
    /// An image in an earlier message passes without the modality, or is refused with it.
    pub fn counts_every_part(&self) {
        let image = json!([{"type": "image", "uri": "data:image/png;base64,AA"}]);
        let asked = of(json!([
            message("user", image),
            message("assistant", json!([text("a cat")])),
            message("user", json!([text("sure?")])),
        ]));
        self.refused("", asked.clone());
        let images = "capabilities = { input_modalities = ['text', 'image'] }";
        assert!(self.sent(images, asked).is_ok());
    }
}

/// A conversation, and the same one with one thing more said.
struct More {
    what: &'static str,
    before: Value,
    after: Value,
}

/// Every member that a conversation can have, each said beside one in which it is not or is said otherwise.
fn every_member() -> Vec<More> {
    let mut all = Vec::new();
    let mut more = |what, before: Value, after: Value| all.push(More { what, before, after });
    for (what, sampling) in [
        ("temperature", json!({"temperature": 0.5})),
        ("top_p", json!({"top_p": 0.5})),
        ("top_k", json!({"top_k": 5})),
        ("stop", json!({"stop": ["x"]})),
        ("seed", json!({"seed": 5})),
        ("presence_penalty", json!({"presence_penalty": 0.5})),
        ("frequency_penalty", json!({"frequency_penalty": 0.5})),
    ] {
        more(what, with(json!({})), with(json!({ "sampling": sampling })));
    }
    more("max_tokens", with(json!({"max_tokens": 6})), with(json!({"max_tokens": 5})));
    let tool = |tool: Value| with(json!({ "tools": [tool] }));
    more("a tool", with(json!({})), tool(json!({"name": "f"})));
    for (what, member) in [
        ("the description of a tool", json!({"description": "d"})),
        ("the parameters of a tool", json!({"parameters": {"type": "object", "required": ["a"]}})),
        ("strict: true of a tool", json!({"strict": true})),
        ("strict: false of a tool", json!({"strict": false})),
    ] {
        let mut named = json!({"name": "f"});
        named.as_object_mut().expect("an object").extend(member.as_object().expect("a member").clone());
        more(what, tool(json!({"name": "f"})), tool(named));
    }
    let using = |mut members: Value| {
        members["tools"] = one_tool();
        with(members)
    };
    for (what, members) in [
        ("tool_choice auto", json!({"tool_choice": "auto"})),
        ("tool_choice none", json!({"tool_choice": "none"})),
        ("tool_choice required", json!({"tool_choice": "required"})),
        ("tool_choice of one", json!({"tool_choice": {"name": "f"}})),
        ("parallel_tool_calls: true", json!({"parallel_tool_calls": true})),
        ("parallel_tool_calls: false", json!({"parallel_tool_calls": false})),
    ] {
        more(what, using(json!({})), using(members));
    }
    formats(&mut more);
    messages(&mut more);
    all
}

fn formats(more: &mut impl FnMut(&'static str, Value, Value)) {
    let format = |format: Value| with(json!({ "output_format": format }));
    let schema = |members: Value| {
        let mut schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}});
        schema.as_object_mut().expect("an object").extend(members.as_object().expect("members").clone());
        format(schema)
    };
    more("output_format json", with(json!({})), format(json!({"type": "json"})));
    more("output_format json_schema", with(json!({})), schema(json!({})));
    more("the schema of an output_format", schema(json!({})), schema(json!({"schema": {"type": "array"}})));
    more("the name of an output_format", schema(json!({})), schema(json!({"name": "other"})));
    more("the description of an output_format", schema(json!({})), schema(json!({"description": "d"})));
    more("strict: true of an output_format", schema(json!({})), schema(json!({"strict": true})));
    more("strict: false of an output_format", schema(json!({})), schema(json!({"strict": false})));
}

fn messages(more: &mut impl FnMut(&'static str, Value, Value)) {
    let asked = |parts: Value| of(json!([message("user", parts)]));
    more("a second text", asked(json!([text("a")])), asked(json!([text("a"), text("b")])));
    let system = json!([message("system", json!([text("s")])), message("user", json!([text("a")]))]);
    more("a system message", asked(json!([text("a")])), of(system));
    let media = |mut part: Value, members: Value| {
        part.as_object_mut().expect("a part").extend(members.as_object().expect("members").clone());
        asked(json!([text("a"), part]))
    };
    let image = |members: Value| media(json!({"type": "image", "uri": "data:image/png;base64,AA"}), members);
    more("an image", asked(json!([text("a")])), image(json!({})));
    more("detail auto of an image", image(json!({})), image(json!({"detail": "auto"})));
    more("detail low of an image", image(json!({})), image(json!({"detail": "low"})));
    more("detail high of an image", image(json!({})), image(json!({"detail": "high"})));
    more("the media type of an image", image(json!({})), image(json!({"media_type": "image/png"})));
    let file = |members: Value| media(json!({"type": "file", "uri": "data:text/plain;base64,AA"}), members);
    more("a file", asked(json!([text("a")])), file(json!({})));
    more("the name of a file", file(json!({})), file(json!({"name": "a.txt"})));
    more("the media type of a file", file(json!({})), file(json!({"media_type": "text/plain"})));
    let called = |name: &str, arguments: &str, result: Value, is_error: bool| {
        of(json!([
            message("user", json!([text("a")])),
            message(
                "assistant",
                json!([{"type": "tool_call", "call_id": "c", "name": name, "arguments": arguments}])
            ),
            message(
                "tool",
                json!([{"type": "tool_result", "call_id": "c", "parts": result, "is_error": is_error}])
            ),
        ]))
    };
    let plain = || called("f", "{}", json!([text("r")]), false);
    more("a call of a tool and its result", asked(json!([text("a")])), plain());
    more("the name of a call", plain(), called("g", "{}", json!([text("r")]), false));
    more("the arguments of a call", plain(), called("f", "{\"a\":1}", json!([text("r")]), false));
    more("the result of a call", plain(), called("f", "{}", json!([text("s")]), false));
    more("a failure of a tool", plain(), called("f", "{}", json!([text("r")]), true));
    let image = json!({"type": "image", "uri": "data:image/png;base64,AA"});
    more("an image in a result", plain(), called("f", "{}", json!([text("r"), image]), false));
    let both = json!([text("t"), {"type": "tool_call", "call_id": "c", "name": "f", "arguments": "{}"}]);
    let spoken = of(json!([
        message("user", json!([text("a")])),
        message("assistant", both),
        message("tool", json!([{"type": "tool_result", "call_id": "c", "parts": [text("r")]}])),
    ]));
    more("a text before a call", plain(), spoken);
}

/// The tools of a conversation that has one.
pub fn one_tool() -> Value {
    json!([{"name": "f", "description": "d", "parameters": {"type": "object"}}])
}

/// A request that goes on with a conversation; `input` is what has to stand beside it.
///
/// # Panics
/// `conversation` is no object with messages.
pub fn request(conversation: &Value) -> Value {
    let messages = conversation["messages"].as_array().expect("messages");
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    let part = |part: &Value| {
        let mut part = part.clone();
        let members = part.as_object_mut().expect("a part");
        members.remove("detail");
        members.remove("name");
        part
    };
    let parts = last.map(|last| last["parts"].as_array().expect("parts").iter().map(part).collect());
    let input: Vec<Value> = parts.unwrap_or_else(|| vec![json!({"type": "text", "text": ""})]);
    json!({"ability": "text-generation", "input": input, "extensions": {"conversation": conversation}})
}

/// A conversation of one message with these members.
///
/// # Panics
/// `members` is no object.
pub fn with(members: Value) -> Value {
    let mut conversation = json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
    conversation.as_object_mut().expect("an object").extend(members.as_object().expect("members").clone());
    request(&conversation)
}

/// A conversation with these messages.
pub fn of(messages: Value) -> Value {
    request(&json!({ "messages": messages }))
}

/// One message.
pub fn message(role: &str, parts: Value) -> Value {
    json!({"role": role, "parts": parts})
}

/// A text part.
pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The question, a call of a tool, its result, and a second question.
pub fn tool_use() -> Value {
    request(&json!({
        "messages": [
            message("system", json!([text("be brief")])),
            message("user", json!([text("weather in Rome?")])),
            message("assistant", json!([
                text("let me look"),
                {"type": "tool_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Rome\"}"},
            ])),
            message("tool", json!([{"type": "tool_result", "call_id": "c1", "parts": [text("sunny")]}])),
            message("user", json!([text("and tomorrow?")])),
        ],
        "tools": [
            {"name": "weather", "description": "looks outside", "parameters": {"type": "object"}},
            {"name": "clock"},
        ],
        "tool_choice": "auto",
    }))
}
