//! One request on one connection.
//!
//! It must never resend: whether a request may be sent again is known only to whoever made it.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::base_url::Place;
use crate::error::api_failure;
use crate::greeting::Greeting;
use crate::tls::handshake_failed;
use crate::{Client, ClientError};

/// The largest answer that is read as one: a result of 4 MiB with what stands around it.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A request without its address.
#[derive(Debug)]
pub(crate) struct Call {
    pub method: Method,
    pub path: String,
    pub headers: Vec<(&'static str, HeaderValue)>,
    pub body: Bytes,
}

impl Call {
    pub fn get(path: String) -> Self {
        Self { method: Method::GET, path, headers: Vec::new(), body: Bytes::new() }
    }

    pub fn post(path: String) -> Self {
        Self { method: Method::POST, path, headers: Vec::new(), body: Bytes::new() }
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: Bytes,
}

impl Answer {
    pub fn failure(&self) -> ClientError {
        api_failure(self.status, &self.body)
    }

    pub fn text(&self) -> Result<String, ClientError> {
        String::from_utf8(self.body.to_vec()).map_err(|_| ClientError::Protocol("it is not UTF-8"))
    }
}

/// A connection of whatever kind.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

async fn tcp(host: &str, port: u16) -> Result<TcpStream, ClientError> {
    let stream = TcpStream::connect((host, port)).await.map_err(ClientError::Connect)?;
    stream.set_nodelay(true).map_err(ClientError::Connect)?;
    Ok(stream)
}

impl Client {
    async fn connect(&self, greeting: &Greeting) -> Result<Box<dyn Duplex>, ClientError> {
        match &self.base.place {
            Place::Plain { host, port } => Ok(Box::new(greeting.of(tcp(host, *port).await?))),
            Place::Tls { host, port, name } => {
                // Whoever made the client of an https address put a configuration beside it.
                let config = self.tls.as_ref().ok_or(ClientError::NoRootCertificates)?;
                let connecting =
                    TlsConnector::from(Arc::clone(config)).connect(name.clone(), tcp(host, *port).await?);
                Ok(Box::new(connecting.await.map_err(handshake_failed)?))
            }
            Place::Socket(path) => {
                Ok(Box::new(UnixStream::connect(path).await.map_err(ClientError::Connect)?))
            }
        }
    }

    /// Sends and waits for the head of the answer.
    pub(crate) async fn open(&self, call: Call) -> Result<Response<Incoming>, ClientError> {
        let Self { base, options, authorization, .. } = self;
        let greeting = Greeting::default();
        let stream = match timeout(options.connect, self.connect(&greeting)).await {
            Ok(connected) => connected.map_err(|error| base.named(error))?,
            Err(_) => return Err(base.named(ClientError::Connect(io::ErrorKind::TimedOut.into()))),
        };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(ClientError::Transport)?;
        // Ends when the answer's body is read or dropped.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", base.prefix, call.path))
            .header(header::HOST, &base.authority)
            .header(header::CONNECTION, "close");
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(call.body))
            .map_err(|_| ClientError::BadBaseUrl("it cannot stand in a request"))?;
        match timeout(options.answer, sender.send_request(request)).await {
            Ok(answer) => answer.map_err(|error| no_head(error, &greeting)),
            Err(_) => Err(ClientError::TimedOut),
        }
    }

    /// Sends and reads the whole answer.
    pub(crate) async fn ask(&self, call: Call) -> Result<Answer, ClientError> {
        let response = self.open(call).await?;
        self.whole(response).await
    }

    pub(crate) async fn whole(&self, response: Response<Incoming>) -> Result<Answer, ClientError> {
        let status = response.status().as_u16();
        let mut incoming = response.into_body();
        let reading = async {
            let mut body = BytesMut::new();
            while let Some(frame) = incoming.frame().await {
                let Ok(data) = frame.map_err(ClientError::Transport)?.into_data() else { continue };
                if body.len() + data.len() > ANSWER_BYTES_MAX {
                    return Err(ClientError::TooLarge { bytes_max: ANSWER_BYTES_MAX });
                }
                body.extend_from_slice(&data);
            }
            Ok(Answer { status, body: body.freeze() })
        };
        timeout(self.options.answer, reading).await.unwrap_or(Err(ClientError::TimedOut))
    }
}

fn no_head(error: hyper::Error, greeting: &Greeting) -> ClientError {
    match error.is_parse() {
        true if greeting.is_tls() => ClientError::NeedsTls(error),
        true => ClientError::NotHttp(error),
        false => ClientError::Transport(error),
    }
}
