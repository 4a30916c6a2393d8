//! Bearer tokens: their digests, what each may do, and how one is recognised.
//!
//! A token has 256 random bits, so that one fast hash of it is as good as a slow one. The token itself is never kept,
//! and how long a comparison takes says nothing about the digests.

use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Bytes of a token's digest.
pub const DIGEST_BYTES: usize = 32;
/// Longest text that is looked at as a token.
pub const TOKEN_LENGTH_MAX: usize = 256;

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Looking: executions, their events and results, providers, models.
    Read,
    /// Submitting and cancelling.
    Write,
    /// The operation of the node itself: its metrics.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

    /// The word in a token file.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Scope::Read => 1,
            Scope::Write => 2,
            Scope::Admin => 4,
        }
    }
}

/// What a token may do. Whoever may write may read; `admin` is apart, so that a collector of metrics reads nothing
/// else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// With one more.
    #[must_use]
    pub fn with(self, scope: Scope) -> Scopes {
        let implied = if scope == Scope::Write { Scope::Read.bit() } else { 0 };
        Scopes(self.0 | scope.bit() | implied)
    }

    /// With all of another token.
    #[must_use]
    pub(super) fn and(self, other: Scopes) -> Scopes {
        Scopes(self.0 | other.0)
    }

    /// Whether this is among them.
    pub fn contain(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }
}

/// The SHA-256 of a token's text.
pub fn digest(token: &[u8]) -> [u8; DIGEST_BYTES] {
    Sha256::digest(token).into()
}

/// The tokens of one reading of the file.
#[derive(Debug, Clone, Default)]
pub struct TokenSet {
    known: Vec<([u8; DIGEST_BYTES], Scopes)>,
}

impl TokenSet {
    /// Adds a token by its digest.
    pub fn add(&mut self, digest: [u8; DIGEST_BYTES], scopes: Scopes) {
        self.known.push((digest, scopes));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none: then nobody gets in.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What the presented token may do; `None` for one that is not known. All digests are compared, whichever fits.
    pub(super) fn find(&self, token: &[u8]) -> Option<Scopes> {
        if token.len() > TOKEN_LENGTH_MAX {
            return None;
        }
        let presented = digest(token);
        let mut found = Choice::from(0);
        let mut scopes = 0;
        for (known, allowed) in &self.known {
            let same = known.ct_eq(&presented);
            found |= same;
            scopes.conditional_assign(&allowed.0, same);
        }
        bool::from(found).then_some(Scopes(scopes))
    }
}

/// The tokens that count now; whoever reads the file again puts others in their place.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    now: Arc<RwLock<Arc<TokenSet>>>,
}

impl Tokens {
    /// These, until they are replaced.
    pub fn new(set: TokenSet) -> Tokens {
        Tokens { now: Arc::new(RwLock::new(Arc::new(set))) }
    }

    /// From the next request on these count; answers under way go on.
    pub fn replace(&self, set: TokenSet) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }

    pub(super) fn now(&self) -> Arc<TokenSet> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }
}
