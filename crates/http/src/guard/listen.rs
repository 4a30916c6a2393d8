//! Where the server may listen. It must never open a socket: it only judges the address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where a node listens unless told otherwise.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4320);

/// The address leaves the machine and nobody asked for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is reachable from other machines: that needs tokens and TLS")]
pub struct NonLoopbackRefused {
    /// The refused address.
    pub address: SocketAddr,
}

/// Judges a listen address.
///
/// # Errors
/// [`NonLoopbackRefused`] unless the address is loopback (v4, v6 or v4 mapped into v6) or `allowed` is set.
pub fn check_listen(address: SocketAddr, allowed: bool) -> Result<(), NonLoopbackRefused> {
    let loopback = match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()),
    };
    if loopback || allowed { Ok(()) } else { Err(NonLoopbackRefused { address }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, allowed: bool, accepted: bool) {
        let address: SocketAddr = address.parse().unwrap();
        assert_eq!(check_listen(address, allowed).is_ok(), accepted, "{address} allowed={allowed}");
    }

    #[test]
    fn only_loopback_unless_allowed() {
        check("127.0.0.1:4320", false, true);
        check("127.8.9.10:0", false, true);
        check("[::1]:4320", false, true);
        check("[::ffff:127.0.0.1]:4320", false, true);
        check("0.0.0.0:4320", false, false);
        check("[::]:4320", false, false);
        check("192.168.1.10:4320", false, false);
        check("[::ffff:10.0.0.1]:4320", false, false);
        check("0.0.0.0:4320", true, true);
    }

    #[test]
    fn the_default_is_loopback() {
        assert_eq!(DEFAULT_LISTEN.to_string(), "127.0.0.1:4320");
        assert!(check_listen(DEFAULT_LISTEN, false).is_ok());
    }
}
