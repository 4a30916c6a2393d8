//! TLS in front of a connection: versions 1.2 and 1.3, one certificate chain, no client certificates.
//!
//! The handshake is part of the first read, so that the waits that bound a silent connection bound a silent handshake
//! as well. Keys come in as bytes; where they stand is the composition root's affair.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// Why a certificate and its key are not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTls {
    /// The first file holds no certificate.
    #[error("it holds no PEM certificate")]
    Certificate,
    /// The second file holds no private key.
    #[error("it holds no PEM private key")]
    Key,
    /// They do not belong together, or are of a kind that is not spoken.
    #[error("certificate and key do not fit, or are of a kind that is not supported")]
    Pair,
}

/// The certificate that counts now; whoever reads the files again puts another one in its place.
#[derive(Clone)]
pub struct Tls {
    now: Arc<RwLock<Arc<ServerConfig>>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// From PEM texts: the chain, the node's own certificate first, and its key.
    ///
    /// # Errors
    /// [`BadTls`]
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Tls, BadTls> {
        Ok(Tls { now: Arc::new(RwLock::new(config(chain, key)?)) })
    }

    /// From the next connection on this pair counts; connections that are open go on.
    ///
    /// # Errors
    /// [`BadTls`]; the old pair counts then.
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<(), BadTls> {
        let config = config(chain, key)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn accept(&self, socket: TcpStream) -> TlsSocket {
        let config = Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner));
        TlsSocket { state: State::Handshake(Box::new(TlsAcceptor::from(config).accept(socket))) }
    }
}

fn config(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, BadTls> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(|_| BadTls::Certificate)?;
    if chain.is_empty() {
        return Err(BadTls::Certificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| BadTls::Key)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| BadTls::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|_| BadTls::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A connection whose handshake happens as it is read.
pub(crate) struct TlsSocket {
    state: State,
}

enum State {
    Handshake(Box<Accept<TcpStream>>),
    Open(Box<TlsStream<TcpStream>>),
    /// The peer spoke no TLS that we do.
    Failed,
}

impl TlsSocket {
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let State::Handshake(accept) = &mut self.state {
            match ready!(Pin::new(accept).poll(cx)) {
                Ok(stream) => self.state = State::Open(Box::new(stream)),
                Err(error) => {
                    self.state = State::Failed;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(match &mut self.state {
            State::Open(stream) => Ok(Pin::new(stream.as_mut())),
            State::Handshake(_) | State::Failed => Err(io::ErrorKind::ConnectionAborted.into()),
        })
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_open(cx))?.poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.get_mut().poll_open(cx))?.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_open(cx))?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().state {
            State::Open(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            // There is nobody to say goodbye to.
            State::Handshake(_) | State::Failed => Poll::Ready(Ok(())),
        }
    }
}
