//! Where a provider's secret comes from, and its short life.
//!
//! A source is a name, never the secret: configuration holds no key. It is read at each call, so a rotated key
//! needs no restart, and a missing one fails that execution alone. What was read is wiped when dropped; the
//! header made from it is marked sensitive, and its copy lives as long as the request.

use std::fmt;
use std::path::{Path, PathBuf};

use http::HeaderValue;
use sealog_events::PortableCode;
use sealog_execution::Failure;
use zeroize::Zeroizing;

/// Largest secret, in bytes, surrounding white space included.
pub const CREDENTIAL_BYTES_MAX: usize = 8 * 1024;

/// The name of an environment variable that holds a secret: `[A-Z][A-Z0-9_]{1,127}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentName(String);

impl EnvironmentName {
    /// `None` for any other text.
    pub fn parse(text: &str) -> Option<EnvironmentName> {
        let fits = (2..=128).contains(&text.len()) && text.as_bytes()[0].is_ascii_uppercase();
        let plain = text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        (fits && plain).then(|| EnvironmentName(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where to look.
#[derive(Clone, PartialEq, Eq)]
pub enum CredentialSource {
    Environment(EnvironmentName),
    /// A regular file; surrounding white space is not part of the secret. Its permissions are not judged:
    /// secrets that a container mounts are commonly readable by everybody inside it.
    File(PathBuf),
}

// A path may name a person or a tenant.
impl fmt::Debug for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialSource::Environment(name) => write!(f, "Environment({})", name.as_str()),
            CredentialSource::File(_) => f.write_str("File"),
        }
    }
}

/// No usable secret where one was configured. Says nothing about the secret or the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("the credential is not set or cannot be read")]
    Missing,
    #[error("the credential is empty, too long or holds characters that no header may hold")]
    Malformed,
}

impl From<CredentialError> for Failure {
    fn from(_: CredentialError) -> Failure {
        Failure::permanent(PortableCode::ProviderUnavailable, "Provider credential is not available")
    }
}

/// A secret that was read. Wiped when dropped.
pub struct Credential(Zeroizing<Vec<u8>>);

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

impl CredentialSource {
    /// Reads the secret now. Needs a tokio runtime.
    ///
    /// # Errors
    /// See [`CredentialError`].
    pub async fn read(&self) -> Result<Credential, CredentialError> {
        match self {
            CredentialSource::Environment(name) => {
                let value = std::env::var_os(name.as_str()).ok_or(CredentialError::Missing)?;
                Credential::checked(Zeroizing::new(value.into_encoded_bytes()))
            }
            CredentialSource::File(path) => {
                let path = path.clone();
                // A disk may be slow, and must not hold up the runtime.
                let read = tokio::task::spawn_blocking(move || read_file(&path));
                read.await.map_err(|_| CredentialError::Missing)?
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Credential, CredentialError> {
    let content = sealog_disk::real::read_regular(path, CREDENTIAL_BYTES_MAX).map_err(|error| {
        tracing::debug!(kind = ?error.kind, "credential file");
        CredentialError::Missing
    })?;
    let bytes = Zeroizing::new(content.bytes);
    if content.regular { Credential::checked(bytes) } else { Err(CredentialError::Missing) }
}

impl Credential {
    fn checked(bytes: Zeroizing<Vec<u8>>) -> Result<Credential, CredentialError> {
        if bytes.len() > CREDENTIAL_BYTES_MAX {
            return Err(CredentialError::Malformed);
        }
        let secret = bytes.trim_ascii();
        if secret.is_empty() || !secret.iter().all(u8::is_ascii_graphic) {
            return Err(CredentialError::Malformed);
        }
        Ok(Credential(Zeroizing::new(secret.to_vec())))
    }

    /// `Bearer <secret>`, marked sensitive.
    pub fn bearer(&self) -> HeaderValue {
        self.header("Bearer ")
    }

    /// `<prefix><secret>`, marked sensitive. `prefix` is printable ASCII.
    pub fn header(&self, prefix: &'static str) -> HeaderValue {
        // Written once into a buffer of the final size: growing it would leave copies behind.
        let mut text = Zeroizing::new(Vec::with_capacity(prefix.len() + self.0.len()));
        text.extend_from_slice(prefix.as_bytes());
        text.extend_from_slice(&self.0);
        let mut value = HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_names_are_upper_case() {
        for name in ["AB", "OPENAI_API_KEY", "A1", "A_", &"A".repeat(128)] {
            assert_eq!(EnvironmentName::parse(name).as_ref().map(EnvironmentName::as_str), Some(name));
        }
        for name in ["", "A", "a", "1A", "_A", "Ab", "A-B", "A B", "A=B", "\u{c4}B", &"A".repeat(129)] {
            assert_eq!(EnvironmentName::parse(name), None, "{name}");
        }
    }

    async fn shown(source: CredentialSource) -> Result<String, CredentialError> {
        let header = source.read().await?.bearer();
        assert!(header.is_sensitive());
        Ok(header.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn the_environment_is_read_at_the_call() {
        let named = |name| CredentialSource::Environment(EnvironmentName::parse(name).unwrap());
        // Tests may not set variables, which is unsound beside other threads; this one is always there.
        let path = Zeroizing::new(std::env::var("PATH").unwrap().into_bytes());
        let expected = Credential::checked(path).map(|path| path.bearer().to_str().unwrap().to_owned());
        assert_eq!(shown(named("PATH")).await, expected);
        assert_eq!(shown(named("SEALOG_TEST_THIS_IS_NEVER_SET")).await, Err(CredentialError::Missing));
    }

    #[tokio::test]
    async fn a_file_is_read_at_the_call() {
        use std::io::Write;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let source = CredentialSource::File(file.path().to_owned());
        assert_eq!(shown(source.clone()).await, Err(CredentialError::Malformed));
        file.write_all(b"sk-1\n").unwrap();
        assert_eq!(shown(source.clone()).await.as_deref(), Ok("Bearer sk-1"));
        file.write_all(&[b'x'; CREDENTIAL_BYTES_MAX]).unwrap();
        assert_eq!(shown(source.clone()).await, Err(CredentialError::Missing));
        file.close().unwrap();
        assert_eq!(shown(source).await, Err(CredentialError::Missing));
        assert_eq!(shown(CredentialSource::File("/".into())).await, Err(CredentialError::Missing));
        assert_eq!(shown(CredentialSource::File("/dev/null".into())).await, Err(CredentialError::Missing));
        // A pipe that nobody writes to would keep a thread for ever, at every call one more.
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert_eq!(shown(CredentialSource::File(pipe)).await, Err(CredentialError::Missing));
    }

    #[track_caller]
    fn check(content: &[u8], expected: Result<&str, CredentialError>) {
        let read = Credential::checked(Zeroizing::new(content.to_vec()));
        let shown = read.map(|credential| credential.header("").to_str().unwrap().to_owned());
        assert_eq!(shown, expected.map(str::to_owned));
    }

    #[test]
    fn only_what_a_header_may_hold_is_a_secret() {
        check(b"sk-1234", Ok("sk-1234"));
        check(b" sk-1234\r\n", Ok("sk-1234"));
        check(b"", Err(CredentialError::Malformed));
        check(b" \n", Err(CredentialError::Malformed));
        check(b"two words", Err(CredentialError::Malformed));
        check(b"line\nbreak", Err(CredentialError::Malformed));
        check(b"sk-\xff", Err(CredentialError::Malformed));
        check(b"sk-\0", Err(CredentialError::Malformed));
        check(&[b'x'; CREDENTIAL_BYTES_MAX + 1], Err(CredentialError::Malformed));
    }

    #[test]
    fn no_debug_text_and_no_error_holds_the_secret() {
        let credential = Credential::checked(Zeroizing::new(b"hunter2".to_vec())).unwrap();
        let file = CredentialSource::File("/home/somebody/hunter2".into());
        let shown = format!("{credential:?} {:?} {file:?}", credential.bearer());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
