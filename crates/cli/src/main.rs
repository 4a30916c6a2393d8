//! The Sealog binary: a sealed execution journal, its engine and its tools.
//!
//! Reads the command line, calls one verb, reports how it ended. Knows nothing about any of them.

mod access;
mod anchors;
mod args;
mod asked;
mod asking;
mod building;
mod following;
mod keys;
mod metrics;
mod node;
mod observers;
mod opening;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod places;
mod process;
mod render;
mod report;
mod runtime;
mod service;
mod stage;
mod survey;
mod tls;
mod tokens;
mod transcript;
mod verbs;

use std::process::ExitCode;

use sealog_cli::{again, config, exit, failure};

use args::configuring::Config;
use args::token::Token;
use args::{Journal, Verb};
use exit::Exit;
use failure::Result;
use render::Render;

fn main() -> ExitCode {
    process::keep_secrets_in();
    let cli = match process::command_line() {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let render = Render { json: process::talks_json(&cli) };
    process::ended(|| dispatch(&cli.verb, render), render).into()
}

fn dispatch(verb: &Verb, render: Render) -> Result<Exit> {
    match verb {
        Verb::Serve(args) => verbs::serve::run(args, render),
        Verb::Run(args) => verbs::run::run(args, render),
        Verb::Ps(args) => verbs::ps::run(args, render),
        Verb::Show(args) => verbs::show::run(args, render),
        Verb::Tail(args) => verbs::tail::run(args, render),
        Verb::Cancel(args) => verbs::cancel::run(args, render),
        Verb::Config(Config::Check(args)) => verbs::config::check::run(args, render),
        Verb::Config(Config::Show(args)) => verbs::config::show::run(args, render),
        Verb::Demo(args) => verbs::demo::run(args, render),
        Verb::Doctor(args) => verbs::doctor::run(args, render),
        Verb::Token(Token::New(args)) => verbs::token::new::run(args, render),
        Verb::Journal(Journal::Init(args)) => verbs::journal::init::run(args, render),
        Verb::Journal(Journal::Compact(args)) => verbs::journal::compact::run(args, render),
        Verb::Journal(Journal::Inspect(args)) => verbs::journal::inspect::run(args, render),
        Verb::Journal(Journal::Verify(args)) => verbs::journal::verify::run(args, render),
        Verb::Journal(Journal::Replay(args)) => verbs::journal::replay::run(args, render),
        Verb::Journal(Journal::Export(args)) => verbs::journal::export::run(args, render),
        Verb::Journal(Journal::Import(args)) => verbs::journal::import::run(args, render),
        Verb::Journal(Journal::Rekey(args)) => verbs::journal::rekey::run(args, render),
        Verb::Journal(Journal::Backup(args)) => verbs::journal::backup::run(args, render),
        Verb::Journal(Journal::Repair(args)) => verbs::journal::repair::run(args, render),
        Verb::Journal(Journal::Restore(args)) => verbs::journal::restore::run(args, render),
        Verb::Journal(Journal::Unfence(args)) => verbs::journal::unfence::run(args, render),
    }
}
