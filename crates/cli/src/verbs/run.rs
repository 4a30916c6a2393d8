//! `sealog run TEXT`: submit one text, print the answer as it streams, end with the outcome's exit code.
//!
//! Asks a node, or is one for a moment. The first interrupt asks the execution to stop; what it says then counts.

use std::path::Path;

use sealog_client::ClientError;
use sealog_disk::real::read_fd;
use sealog_engine::{PublicError, StoreError};
use sealog_events::{ExecutionId, PortableCode};
use sealog_execution::ExecutionRequest;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::again::{same_asked, same_key};
use crate::args::{LogFormat, Run};
use crate::config::NodeConfig;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::following::{Printer, Source};
use crate::node::Node;
use crate::opening;
use crate::process;
use crate::render::Render;
use crate::runtime::runtime;
use crate::verbs::serve::stop_signal;
use crate::{asked, asking};

/// Longest text that standard input may hold, in bytes; a request is no longer either.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// How long an execution of this process may take to stop.
const GRACE_MS: u64 = 10_000;

#[derive(Serialize)]
struct Request<'a> {
    ability: &'a str,
    input: [Part<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<Routing<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Part<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct Routing<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    provider_order: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_fallback: Option<bool>,
}

/// `None`: no flag speaks of it, and the request is the same as before there were such flags.
fn routing(args: &Run) -> Option<Routing<'_>> {
    let allow_fallback = args.allow_fallback.then_some(true);
    (allow_fallback.is_some() || !args.provider.is_empty())
        .then_some(Routing { provider_order: &args.provider, allow_fallback })
}

pub fn run(args: &Run, render: Render) -> Result<Exit> {
    if args.data_dir.is_none() {
        let own = [("--no-create", args.expect.no_create), ("--store-id", args.expect.store_id.is_some())];
        let next = "leave it out to ask a node, or add --data-dir DIR to run in this process";
        asking::only_asks(&own, args.place, &args.key, next)?;
    }
    let body = request(args)?;
    match &args.data_dir {
        Some(dir) => in_process(args, dir, &body, render),
        None => runtime()?.block_on(at_node(args, &body, render)),
    }
}

fn request(args: &Run) -> Result<String> {
    let from_input;
    let text = if args.text == "-" {
        from_input = standard_input()?;
        &from_input
    } else {
        &args.text
    };
    let bad = || {
        Failure::usage("bad_extensions", "--extensions is not a JSON object")
            .next("a JSON object in quotes, as in: --extensions '{\"mock\":{\"chunks\":5}}'")
    };
    let extensions: Option<&RawValue> = match args.extensions.as_deref() {
        None => None,
        Some(json) if json.trim_start().starts_with('{') => {
            Some(serde_json::from_str(json).map_err(|_| bad())?)
        }
        Some(_) => return Err(bad()),
    };
    let input = [Part { r#type: "text", text }];
    let request = Request { ability: &args.ability, input, routing: routing(args), extensions };
    serde_json::to_string(&request).map_err(|_| bad())
}

fn standard_input() -> Result<String> {
    let bad = || {
        Failure::usage("bad_input", "standard input is not UTF-8 text of at most 1 MiB")
            .next("give it such a text, as in: sealog run - <FILE")
    };
    let content = read_fd(0, TEXT_BYTES_MAX).map_err(|error| bad().because(error))?;
    String::from_utf8(content.bytes).map_err(|_| bad())
}

async fn at_node(args: &Run, body: &str, render: Render) -> Result<Exit> {
    let client = asking::client(&args.node)?;
    let key = args.idempotency_key.as_deref();
    let submission = match client.submit(body.as_bytes(), key).await {
        Ok(submission) => submission,
        Err(error) => return Err(asked::by_reason(not_submitted(error, args), &client).await),
    };
    let id = submission.execution_id;
    tell(&id, submission.idempotent_replay, render);
    let cancel = async {
        // The terminal event says what came of it; a failure to ask shows there too.
        let _ = client.cancel(&id).await;
    };
    let source = Source::Node(Box::new(client.follow(&id, 0)));
    let followed = follow(source, args, cancel, render).await;
    let safe = "the execution is not touched by it: what it says is in the journal";
    let look = format!("sealog tail -f {}{}", shown(Path::new(&id)), same_asked());
    followed.map_err(|failure| unseen(failure, safe, &look))
}

/// With the output lost the execution is not: running it again would do the work a second time.
fn unseen(failure: Failure, safe: &'static str, look: &str) -> Failure {
    match failure.code {
        "output_failed" => {
            failure.safe(safe).next(format!("see what it says instead of running it again: {look}"))
        }
        _ => failure,
    }
}

fn in_process(args: &Run, dir: &Path, body: &str, render: Render) -> Result<Exit> {
    process::start_logging(LogFormat::beside(render.json))?;
    let config = NodeConfig::read(args.config.as_deref())?;
    let ready = opening::for_writing(dir, args.place, args.expect, &args.key, render)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let node = Node::open(&ready, config, dir, GRACE_MS, Vec::new(), render)?;
        let running = async {
            let ended = on_engine(args, &node, body, render).await;
            node.engine.shutdown().await;
            ended
        };
        node.closing(running, render).await
    })
}

async fn on_engine(args: &Run, node: &Node, body: &str, render: Render) -> Result<Exit> {
    let submitted = node.engine.submit(body.as_bytes(), args.idempotency_key.as_deref()).await;
    let submission = submitted.map_err(|error| refused(&error, args))?;
    let id: ExecutionId = submission.execution_id;
    tell(&id.to_string(), submission.idempotent_replay, render);
    let watch = node.engine.watch(id, 0).await.map_err(|error| refused(&error, args))?;
    let watch = watch.ok_or_else(|| Failure::new(Exit::Failed, "internal", "the execution is gone"))?;
    let cancel = async {
        let _ = node.engine.cancel(id).await;
    };
    let followed = follow(Source::Journal(watch), args, cancel, render).await;
    let safe = "what the execution said before this process ended is in the journal";
    followed.map_err(|failure| unseen(failure, safe, &format!("sealog tail {id}{}", same_asked())))
}

fn tell(id: &str, replay: bool, render: Render) {
    if !render.json {
        let known = if replay { " (known under this key; nothing was started)" } else { "" };
        render.note(&format!("execution {id}{known}"));
    }
}

/// Prints events to the end; an interrupt cancels and goes on printing.
async fn follow(
    mut source: Source,
    args: &Run,
    cancel: impl Future<Output = ()>,
    render: Render,
) -> Result<Exit> {
    let interrupted = async {
        match stop_signal() {
            Ok(signal) => signal.await,
            Err(_) => std::future::pending().await,
        }
        render.note("asking the execution to stop");
        cancel.await;
        std::future::pending::<()>().await;
    };
    let printing = print(&mut source, Printer::new(render).wanting(&args.provider));
    tokio::select! {
        ended = printing => ended,
        () = interrupted => Err(Failure::new(Exit::Failed, "internal", "the wait for a signal ended")),
    }
}

async fn print(source: &mut Source, mut printer: Printer) -> Result<Exit> {
    while let Some(json) = source.next().await? {
        printer.event(json)?;
    }
    printer.end()?.unwrap_or_else(|| {
        Err(Failure::new(Exit::TryAgain, "stream_broken", "the events ended before the execution did")
            .safe("what was shown is durable; if the node still runs, so does the execution")
            .next("run the same command again with the same --idempotency-key"))
    })
}

/// Which input of this command the schema refuses, whatever the others are; the node's own words name nothing. `None`:
/// each is right, or they are only too long together.
fn at_fault(args: &Run) -> Option<&'static str> {
    let takes = |ability: &str, routing: Option<Routing<'_>>, extensions: Option<&RawValue>| {
        let input = [Part { r#type: "text", text: "" }];
        let json = serde_json::to_vec(&Request { ability, input, routing, extensions });
        json.is_ok_and(|json| ExecutionRequest::parse(&json).is_ok())
    };
    let extensions = args.extensions.as_deref().and_then(|json| serde_json::from_str(json).ok());
    let key = args.idempotency_key.as_deref().map_or(1, |key| key.encode_utf16().count());
    if !takes(&args.ability, None, None) {
        Some("--ability takes a name of 1 to 256 characters")
    } else if !takes("a", routing(args), None) {
        Some("--provider takes ids of providers, none of them empty or twice")
    } else if !takes("a", None, extensions) {
        Some(
            "--extensions takes an object of at most 64 members, none of them twice at any depth, and 1 MiB in all",
        )
    } else if !(1..=256).contains(&key) {
        Some("--idempotency-key takes 1 to 256 characters")
    } else {
        None
    }
}

fn invalid(message: &str, args: &Run) -> Failure {
    let failure = match at_fault(args) {
        Some(words) => {
            Failure::usage("invalid_request", format!("{message}: {words}")).next("correct that flag")
        }
        None => Failure::usage("invalid_request", message)
            .next("correct the request, which has at most 1 MiB in all; a key belongs to one request"),
    };
    failure.safe("nothing was started")
}

fn not_submitted(error: ClientError, args: &Run) -> Failure {
    let what = error.to_string();
    let has_key = args.idempotency_key.is_some();
    if let Some(failure) = asking::not_reached(&error) {
        return failure.because(error);
    }
    let failure = match &error {
        ClientError::Api(api) if api.code == "invalid_request" => invalid(&what, args),
        ClientError::Api(api) if [401, 403].contains(&api.status) => Failure::usage("not_allowed", what)
            .safe("nothing was started")
            .next("name a file with a token of the node that may write: --token-file FILE"),
        ClientError::BadArgument(_) | ClientError::BadBaseUrl(_) => {
            Failure::usage("bad_argument", what).next("sealog run --help")
        }
        _ if !error.may_have_taken_effect() => asked::refused(what),
        _ if has_key => Failure::new(Exit::TryAgain, "answer_lost", what)
            .safe("the key makes it safe to ask again: the node starts it at most once")
            .next("run the same command again with the same --idempotency-key"),
        _ => Failure::new(Exit::OutcomeUnknown, "answer_lost", what)
            .safe("whether the node started it is not known, and without a key it cannot be asked")
            .next(format!(
                "see whether it is there before running it again: sealog ps{}; next time use --idempotency-key",
                same_asked()
            )),
    };
    failure.because(error)
}

fn refused(error: &PublicError, args: &Run) -> Failure {
    let failure = match error.code {
        PortableCode::InvalidRequest => invalid(error.message, args),
        PortableCode::ProviderUnavailable if *error == StoreError::Fenced.into() => {
            let dir = args.data_dir.as_deref().map_or_else(|| "DIR".to_owned(), shown);
            Failure::new(Exit::TryAgain, "refused", error.message).next(format!(
                "once the original is gone for good: sealog journal unfence {dir}{}",
                same_key()
            ))
        }
        PortableCode::QueueFull
        | PortableCode::RateLimited
        | PortableCode::ProviderUnavailable
        | PortableCode::DeadlineExceeded
        | PortableCode::CapabilityUnavailable
        | PortableCode::Cancelled
        | PortableCode::ProviderProtocolError
        | PortableCode::InternalError => Failure::new(Exit::TryAgain, "refused", error.message)
            .next("check the disk, then run the same command again"),
    };
    failure.safe("nothing was started")
}
