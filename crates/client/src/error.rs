//! What can go wrong between here and a node.

use std::io;

use serde::Deserialize;

/// The node's own error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiFailure {
    /// HTTP status.
    pub status: u16,
    /// The portable code, or `not_found`; empty when the answer carried none.
    pub code: String,
    /// The node's public sentence.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

/// What is wrong with a node's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// No root that counts here signed it.
    #[error("nobody who is trusted here signed its certificate")]
    UnknownIssuer,
    /// It is over.
    #[error("its certificate has expired, or the clock here is wrong")]
    Expired,
    /// It has not begun.
    #[error("its certificate is not valid yet, or the clock here is wrong")]
    NotYetValid,
    /// It belongs to somebody of another name.
    #[error("its certificate is for another name than the address says")]
    OtherName,
    /// It is a CA's own, as `openssl req -x509` makes one unless it is told otherwise.
    #[error("its certificate is that of a CA, which signs others and stands for no node")]
    Authority,
    /// Anything else that a verifier finds.
    #[error("its certificate is not in order")]
    NotInOrder,
}

/// Why a call gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The base URL is none this client can use.
    #[error("the node's address is not usable: {0}")]
    BadBaseUrl(&'static str),
    /// The text that should hold the certificates of a CA does not.
    #[error("it holds no PEM certificate that can sign others")]
    BadCa,
    /// This machine trusts nobody, so that no https node can be.
    #[error("this machine has no root certificates")]
    NoRootCertificates,
    /// A token must not cross a network in the clear.
    #[error("a token is not sent over plain http to another machine, where others can read it")]
    TokenInTheClear,
    /// An argument cannot be sent as it is.
    #[error("{0}")]
    BadArgument(&'static str),
    /// No connection. Nothing was sent.
    #[error("no connection to the node")]
    Connect(#[source] io::Error),
    /// The node's certificate is not one to trust. Nothing was sent.
    #[error("the node is not trusted: {0}")]
    NotTrusted(Distrust),
    /// What answers there speaks no TLS, or none that this client speaks. Nothing was sent.
    #[error("what answers there speaks no TLS that is known here")]
    NoTls(#[source] io::Error),
    /// What answers there speaks TLS, and was asked without. It did not read the request.
    #[error("what answers there speaks TLS: it is asked over https://")]
    NeedsTls(#[source] hyper::Error),
    /// The connection failed under way.
    #[error("the connection to the node broke")]
    Transport(#[source] hyper::Error),
    /// Something came back that is no HTTP.
    #[error("what answered speaks no HTTP")]
    NotHttp(#[source] hyper::Error),
    /// The node said nothing for too long.
    #[error("the node did not answer in time")]
    TimedOut,
    /// The node answered with an error.
    #[error("the node answered {}: {}", .0.status, if .0.message.is_empty() { "no reason given" } else { &.0.message })]
    Api(ApiFailure),
    /// The answer is none that a node gives.
    #[error("the answer is not the protocol's: {0}")]
    Protocol(&'static str),
    /// The answer is larger than this client takes.
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound that was reached.
        bytes_max: usize,
    },
    /// An event stream kept breaking before its terminal event.
    #[error("the event stream ended before a terminal event, {attempts} times in a row")]
    Truncated {
        /// The last sequence received; following from here loses nothing.
        last_sequence: u64,
        /// Attempts without a single new event.
        attempts: u32,
    },
}

impl ClientError {
    /// Whether the request may have had an effect all the same.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::BadBaseUrl(_)
            | Self::BadCa
            | Self::NoRootCertificates
            | Self::TokenInTheClear
            | Self::BadArgument(_)
            | Self::Connect(_)
            | Self::NotTrusted(_)
            | Self::NoTls(_)
            | Self::NeedsTls(_) => false,
            Self::Api(failure) => failure.status >= 500 && failure.status != 503,
            // A broken stream of a node may look like it, too.
            Self::Transport(_)
            | Self::NotHttp(_)
            | Self::TimedOut
            | Self::Protocol(_)
            | Self::TooLarge { .. }
            | Self::Truncated { .. } => true,
        }
    }
}

#[derive(Deserialize)]
struct Envelope {
    error: Body,
}

#[derive(Deserialize)]
struct Body {
    code: String,
    message: String,
    #[serde(default)]
    retryable: bool,
}

/// The error in an answer that is no success; a body that is no envelope leaves only the status.
pub(crate) fn api_failure(status: u16, body: &[u8]) -> ClientError {
    let failure = match serde_json::from_slice::<Envelope>(body) {
        Ok(Envelope { error: Body { code, message, retryable } }) => {
            ApiFailure { status, code, message, retryable }
        }
        Err(_) => ApiFailure { status, code: String::new(), message: String::new(), retryable: false },
    };
    ClientError::Api(failure)
}
