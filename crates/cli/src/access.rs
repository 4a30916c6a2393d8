//! Who may reach a node: the guard's rules out of flags and configuration, and reading them again while it runs.
//!
//! Flags come in addition to the file; where both name one file, the flag counts. Must never open a port.

use std::net::IpAddr;
use std::path::PathBuf;

use sealog_http::{AllowedNames, Guard, Tokens};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::access::AccessArgs;
use crate::config::AccessConfig;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::render::Render;
use crate::report::counted;
use crate::tokens;

/// The rules, and the files behind them.
#[derive(Debug)]
pub struct Access {
    pub guard: Guard,
    token_file: Option<PathBuf>,
}

impl Access {
    /// Reads what the flags and the configuration name; the address of the listener is a name of the node as well.
    ///
    /// # Errors
    /// Exit 2: a name is none, or a file is not as it must be.
    pub fn read(args: &AccessArgs, listen: IpAddr, config: AccessConfig) -> Result<Access> {
        let AccessConfig { mut names, token_file } = config;
        if !listen.is_unspecified() {
            let added = names.add_host(&listen.to_string());
            added.map_err(|error| Failure::usage("bad_name", error.to_string()))?;
        }
        add_names(&mut names, args)?;
        let token_file = args.token_file.clone().or(token_file);
        let tokens = token_file.as_deref().map(tokens::read).transpose()?.map(Tokens::new);
        Ok(Access { guard: Guard { names, tokens }, token_file })
    }

    /// Reads the files again on every SIGHUP from now on. A file that is not as it must be changes nothing.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn follow_hangups(&self, render: Render) -> Result<()> {
        // Without a file the signal keeps its meaning: the terminal is gone.
        let (Some(file), Some(tokens)) = (self.token_file.clone(), self.guard.tokens.clone()) else {
            return Ok(());
        };
        let mut hangups = signal(SignalKind::hangup()).map_err(|error| {
            Failure::new(Exit::Failed, "internal", "signals cannot be caught").because(error)
        })?;
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                match tokens::read(&file) {
                    Ok(set) => {
                        let count = counted(set.len() as u64, "token");
                        tokens.replace(set);
                        render.note(&format!("{} was read again: {count}", shown(&file)));
                    }
                    Err(failure) => {
                        render.note(&format!("{}; the tokens read before still count", failure.what));
                    }
                }
            }
        });
        Ok(())
    }
}

fn add_names(names: &mut AllowedNames, args: &AccessArgs) -> Result<()> {
    let refused = |flag: &str, error: sealog_http::BadName| {
        Failure::usage("bad_name", format!("{flag}: {error}")).next("sealog serve --help")
    };
    for host in &args.allow_host {
        names.add_host(host).map_err(|error| refused("--allow-host", error))?;
    }
    for origin in &args.allow_origin {
        names.add_origin(origin).map_err(|error| refused("--allow-origin", error))?;
    }
    Ok(())
}
