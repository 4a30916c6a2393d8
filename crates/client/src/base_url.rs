//! The address of a node: `http://host[:port][/prefix]`.

use crate::ClientError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    /// As the Host header shows it.
    pub authority: String,
    /// As a connection takes it: no brackets around an IPv6 address.
    pub host: String,
    pub port: u16,
    /// Empty, or `/...` without a slash at the end.
    pub prefix: String,
}

impl BaseUrl {
    pub fn parse(text: &str) -> Result<Self, ClientError> {
        let lower = text.get(..8).map(str::to_ascii_lowercase).unwrap_or_default();
        if lower.starts_with("https://") {
            return Err(ClientError::HttpsUnsupported);
        }
        if !lower.starts_with("http://") {
            return Err(ClientError::BadBaseUrl("it must start with http://"));
        }
        let rest = &text[7..];
        if rest.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(ClientError::BadBaseUrl("it has a character that no address has"));
        }
        if rest.contains(['?', '#']) {
            return Err(ClientError::BadBaseUrl("a query or fragment is not part of it"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(ClientError::BadBaseUrl("credentials are not part of it"));
        }
        let (host, port) = host_and_port(authority)?;
        Ok(Self {
            authority: authority.to_owned(),
            host: host.to_owned(),
            port,
            prefix: path.trim_end_matches('/').to_owned(),
        })
    }
}

fn host_and_port(authority: &str) -> Result<(&str, u16), ClientError> {
    let bad_port = ClientError::BadBaseUrl("the port is not a number from 1 to 65535");
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(ClientError::BadBaseUrl("a bracket is not closed"))?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Err(ClientError::BadBaseUrl("it names no host"));
    }
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((host, 80)),
        None => Err(bad_port),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => match digits.parse() {
            Ok(0) | Err(_) => Err(bad_port),
            Ok(port) => Ok((host, port)),
        },
        Some(_) => Err(bad_port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, host: &str, port: u16, prefix: &str) {
        let url = BaseUrl::parse(text).unwrap();
        assert_eq!((url.host.as_str(), url.port, url.prefix.as_str()), (host, port, prefix), "{text}");
    }

    #[test]
    fn accepted() {
        check("http://127.0.0.1:4320", "127.0.0.1", 4320, "");
        check("http://127.0.0.1:4320/", "127.0.0.1", 4320, "");
        check("HTTP://node", "node", 80, "");
        check("http://[::1]:4320/under/a/prefix/", "::1", 4320, "/under/a/prefix");
        assert_eq!(BaseUrl::parse("http://[::1]:1").unwrap().authority, "[::1]:1");
    }

    #[test]
    fn refused() {
        assert!(matches!(BaseUrl::parse("https://node"), Err(ClientError::HttpsUnsupported)));
        assert!(matches!(BaseUrl::parse("HTTPS://node"), Err(ClientError::HttpsUnsupported)));
        for text in [
            "",
            "node:4320",
            "ftp://node",
            "http://",
            "http://:80",
            "http://a:0",
            "http://a:70000",
            "http://a:+1",
            "http://a:",
            "http://u@a",
            "http://a/?q",
            "http://a/#f",
            "http://[::1",
            "http://a b",
            "http://[::1]x",
            "http://a\r\nb",
        ] {
            assert!(matches!(BaseUrl::parse(text), Err(ClientError::BadBaseUrl(_))), "{text}");
        }
    }
}
