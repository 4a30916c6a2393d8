//! Where an upstream lives, and the rule that nothing leaves that origin.
//!
//! A request can only be sent to an [`Endpoint`], and an endpoint can only be made from a [`BaseUrl`], so no text
//! from a caller or an upstream ever chooses a host. Plain HTTP is for this machine alone: a credential must not
//! cross a network in the clear.

use std::fmt;

use reqwest::Url;

/// Longest base URL, in bytes.
pub const BASE_URL_BYTES_MAX: usize = 2048;

/// Why a base URL was refused. The text itself is never repeated: it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    #[error("the base URL is not an absolute URL of at most 2048 bytes")]
    Malformed,
    #[error("the base URL must use https, or http to 127.0.0.1, localhost or [::1]")]
    Scheme,
    #[error("the base URL must not hold user information")]
    UserInformation,
    #[error("the base URL must not hold a query or a fragment")]
    QueryOrFragment,
}

/// A URL that an upstream named was not below the origin it was configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL leaves the configured origin")]
pub struct LeavesOrigin;

/// A checked base URL: scheme, host, port and a path prefix; nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

/// One address below a base URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl BaseUrl {
    /// # Errors
    /// See [`BaseUrlError`]. What is checked is the parsed form, which is also what is connected to.
    pub fn parse(text: &str) -> Result<BaseUrl, BaseUrlError> {
        // The URL parser drops tabs and newlines and trims spaces; a configuration that needs that is a mistake.
        if text.len() > BASE_URL_BYTES_MAX || text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(BaseUrlError::Malformed);
        }
        let url = Url::parse(text).map_err(|_| BaseUrlError::Malformed)?;
        match (url.scheme(), url.host_str()) {
            ("https", Some(host)) if !host.is_empty() => {}
            ("http", Some("127.0.0.1" | "localhost" | "[::1]")) => {}
            _ => return Err(BaseUrlError::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseUrlError::UserInformation);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BaseUrlError::QueryOrFragment);
        }
        Ok(BaseUrl(url))
    }

    /// Whether connections to it are encrypted.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The base with `segments` appended to its path, each percent-encoded where needed.
    ///
    /// # Errors
    /// A segment that is empty, `.` or `..` would change what the others mean. A URL drops tabs and line ends, so that one
    /// with such could become one of these.
    pub fn endpoint(&self, segments: &[&str]) -> Result<Endpoint, LeavesOrigin> {
        let mut url = self.0.clone();
        let refused =
            |segment: &&str| matches!(*segment, "" | "." | "..") || segment.contains(['\t', '\n', '\r']);
        if segments.iter().any(refused) {
            return Err(LeavesOrigin);
        }
        url.path_segments_mut().map_err(|()| LeavesOrigin)?.pop_if_empty().extend(segments);
        self.pin(url)
    }

    /// A URL that the upstream itself gave, such as one to poll.
    ///
    /// # Errors
    /// Another origin, user information, a query or a fragment.
    pub fn endpoint_from_upstream(&self, text: &str) -> Result<Endpoint, LeavesOrigin> {
        self.pin(self.0.join(text).map_err(|_| LeavesOrigin)?)
    }

    fn pin(&self, url: Url) -> Result<Endpoint, LeavesOrigin> {
        let plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if plain && url.origin() == self.0.origin() { Ok(Endpoint(url)) } else { Err(LeavesOrigin) }
    }
}

impl Endpoint {
    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// The path as it will be requested.
    pub fn path(&self) -> &str {
        self.0.path()
    }
}

// A base URL holds no secret by the rules above, but a path may name a tenant: diagnostics show the origin.
impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({})", self.0.origin().ascii_serialization())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.0.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(), BaseUrlError>) {
        assert_eq!(BaseUrl::parse(text).map(|_| ()), expected, "{text}");
    }

    #[test]
    fn https_anywhere_and_http_only_to_this_machine() {
        check("https://api.example.com/v1", Ok(()));
        check("https://api.example.com:8443", Ok(()));
        check("http://127.0.0.1:8080/v1", Ok(()));
        check("http://localhost/v1/", Ok(()));
        check("http://[::1]:9/", Ok(()));
        check("HTTP://LOCALHOST/v1", Ok(()));
        for text in [
            "http://api.example.com/v1",
            "http://127.0.0.2/",
            "http://0.0.0.0/",
            "http://localhost.example.com/",
            "http://[::2]/",
            "ftp://localhost/",
            "file:///etc/passwd",
            "data:text/plain,x",
        ] {
            check(text, Err(BaseUrlError::Scheme));
        }
    }

    #[test]
    fn user_information_queries_and_fragments_are_refused() {
        check("https://user@api.example.com/", Err(BaseUrlError::UserInformation));
        check("https://:secret@api.example.com/", Err(BaseUrlError::UserInformation));
        check("http://localhost@evil.example.com/", Err(BaseUrlError::Scheme));
        check("https://api.example.com/?", Err(BaseUrlError::QueryOrFragment));
        check("https://api.example.com/?key=1", Err(BaseUrlError::QueryOrFragment));
        check("https://api.example.com/#", Err(BaseUrlError::QueryOrFragment));
        check("api.example.com", Err(BaseUrlError::Malformed));
        check("", Err(BaseUrlError::Malformed));
        check(" https://api.example.com", Err(BaseUrlError::Malformed));
        check("https://api.exa\nmple.com", Err(BaseUrlError::Malformed));
        check(&format!("https://a/{}", "x".repeat(BASE_URL_BYTES_MAX)), Err(BaseUrlError::Malformed));
    }

    #[test]
    fn errors_and_debug_do_not_repeat_the_text() {
        let refused = BaseUrl::parse("https://user:hunter2@example.com/").unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("hunter2"));
        let shown = format!("{:?}", BaseUrl::parse("https://example.com/tenant-7").unwrap());
        assert_eq!(shown, "BaseUrl(https://example.com)");
    }

    #[test]
    fn endpoints_keep_the_prefix_with_and_without_a_final_slash() {
        for base in ["https://example.com/v1", "https://example.com/v1/"] {
            let endpoint = BaseUrl::parse(base).unwrap().endpoint(&["chat", "completions"]).unwrap();
            assert_eq!(endpoint.path(), "/v1/chat/completions");
        }
        let bare = BaseUrl::parse("https://example.com").unwrap();
        assert_eq!(bare.endpoint(&["models"]).unwrap().path(), "/models");
        assert_eq!(bare.endpoint(&["a/b?c#d"]).unwrap().path(), "/a%2Fb%3Fc%23d");
        assert_eq!(bare.endpoint(&[".."]), Err(LeavesOrigin));
        assert_eq!(bare.endpoint(&["a", ""]), Err(LeavesOrigin));
        for dropped in ["..\t", ".\n.", "\r", "a\tb"] {
            assert_eq!(bare.endpoint(&["a", dropped]), Err(LeavesOrigin), "{dropped:?}");
        }
    }

    #[test]
    fn an_upstream_cannot_send_us_elsewhere() {
        let base = BaseUrl::parse("https://example.com/v1").unwrap();
        assert_eq!(base.endpoint_from_upstream("https://example.com/poll/1").unwrap().path(), "/poll/1");
        assert_eq!(base.endpoint_from_upstream("/poll/1").unwrap().path(), "/poll/1");
        for text in [
            "https://example.org/poll/1",
            "http://example.com/poll/1",
            "https://example.com:444/poll/1",
            "https://user@example.com/poll/1",
            "https://example.com/poll?x=1",
            "https://example.com/poll#x",
            "//example.org/poll",
            "https://example.com\u{2e}evil.org/",
        ] {
            assert_eq!(base.endpoint_from_upstream(text), Err(LeavesOrigin), "{text}");
        }
    }
}
