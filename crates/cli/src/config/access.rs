//! The `[http]` section: who may reach the node.
//!
//! Owns the names and bounds of its members. Must never repeat a value.

use std::ops::Range;
use std::path::PathBuf;

use sealog_http::AllowedNames;
use toml::Spanned;
use toml::de::DeValue;

use super::{Refused, near};

/// Who may reach the node, as far as the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    pub names: AllowedNames,
    pub token_file: Option<PathBuf>,
    pub tls: Option<TlsFiles>,
}

/// Where certificate chain and key stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

pub(super) fn access(
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> std::result::Result<AccessConfig, Refused> {
    let table =
        value.get_ref().as_table().ok_or_else(|| Refused::new(span, "http", "a table, opened by [http]"))?;
    let mut access = AccessConfig::default();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let shown = format!("http.{name}");
        let refused = |why: &str| Refused::new(key.span(), &shown, why);
        match name {
            "hosts" => {
                for host in texts(value).ok_or_else(|| refused("a list of texts"))? {
                    access.names.add_host(host).map_err(|error| refused(&error.to_string()))?;
                }
            }
            "origins" => {
                for origin in texts(value).ok_or_else(|| refused("a list of texts"))? {
                    access.names.add_origin(origin).map_err(|error| refused(&error.to_string()))?;
                }
            }
            "token_file" => {
                access.token_file = Some(path(value).ok_or_else(|| refused("an absolute path"))?);
            }
            _ => return Err(refused(&near::unsupported(name, ["hosts", "origins", "token_file"]))),
        }
    }
    Ok(access)
}

fn texts<'a>(value: &'a Spanned<DeValue<'_>>) -> Option<Vec<&'a str>> {
    value.get_ref().as_array()?.iter().map(|text| text.get_ref().as_str()).collect()
}

/// A service has no directory that it starts in.
fn path(value: &Spanned<DeValue<'_>>) -> Option<PathBuf> {
    value.get_ref().as_str().map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The `[tls]` section.
pub(super) fn tls(
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> std::result::Result<TlsFiles, Refused> {
    let whole = |why: &str| Refused::new(span.clone(), "tls", why);
    let table = value.get_ref().as_table().ok_or_else(|| whole("a table, opened by [tls]"))?;
    let (mut cert, mut key) = (None, None);
    for (name, value) in table {
        let refused = |why: &str| Refused::new(name.span(), &format!("tls.{}", name.get_ref()), why);
        let member = match name.get_ref().as_ref() {
            "cert_file" => &mut cert,
            "key_file" => &mut key,
            other => return Err(refused(&near::unsupported(other, ["cert_file", "key_file"]))),
        };
        *member = Some(path(value).ok_or_else(|| refused("an absolute path"))?);
    }
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(TlsFiles { cert, key }),
        _ => Err(whole("cert_file and key_file must both be there")),
    }
}
