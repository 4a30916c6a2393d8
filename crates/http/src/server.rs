//! The server from bind to the last byte: listen, serve, stop.
//!
//! It must never outlive its grace time, and never close a stream that still has its terminal event to
//! deliver before that.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use sealog_engine::Engine;
use tokio::net::{TcpListener, UnixListener};
use tokio::time::timeout;

use crate::accept::{TlsListener, accept_loop};
use crate::connection::Lifetime;
use crate::guard::{NonLoopbackRefused, check_listen};
use crate::options::ServerOptions;
use crate::router::router;

/// After the grace time the tasks are told to drop their sockets; this long is waited for that.
const DROP_WAIT: Duration = Duration::from_secs(1);

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is not loopback and that was not allowed.
    #[error(transparent)]
    NonLoopback(#[from] NonLoopbackRefused),
    /// The system refused the address.
    #[error("cannot listen on {address}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

/// The listener broke while the server ran; the engine was shut down all the same.
#[derive(Debug, thiserror::Error)]
#[error("the listener broke")]
pub struct ListenerBroke {
    #[source]
    source: io::Error,
}

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Every execution ended and every open answer was finished.
    Clean,
    /// The time was over first; what was still open was dropped.
    GraceExpired,
}

/// Where connections come from.
#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A bound listener, not yet serving.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    address: Option<SocketAddr>,
    options: Arc<ServerOptions>,
}

impl Server {
    /// Binds `address`; port 0 picks one. With `tls` in the options TLS is spoken there and nothing else.
    ///
    /// # Errors
    /// [`BindError`], before anything was bound when the address is refused.
    pub async fn bind(address: SocketAddr, options: ServerOptions) -> Result<Self, BindError> {
        check_listen(address, options.allow_non_loopback)?;
        let failed = |source| BindError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener: Listener::Tcp(listener), address: Some(address), options: Arc::new(options) })
    }

    /// Serves a socket in the file system that is listening already; without TLS. Inside a tokio runtime.
    ///
    /// # Errors
    /// It cannot be waited on.
    pub fn on_unix(listener: std::os::unix::net::UnixListener, options: ServerOptions) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = Listener::Unix(UnixListener::from_std(listener)?);
        Ok(Self { listener, address: None, options: Arc::new(options) })
    }

    /// The address the server listens on, with the port that was picked; `None` on a socket in the file system.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Serves the model API of `engine` until `signal` resolves, then shuts the engine and the server down.
    ///
    /// # Errors
    /// [`ListenerBroke`] when no connection can ever be accepted again.
    pub async fn run(
        self,
        engine: Engine,
        signal: impl Future<Output = ()>,
    ) -> Result<Shutdown, ListenerBroke> {
        let routes = router(engine.clone(), Arc::clone(&self.options));
        self.serve(routes, signal, async move { engine.shutdown().await }).await
    }

    /// Serves any router. `settle` runs after the last accept, ends the work whose answers are open and says
    /// whether it all ended.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub async fn serve(
        self,
        router: Router,
        signal: impl Future<Output = ()>,
        settle: impl Future<Output = bool>,
    ) -> Result<Shutdown, ListenerBroke> {
        let Self { listener, options, .. } = self;
        let lifetime = Lifetime::default();
        let broke = {
            let (shared, living) = (Arc::clone(&options), lifetime.clone());
            let accepting: Pin<Box<dyn Future<Output = io::Error> + Send>> = match (listener, &options.tls) {
                (Listener::Tcp(tcp), Some(tls)) => {
                    let tls = TlsListener { tcp, tls: tls.clone() };
                    Box::pin(accept_loop(tls, router, shared, living))
                }
                (Listener::Tcp(tcp), None) => Box::pin(accept_loop(tcp, router, shared, living)),
                (Listener::Unix(unix), _) => Box::pin(accept_loop(unix, router, shared, living)),
            };
            tokio::select! {
                biased;
                () = signal => None,
                source = accepting => Some(ListenerBroke { source }),
            }
            // The listener is dropped here: nothing is accepted from now on.
        };
        let settling = async {
            let settled = settle.await;
            lifetime.stop.cancel();
            lifetime.tasks.close();
            lifetime.tasks.wait().await;
            settled
        };
        let ended = match timeout(options.grace(), settling).await {
            Ok(true) => Shutdown::Clean,
            Ok(false) => Shutdown::GraceExpired,
            Err(_) => {
                lifetime.kill.cancel();
                lifetime.tasks.close();
                if timeout(DROP_WAIT, lifetime.tasks.wait()).await.is_err() {
                    tracing::warn!("connections are still open after the grace time");
                }
                Shutdown::GraceExpired
            }
        };
        match broke {
            None => Ok(ended),
            Some(broke) => Err(broke),
        }
    }
}
