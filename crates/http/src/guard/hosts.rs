//! The names that this server answers to, and the pages that may talk to it.
//!
//! A page of another site can point its own name at this machine (rebinding) or send requests across origins; the
//! first shows in `Host`, the second in `Origin`. Ports of `Host` are not judged: a forwarded port is no other name.

use std::net::IpAddr;

use http::Uri;
use http::uri::Authority;

/// A configured name or origin that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Not a host name or an address.
    #[error("a host is a name or an address without a port, such as node.example.com")]
    Host,
    /// Not an origin.
    #[error("an origin is scheme, host and port, such as https://app.example.com")]
    Origin,
}

/// Loopback names, and whatever was added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedNames {
    hosts: Vec<String>,
    origins: Vec<Origin>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl AllowedNames {
    /// Adds a host name or address.
    ///
    /// # Errors
    /// [`BadName::Host`]
    pub fn add_host(&mut self, name: &str) -> Result<(), BadName> {
        let literal = match name.parse::<IpAddr>() {
            Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
            Ok(IpAddr::V4(_)) | Err(_) => name.to_owned(),
        };
        let authority: Authority = literal.parse().map_err(|_| BadName::Host)?;
        let (host, port) = parts(&authority).ok_or(BadName::Host)?;
        if port.is_some() || host.is_empty() || literal.contains('*') {
            return Err(BadName::Host);
        }
        self.hosts.push(host);
        Ok(())
    }

    /// Adds an origin whose pages may talk to the node through a server of theirs. No answer ever invites a browser
    /// to read across origins.
    ///
    /// # Errors
    /// [`BadName::Origin`]
    pub fn add_origin(&mut self, origin: &str) -> Result<(), BadName> {
        self.origins.push(Origin::parse(origin).ok_or(BadName::Origin)?);
        Ok(())
    }

    /// Whether a request to this authority is meant for us.
    pub(super) fn has_host(&self, authority: &Authority) -> bool {
        let Some((host, _)) = parts(authority) else { return false };
        is_loopback(&host) || self.hosts.contains(&host)
    }

    /// Whether a page of `origin` may send a request to this authority: the node's own pages, and those added.
    pub(super) fn has_origin(&self, origin: &str, authority: &Authority) -> bool {
        let Some(origin) = Origin::parse(origin) else { return false };
        let own = parts(authority).is_some_and(|(host, port)| {
            origin.host == host && origin.port == port.unwrap_or(default_port(origin.scheme))
        });
        own || self.origins.contains(&origin)
    }
}

impl Origin {
    /// `null` and everything else that is no http origin is none.
    fn parse(text: &str) -> Option<Origin> {
        let uri: Uri = text.parse().ok()?;
        let scheme = match uri.scheme_str()? {
            "http" => "http",
            "https" => "https",
            _ => return None,
        };
        let rest = text.split_once("://")?.1;
        if rest.contains(['/', '?', '#']) {
            return None;
        }
        let (host, port) = parts(uri.authority()?)?;
        Some(Origin { scheme, host, port: port.unwrap_or(default_port(scheme)) })
    }
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// Host in lower case and port; `None` with user information, or a port that is no number.
fn parts(authority: &Authority) -> Option<(String, Option<u16>)> {
    let text = authority.as_str();
    if text.contains('@') {
        return None;
    }
    let host = authority.host();
    let port = match text.get(host.len()..)? {
        "" => None,
        rest => Some(port(rest.strip_prefix(':')?)?),
    };
    Some((host.to_ascii_lowercase(), port))
}

/// Digits alone: a sign reads as a number, too.
fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_loopback(host: &str) -> bool {
    let literal = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
