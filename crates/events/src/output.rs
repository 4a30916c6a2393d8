//! The output family: references to produced media.

/// A reference to something a provider produced. It is never fetched here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Not empty; at most [`crate::limits::URI_BYTES_MAX`] bytes.
    pub uri: String,
    pub media_type: Option<String>,
    pub name: Option<String>,
    /// The provider's own time text, kept as given.
    pub expires_at: Option<String>,
}
