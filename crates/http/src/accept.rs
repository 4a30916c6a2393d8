//! The accept loop: one permit per connection, and no error of one peer or one moment ends it.
//!
//! It must never spin: when the process is out of descriptors the waiting connection stays readable, so
//! accepting again at once would burn a core until one is free.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::connection::{self, Lifetime};
use crate::options::ServerOptions;
use crate::tls::{Tls, TlsSocket};

const BACK_OFF_FIRST: Duration = Duration::from_millis(20);
const BACK_OFF_LAST: Duration = Duration::from_secs(1);

/// Where connections come from; a test brings its own.
pub(crate) trait Listen: Send {
    type Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Socket>> + Send;
}

impl Listen for TcpListener {
    type Socket = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _peer): (TcpStream, SocketAddr) = TcpListener::accept(self).await?;
        // A frame must leave when it is written, not when the next one is.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Listen for UnixListener {
    type Socket = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        let (stream, _peer) = UnixListener::accept(self).await?;
        Ok(stream)
    }
}

/// Every connection of this listener speaks TLS.
pub(crate) struct TlsListener {
    pub tcp: TcpListener,
    pub tls: Tls,
}

impl Listen for TlsListener {
    type Socket = TlsSocket;

    async fn accept(&mut self) -> io::Result<TlsSocket> {
        Ok(self.tls.accept(Listen::accept(&mut self.tcp).await?))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// The peer gave up before we took it.
    Peer,
    /// Out of descriptors or memory: it passes.
    Exhausted,
    /// The listener itself is no listener any more.
    Listener,
}

fn classify(error: &io::Error) -> Trouble {
    const EBADF: i32 = 9;
    const EINVAL: i32 = 22;
    const ENOTSOCK: i32 = 88;
    match error.kind() {
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::NotConnected
        | io::ErrorKind::Interrupted => Trouble::Peer,
        _ => match error.raw_os_error() {
            Some(EBADF | EINVAL | ENOTSOCK) => Trouble::Listener,
            Some(_) | None => Trouble::Exhausted,
        },
    }
}

/// Accepts until dropped.
///
/// # Errors
/// Returns only when the listener is broken for good.
pub(crate) async fn accept_loop<L: Listen>(
    mut listener: L,
    router: Router,
    options: Arc<ServerOptions>,
    lifetime: Lifetime,
) -> io::Error {
    let permits = Arc::new(Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let mut back_off = BACK_OFF_FIRST;
    loop {
        // Taken before the accept: above the cap a connection waits in the kernel instead of in our memory.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return io::Error::other("the connection permits are gone");
        };
        match listener.accept().await {
            Ok(socket) => {
                back_off = BACK_OFF_FIRST;
                let serving =
                    connection::serve(socket, router.clone(), Arc::clone(&options), lifetime.clone());
                let open = options.stats.connection();
                lifetime.tasks.spawn(async move {
                    let ended = serving.await;
                    tracing::debug!(?ended, "connection ended");
                    drop((permit, open));
                });
            }
            Err(error) => match classify(&error) {
                Trouble::Peer => {}
                Trouble::Exhausted => {
                    tracing::warn!(kind = ?error.kind(), wait = ?back_off, "no connection can be accepted now");
                    sleep(back_off).await;
                    back_off = (back_off * 2).min(BACK_OFF_LAST);
                }
                Trouble::Listener => return error,
            },
        }
    }
}

#[cfg(test)]
mod tests;
