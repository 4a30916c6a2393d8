//! Who may reach a node: the guard's rules out of flags and configuration, and reading them again while it runs.
//!
//! Flags come in addition to the file; where both name one file, the flag counts. Must never open a port.

use std::path::PathBuf;

use sealog_http::{AllowedNames, Guard, Tls, Tokens, check_listen};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{Listen, Serve};
use crate::config::{AccessConfig, TlsFiles};
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::render::Render;
use crate::report::counted;
use crate::{tls, tokens};

/// The rules, and the files behind them.
#[derive(Debug)]
pub struct Access {
    pub guard: Guard,
    pub tls: Option<Tls>,
    token_file: Option<PathBuf>,
    tls_files: Option<TlsFiles>,
}

impl Access {
    /// Reads what the flags and the configuration name, and judges whether one may listen there.
    ///
    /// # Errors
    /// Exit 2: a name is none, a file is not as it must be, or the address is one for which more is needed.
    pub fn read(args: &Serve, config: AccessConfig) -> Result<Access> {
        let AccessConfig { mut names, token_file, tls } = config;
        add_names(&mut names, args)?;
        let given = &args.access;
        let token_file = given.token_file.clone().or(token_file);
        let tls_files = match (&given.tls_cert, &given.tls_key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert: cert.clone(), key: key.clone() }),
            _ => tls,
        };
        let tokens = token_file.as_deref().map(tokens::read).transpose()?.map(Tokens::new);
        let tls = tls_files.as_ref().map(tls::read).transpose()?;
        let access = Access { guard: Guard { names, tokens }, tls, token_file, tls_files };
        access.judge(args)?;
        Ok(access)
    }

    /// Whether the node may listen beyond this machine.
    pub fn allows_remote(&self, args: &Serve) -> bool {
        args.allow_remote || (self.guard.tokens.is_some() && self.tls.is_some())
    }

    fn judge(&self, args: &Serve) -> Result<()> {
        match &args.listen {
            Listen::Tcp(address) => check_listen(*address, self.allows_remote(args)).map_err(|refused| {
                Failure::usage("not_loopback", refused.to_string()).next(
                    "add --token-file, --tls-cert and --tls-key; or listen on 127.0.0.1 behind a proxy that \
                     authenticates; or say --allow-remote",
                )
            }),
            Listen::Unix(_) if self.tls.is_some() => {
                Err(Failure::usage("bad_tls", "a socket in the file system speaks no TLS")
                    .next("leave --tls-cert and --tls-key out, or listen on an address"))
            }
            Listen::Unix(_) => Ok(()),
        }
    }

    /// Every SIGHUP from now on, if there are files to read again. Without one the signal keeps its meaning: the terminal
    /// is gone.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn hangups(&self) -> Result<Option<Signal>> {
        if self.token_file.is_none() && self.tls_files.is_none() {
            return Ok(None);
        }
        signal(SignalKind::hangup()).map(Some).map_err(|error| {
            Failure::new(Exit::Failed, "internal", "signals cannot be caught").because(error)
        })
    }

    /// Reads the files again for each of them. A file that is not as it must be changes nothing.
    pub fn follow_hangups(&self, hangups: Option<Signal>, render: Render) {
        let Some(mut hangups) = hangups else { return };
        let again = Again {
            tokens: self.token_file.clone().zip(self.guard.tokens.clone()),
            tls: self.tls_files.clone().zip(self.tls.clone()),
        };
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                again.read(render);
            }
        });
    }
}

/// What a hangup reads again.
struct Again {
    tokens: Option<(PathBuf, Tokens)>,
    tls: Option<(TlsFiles, Tls)>,
}

impl Again {
    fn read(&self, render: Render) {
        if let Some((file, tokens)) = &self.tokens {
            match tokens::read(file) {
                Ok(set) => {
                    let count = counted(set.len() as u64, "token");
                    tokens.replace(set);
                    render.note(&format!("{} was read again: {count}", shown(file)));
                }
                Err(failure) => render.note(&format!("{}; the tokens read before still count", failure.what)),
            }
        }
        if let Some((files, tls)) = &self.tls {
            match tls::read_again(files, tls) {
                Ok(()) => render.note(&format!("{} was read again", shown(&files.cert))),
                Err(failure) => {
                    render.note(&format!("{}; the certificate read before still counts", failure.what));
                }
            }
        }
    }
}

fn add_names(names: &mut AllowedNames, args: &Serve) -> Result<()> {
    let refused = |flag: &str, error: sealog_http::BadName| {
        Failure::usage("bad_name", format!("{flag}: {error}")).next("sealog serve --help")
    };
    // The address of the listener is a name of the node as well.
    if let Listen::Tcp(address) = &args.listen
        && !address.ip().is_unspecified()
    {
        names.add_host(&address.ip().to_string()).map_err(|error| refused("--listen", error))?;
    }
    for host in &args.access.allow_host {
        names.add_host(host).map_err(|error| refused("--allow-host", error))?;
    }
    for origin in &args.access.allow_origin {
        names.add_origin(origin).map_err(|error| refused("--allow-origin", error))?;
    }
    Ok(())
}
