//! The process itself: no content in core files, panics and logs; limits; the command line's own errors.
//!
//! Owns what must hold before any verb runs.

use std::io::{StdoutLock, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::OnceLock;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::again;
use crate::args::{Cli, LogFormat, Verb};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::output;
use crate::render::{Render, output_failed};

/// How this process talks, once its command line was read.
static TALKS_JSON: OnceLock<bool> = OnceLock::new();

/// The variable that sets how much is logged: `error`, `warn`, `info`, `debug`, `trace` or `off`.
pub const LOG_VARIABLE: &str = "SEALOG_LOG";

/// Keys and prompts are in this process's memory: no core file, no dump through a handler, no text of a panic.
pub fn keep_secrets_in() {
    // Best effort by design: a container may refuse either, and a node that runs is worth more.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    std::panic::set_hook(Box::new(panicked));
}

/// Says where, never what: a panic's text may hold anything.
fn panicked(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|at| format!("{}:{}", source(at.file()), at.line())).unwrap_or_default();
    let json = TALKS_JSON.get().copied().unwrap_or_else(json_given);
    let render = Render { json };
    render.failure(
        &Failure::new(Exit::Failed, "internal", format!("a bug at {place}"))
            .safe("everything acknowledged before is durable")
            .next("run the same command again, and report the place"),
    );
}

/// A source file from its crate on: where others lay on the machine that built this concerns nobody.
fn source(file: &str) -> &str {
    let of_crate = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    match of_crate.or_else(|| file.rsplit_once('/').filter(|_| file.starts_with('/'))) {
        Some((_, rest)) => rest,
        None => file,
    }
}

/// Before the command line was read: whether JSON is asked for.
fn json_given() -> bool {
    std::env::args_os().any(|arg| arg == "--json")
}

/// Whether notes and errors are JSON, from here on those of a panic as well. Who reads a node's log lines as JSON finds
/// nothing else among them.
pub fn talks_json(cli: &Cli) -> bool {
    let logs_json = matches!(&cli.verb, Verb::Serve(args) if args.log_format == Some(LogFormat::Json));
    *TALKS_JSON.get_or_init(|| cli.json || logs_json)
}

/// How a verb ended, once that was said. One that panicked has failed: the hook has said where.
pub fn ended(verb: impl FnOnce() -> Result<Exit, Failure>, render: Render) -> Exit {
    match catch_unwind(AssertUnwindSafe(verb)) {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            render.failure(&failure);
            failure.exit
        }
        Err(_) => Exit::Failed,
    }
}

/// Whether a flag stands on the command line; what it has by default does not.
pub fn flag_given(flag: &str) -> bool {
    std::env::args_os().any(|arg| {
        arg.to_str().is_some_and(|arg| {
            arg == flag || arg.strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
        })
    })
}

/// Reads the command line. Help and version go to standard output; a mistake is exit 2.
///
/// # Errors
/// How to end, when there is no verb to run.
pub fn command_line() -> Result<Cli, Exit> {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        again::keep(&matches);
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))
    });
    let error = match parsed {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    let json = json_given();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let print = |mut output: StdoutLock<'_>| error.print().and_then(|()| output.flush());
            let printed = output().and_then(print);
            Err(ended(|| printed.map(|()| Exit::Success).map_err(output_failed), Render { json }))
        }
        _ if json => {
            let what = without_usage(&error.to_string());
            Render { json }
                .failure(&Failure::usage("usage", what).next("sealog help, or the verb with --help"));
            Err(Exit::Usage)
        }
        _ => {
            let _ = error.print();
            Err(Exit::Usage)
        }
    }
}

/// What is wrong on one line: the usage that follows it says nothing about this call.
fn without_usage(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let what =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    what.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}

/// Lets this process open as many files as the system allows it: every connection is one.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(errno) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%errno, "the descriptor limit was not raised");
        }
    }
}

/// Connections that are served at once: three quarters of the files that may be open. The rest is the journal's, the
/// providers' and the terminal's.
pub fn connections_max() -> usize {
    connections_of(getrlimit(Resource::Nofile).current)
}

/// `None`: there is no limit.
fn connections_of(descriptors: Option<u64>) -> usize {
    const LEAST: u64 = 64;
    const MOST: u64 = 65_536;
    let connections = descriptors.map_or(MOST, |descriptors| (descriptors / 4 * 3).clamp(LEAST, MOST));
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Log lines of our own crates on standard error. Foreign crates stay silent: what they log at their finest level
/// may hold a header or a body.
///
/// # Errors
/// Exit 2: the level is not one.
pub fn start_logging(format: LogFormat) -> Result<(), Failure> {
    let level = match std::env::var(LOG_VARIABLE) {
        Ok(text) => text.parse().map_err(|_| {
            Failure::usage("bad_log_level", format!("{LOG_VARIABLE} is not a level"))
                .next(format!("{LOG_VARIABLE} is one of off, error, warn, info, debug, trace"))
        })?,
        Err(_) => LevelFilter::WARN,
    };
    let ours = Targets::new().with_target("sealog", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Json => tracing_subscriber::registry().with(ours).with(lines.json()).try_init(),
        LogFormat::Text => tracing_subscriber::registry().with(ours).with(lines.with_ansi(false)).try_init(),
    };
    started.map_err(|error| {
        Failure::new(Exit::Failed, "internal", "logging could not be started").because(error)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        assert_eq!(connections_of(Some(1024)), 768);
        assert_eq!(connections_of(Some(20_000)), 15_000);
        assert_eq!(connections_of(Some(16)), 64);
        assert_eq!(connections_of(Some(1 << 30)), 65_536);
        assert_eq!(connections_of(None), 65_536);
    }

    #[test]
    fn whatever_becomes_of_a_verb_it_ends_with_a_documented_code() {
        let render = Render { json: false };
        assert_eq!(ended(|| Ok(Exit::NotFound), render), Exit::NotFound);
        assert_eq!(ended(|| Err(Failure::new(Exit::TryAgain, "full", "f")), render), Exit::TryAgain);
        assert_eq!(ended(|| panic!("as a bug does"), render), Exit::Failed);
    }

    #[test]
    fn a_place_in_the_source_names_no_folder_of_who_built_it() {
        for (file, said) in [
            ("crates/cli/src/main.rs", "crates/cli/src/main.rs"),
            ("/home/me/.cargo/registry/src/index-0f/tokio-1.2.3/src/lib.rs", "tokio-1.2.3/src/lib.rs"),
            ("/home/me/sealog/crates/cli/src/main.rs", "main.rs"),
            ("main.rs", "main.rs"),
        ] {
            assert_eq!(source(file), said);
        }
    }

    #[test]
    fn a_mistake_keeps_what_is_missing_and_what_would_be_right() {
        for (arguments, what) in [
            (
                &["sealog", "journal", "verify"][..],
                "the following required arguments were not provided: <DIR>",
            ),
            (
                &["sealog", "journal", "replay", "d", "e", "--format", "pretty"][..],
                "invalid value 'pretty' for '--format <FORMAT>' [possible values: sse, jsonl, text, snapshot]",
            ),
        ] {
            let error = Cli::try_parse_from(arguments).unwrap_err();
            assert_eq!(without_usage(&error.to_string()), what);
        }
    }
}
