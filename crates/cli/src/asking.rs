//! A client of the node that a verb asks: its address and, where the node asks for tokens, one.
//!
//! A token comes from a file that a flag or the environment names, never from a flag's value.

use std::path::PathBuf;

use sealog_client::Client;
use sealog_disk::real::read_file;
use zeroize::Zeroizing;

use crate::args::asking::NodeArgs;
use crate::args::{KeyArgs, PlaceArgs};
use crate::failure::{Failure, Result, shown};

/// Where a node is unless `--url` says otherwise.
const NODE_URL: &str = "http://127.0.0.1:4320";
/// The variable that names a file with a token, where no flag does.
const TOKEN_FILE_VARIABLE: &str = "SEALOG_TOKEN_FILE";
const FILE_BYTES_MAX: usize = 4096;

/// A client of the node that the flags name, or of the default one.
///
/// # Errors
/// Exit 2: the address is none, or the file holds no token.
pub fn client(args: &NodeArgs) -> Result<Client> {
    let client = Client::new(args.url.as_deref().unwrap_or(NODE_URL))
        .map_err(|error| Failure::usage("bad_url", error.to_string()).next("--url http://HOST:PORT"))?;
    let named = || std::env::var_os(TOKEN_FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let Some(path) = args.token_file.clone().or_else(named) else { return Ok(client) };
    let bad = |why: &str| {
        Failure::usage("bad_token", format!("{}: {why}", shown(&path)))
            .next("name a file whose one line is a token that `sealog token new` printed")
    };
    let content = read_file(&path, FILE_BYTES_MAX)
        .map_err(|error| bad("it cannot be read, or is too long").because(error))?;
    if content.regular && content.open_to_others() {
        return Err(bad("its group or others have access to it"));
    }
    let bytes = Zeroizing::new(content.bytes);
    let token = std::str::from_utf8(&bytes).map_err(|_| bad("it is not UTF-8 text"))?.trim();
    client.with_token(token).map_err(|_| bad("it holds no token"))
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
