//! The address of a node: `https://host[:port][/prefix]`, the same with `http`, or `unix:PATH`.

use std::io;
use std::net::IpAddr;
use std::os::unix::net::SocketAddr;
use std::path::PathBuf;

use rustls::pki_types::ServerName;

use crate::ClientError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    /// As the Host header shows it.
    pub authority: String,
    pub place: Place,
    /// Empty, or `/...` without a slash at the end.
    pub prefix: String,
}

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A host without brackets around an IPv6 address.
    Plain { host: String, port: u16 },
    /// `name` is what the node's certificate must be for.
    Tls { host: String, port: u16, name: ServerName<'static> },
    /// A socket in the file system.
    Socket(PathBuf),
}

impl BaseUrl {
    pub fn parse(text: &str) -> Result<Self, ClientError> {
        if let Some(path) = without_prefix(text, "unix:") {
            return socket(path);
        }
        let (rest, tls) = match (without_prefix(text, "https://"), without_prefix(text, "http://")) {
            (Some(rest), _) => (rest, true),
            (None, Some(rest)) => (rest, false),
            (None, None) => {
                return Err(ClientError::BadBaseUrl("it must start with https://, http:// or unix:"));
            }
        };
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
        let host = host.to_owned();
        let place = if tls {
            let name = ServerName::try_from(host.clone())
                .map_err(|_| ClientError::BadBaseUrl("no certificate can be for its host"))?;
            Place::Tls { host, port: port.unwrap_or(443), name }
        } else {
            Place::Plain { host, port: port.unwrap_or(80) }
        };
        let prefix = path.trim_end_matches('/').to_owned();
        Ok(Self { authority: authority.to_owned(), place, prefix })
    }

    /// Says where no connection was to be had.
    pub fn named(&self, error: ClientError) -> ClientError {
        match error {
            ClientError::Connect(cause) => {
                ClientError::Connect(io::Error::new(cause.kind(), format!("{}: {cause}", self.shown())))
            }
            other => other,
        }
    }

    fn shown(&self) -> String {
        match &self.place {
            Place::Plain { host, port } | Place::Tls { host, port, .. } if host.contains(':') => {
                format!("[{host}]:{port}")
            }
            Place::Plain { host, port } | Place::Tls { host, port, .. } => format!("{host}:{port}"),
            Place::Socket(path) => path.to_string_lossy().escape_debug().to_string(),
        }
    }

    /// Whether what is sent there crosses a network that anybody may read.
    pub fn is_in_the_clear(&self) -> bool {
        match &self.place {
            Place::Plain { host, .. } => !is_this_machine(host),
            Place::Tls { .. } | Place::Socket(_) => false,
        }
    }
}

/// A node takes `localhost` for a name of its own on every listener.
fn socket(path: &str) -> Result<BaseUrl, ClientError> {
    let path = PathBuf::from(path);
    let fits = !path.as_os_str().is_empty() && SocketAddr::from_pathname(&path).is_ok();
    if !fits {
        return Err(ClientError::BadBaseUrl("unix: takes the path of a socket, which has at most 107 bytes"));
    }
    Ok(BaseUrl { authority: "localhost".to_owned(), place: Place::Socket(path), prefix: String::new() })
}

/// What follows `prefix`, however its letters are written.
fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn is_this_machine(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), ClientError> {
    let bad_port = ClientError::BadBaseUrl("the port is not a number from 1 to 65535");
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(ClientError::BadBaseUrl("a bracket is not closed"))?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Err(ClientError::BadBaseUrl("it names no host"));
    }
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((host, None)),
        None => Err(bad_port),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => match digits.parse() {
            Ok(0) | Err(_) => Err(bad_port),
            Ok(port) => Ok((host, Some(port))),
        },
        Some(_) => Err(bad_port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, place: &str, prefix: &str) {
        let url = BaseUrl::parse(text).unwrap();
        let found = match &url.place {
            Place::Plain { host, port } => format!("plain {host} {port}"),
            Place::Tls { host, port, name } => {
                assert_eq!(name.to_str(), host.as_str());
                format!("tls {host} {port}")
            }
            Place::Socket(path) => format!("socket {}", path.display()),
        };
        assert_eq!((found.as_str(), url.prefix.as_str()), (place, prefix), "{text}");
    }

    #[test]
    fn accepted() {
        check("http://127.0.0.1:4320", "plain 127.0.0.1 4320", "");
        check("http://127.0.0.1:4320/", "plain 127.0.0.1 4320", "");
        check("HTTP://node", "plain node 80", "");
        check("http://[::1]:4320/under/a/prefix/", "plain ::1 4320", "/under/a/prefix");
        check("https://node.example.com", "tls node.example.com 443", "");
        check("HTTPS://127.0.0.1:4320/p", "tls 127.0.0.1 4320", "/p");
        check("https://[::1]:1", "tls ::1 1", "");
        check("unix:node.sock", "socket node.sock", "");
        check("unix:/run/a b/node.sock", "socket /run/a b/node.sock", "");
        assert_eq!(BaseUrl::parse("http://[::1]:1").unwrap().authority, "[::1]:1");
        assert_eq!(BaseUrl::parse("unix:/s").unwrap().authority, "localhost");
    }

    #[test]
    fn a_lost_connection_names_where_it_went() {
        let refused = || ClientError::Connect(io::ErrorKind::ConnectionRefused.into());
        for (url, place) in [
            ("http://127.0.0.1:4320/p", "127.0.0.1:4320: "),
            ("https://node.example.com", "node.example.com:443: "),
            ("http://[::1]:1", "[::1]:1: "),
            ("unix:/run/a b.sock", "/run/a b.sock: "),
        ] {
            let ClientError::Connect(cause) = BaseUrl::parse(url).unwrap().named(refused()) else {
                panic!("{url}")
            };
            assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);
            assert!(cause.to_string().starts_with(place), "{cause}");
        }
    }

    #[test]
    fn only_plain_http_to_another_machine_is_in_the_clear() {
        for text in
            ["http://node", "http://10.0.0.1:80", "http://[2001:db8::1]", "http://localhost.example.com"]
        {
            assert!(BaseUrl::parse(text).unwrap().is_in_the_clear(), "{text}");
        }
        let inside = [
            "http://localhost:1",
            "http://127.9.9.9",
            "http://[::1]",
            "http://[::ffff:127.0.0.1]",
            "https://node",
        ];
        for text in inside.into_iter().chain(["unix:/s"]) {
            assert!(!BaseUrl::parse(text).unwrap().is_in_the_clear(), "{text}");
        }
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "node:4320",
            "ftp://node",
            "http://",
            "https://",
            "https://no_name!",
            "http://:80",
            "http://a:0",
            "http://a:70000",
            "http://a:+1",
            "http://a:",
            "http://u@a",
            "https://u:p@a",
            "http://a/?q",
            "http://a/#f",
            "http://[::1",
            "http://a b",
            "http://[::1]x",
            "http://a\r\nb",
            "unix:",
            "unix:a\0b",
            &format!("unix:/{}", "x".repeat(107)),
        ] {
            assert!(matches!(BaseUrl::parse(text), Err(ClientError::BadBaseUrl(_))), "{text}");
        }
    }
}
