//! The files of a node's certificate and key.
//!
//! Owns their reading and what a bad one is told. Must never repeat a byte of a key.

use std::path::Path;

use sealog_disk::real::{FileContent, read_regular};
use sealog_http::{BadTls, Tls};
use zeroize::Zeroizing;

use crate::config::TlsFiles;
use crate::failure::{Failure, Result, shown};

const FILE_BYTES_MAX: usize = 1024 * 1024;

/// Reads both.
///
/// # Errors
/// Exit 2: one cannot be read, others can read the key, or they are no pair.
pub fn read(files: &TlsFiles) -> Result<Tls> {
    let (chain, key) = texts(files)?;
    Tls::from_pem(&chain.bytes, &key).map_err(|error| refused(files, error))
}

/// Reads both again for connections from now on.
///
/// # Errors
/// As [`read`]; the pair read before counts then.
pub fn read_again(files: &TlsFiles, tls: &Tls) -> Result<()> {
    let (chain, key) = texts(files)?;
    tls.replace(&chain.bytes, &key).map_err(|error| refused(files, error))
}

fn texts(files: &TlsFiles) -> Result<(FileContent, Zeroizing<Vec<u8>>)> {
    const OTHERS: u32 = 0o007;
    let chain = content(&files.cert)?;
    let key = content(&files.key)?;
    if key.mode & OTHERS != 0 {
        let next = format!("close it to others: chmod 600 {}", shown(&files.key));
        return Err(bad(&files.key, "others have access to it").next(next));
    }
    Ok((chain, Zeroizing::new(key.bytes)))
}

fn content(path: &Path) -> Result<FileContent> {
    let content = read_regular(path, FILE_BYTES_MAX)
        .map_err(|error| bad(path, "it cannot be read, or is too long").unread(error))?;
    // Both are read again while the node runs, which must not wait for whoever would write into a pipe.
    if content.regular { Ok(content) } else { Err(bad(path, "not a regular file")) }
}

fn refused(files: &TlsFiles, error: BadTls) -> Failure {
    match error {
        BadTls::Certificate => bad(&files.cert, &error.to_string()),
        BadTls::Key | BadTls::Pair => bad(&files.key, &error.to_string()),
    }
}

fn bad(path: &Path, why: &str) -> Failure {
    Failure::usage("bad_tls", format!("{}: {why}", shown(path)))
        .next("name a certificate chain and its private key, both PEM: --tls-cert FILE --tls-key FILE")
}
