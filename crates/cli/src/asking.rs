//! A client of the node that a verb asks: its address, whom it trusts and, where the node asks for tokens, one.
//!
//! A token comes from a file that a flag or the environment names, never from a flag's value.

use std::path::{Path, PathBuf};

use sealog_client::{Client, ClientError, ClientOptions, Distrust};
use sealog_disk::real::read_file;
use zeroize::Zeroizing;

use crate::args::asking::NodeArgs;
use crate::args::{KeyArgs, PlaceArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};

/// Where a node is unless `--url` says otherwise.
const NODE_URL: &str = "http://127.0.0.1:4320";
/// The variable that names a file with a token, where no flag does.
const TOKEN_FILE_VARIABLE: &str = "SEALOG_TOKEN_FILE";
const FILE_BYTES_MAX: usize = 4096;
const CA_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A client of the node that the flags name, or of the default one.
///
/// # Errors
/// Exit 2: the address is none, the certificates of `--ca-file` are none, the file holds no token, or a token would
/// cross a network in the clear.
pub fn client(args: &NodeArgs) -> Result<Client> {
    let url = args.url.as_deref().unwrap_or(NODE_URL);
    let client = match &args.ca_file {
        None => Client::new(url),
        Some(path) => {
            let pem = read_file(path, CA_FILE_BYTES_MAX)
                .map_err(|error| bad_ca(path, "it cannot be read, or is too long").because(error))?;
            Client::with_ca(url, ClientOptions::default(), &pem.bytes)
        }
    };
    let client = client.map_err(|error| no_client(&error, args))?;
    let named = || std::env::var_os(TOKEN_FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let Some(path) = args.token_file.clone().or_else(named) else { return Ok(client) };
    let bad = |why: &str| {
        Failure::usage("bad_token", format!("{}: {why}", shown(&path)))
            .next("name a file whose one line is a token that `sealog token new` printed")
    };
    let content = read_file(&path, FILE_BYTES_MAX)
        .map_err(|error| bad("it cannot be read, or is too long").unread(error))?;
    if content.regular && content.open_to_others() {
        return Err(bad("its group or others have access to it")
            .next(format!("close it to others: chmod 600 {}", shown(&path))));
    }
    let bytes = Zeroizing::new(content.bytes);
    let token = std::str::from_utf8(&bytes).map_err(|_| bad("it is not UTF-8 text"))?.trim();
    client.with_token(token).map_err(|error| match error {
        ClientError::TokenInTheClear => Failure::usage("token_in_the_clear", error.to_string())
            .next("ask the node over https, as in --url https://HOST:PORT, or on its own machine"),
        _ => bad("it holds no token"),
    })
}

/// Why there is no client of that address.
fn no_client(error: &ClientError, args: &NodeArgs) -> Failure {
    let what = error.to_string();
    match (error, &args.ca_file) {
        (ClientError::BadCa, Some(path)) => bad_ca(path, &what),
        (ClientError::BadArgument(_), Some(path)) => bad_ca(path, &what)
            .next("leave --ca-file out, or ask the node over https, as in --url https://HOST:PORT"),
        (ClientError::NoRootCertificates, _) => Failure::usage("no_roots", what)
            .next("install the system's root certificates, or name the node's CA: --ca-file FILE"),
        _ => Failure::usage("bad_url", what)
            .next("--url https://HOST:PORT, --url http://HOST:PORT or --url unix:PATH"),
    }
}

fn bad_ca(path: &Path, why: &str) -> Failure {
    Failure::usage("bad_ca_file", format!("{}: {why}", shown(path)))
        .next("name a PEM file with the certificate of the CA that signed the node's")
}

/// A failure in which no node ever read a request; `None` for any other.
pub fn not_reached(error: &ClientError) -> Option<Failure> {
    let what = error.to_string();
    let failure = match error {
        ClientError::Connect(_) => {
            Failure::new(Exit::TryAgain, "no_node", what).next("start a node: sealog serve")
        }
        ClientError::NotTrusted(why) => Failure::usage("not_trusted", what).next(match why {
            Distrust::UnknownIssuer => "name the CA that signed the node's certificate: --ca-file FILE",
            Distrust::OtherName => {
                "ask by a name that the node's certificate is for: --url https://NAME:PORT"
            }
            Distrust::Authority => {
                "give the node a certificate that is no CA's, as with: openssl req -x509 .. -addext \
                 basicConstraints=critical,CA:FALSE"
            }
            Distrust::Expired | Distrust::NotYetValid | Distrust::NotInOrder => {
                "give the node another certificate: serve --tls-cert FILE --tls-key FILE"
            }
        }),
        ClientError::NoTls(_) => Failure::usage("no_tls", what)
            .next("see what the node's first line says: http and https are not the same address"),
        ClientError::NeedsTls(_) => {
            return Some(
                Failure::usage("needs_tls", what)
                    .safe("nothing was done: what answers there could not read the request")
                    .next("give the address as the node's first line says it: --url https://HOST:PORT"),
            );
        }
        _ => return None,
    };
    Some(failure.safe("nothing was sent"))
}

/// Without `--data-dir` no journal is opened: a flag about one would count for nothing. `own`: further flags of the
/// verb's that only count with a journal, and whether they are given.
///
/// # Errors
/// Exit 2, with the first such flag and `next`.
pub fn only_asks(
    own: &[(&'static str, bool)],
    place: PlaceArgs,
    key: &KeyArgs,
    next: &'static str,
) -> Result<()> {
    let shared = [
        ("--allow-network-fs", place.allow_network_fs),
        ("--key-file", !key.key_file.is_empty()),
        ("--key-fd", key.key_fd.is_some()),
        ("--passphrase-file", !key.passphrase_file.is_empty()),
        ("--prompt", key.prompt),
    ];
    match own.iter().chain(&shared).find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(Failure::usage("usage", format!("{flag} counts only with --data-dir")).next(next))
        }
    }
}
