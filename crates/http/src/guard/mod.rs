//! Who may ask: where the server may listen, which names it answers to, and which tokens open what.
//!
//! Every request passes [`Guard::judge`] before any handler sees it. Nothing here reads a file or opens a socket, and
//! no refusal says more than which of the rules it was.

mod hosts;
mod judge;
mod listen;
mod refusal;
mod tokens;

pub use hosts::{AllowedNames, BadName};
pub use judge::Guard;
pub(crate) use judge::{Refused, guarded};
pub use listen::{DEFAULT_LISTEN, NonLoopbackRefused, check_listen};
pub use tokens::{DIGEST_BYTES, Scope, Scopes, TOKEN_LENGTH_MAX, TokenSet, Tokens, digest};

#[cfg(test)]
mod tests;
