//! Names below one data directory. A `Name` cannot leave the directory: it is a checked file name and at most
//! one of the known folders, never a path.

use std::fmt;

/// A folder of the data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Folder {
    Root,
    Segments,
    Quarantine,
}

impl Folder {
    pub const ALL: [Folder; 3] = [Folder::Root, Folder::Segments, Folder::Quarantine];

    /// The folder's name below the data directory; empty for the directory itself.
    pub fn as_str(self) -> &'static str {
        match self {
            Folder::Root => "",
            Folder::Segments => "segments",
            Folder::Quarantine => "quarantine",
        }
    }
}

/// One file below the data directory, such as `store` or `segments/next`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    folder: Folder,
    file: String,
}

impl Name {
    /// Longest file name, in bytes.
    pub const FILE_BYTES_MAX: usize = 96;

    /// A name of letters, digits, `.`, `-` and `_` that does not start with a dot. `None` for anything else.
    pub fn new(folder: Folder, file: &str) -> Option<Name> {
        let fits = !file.is_empty() && file.len() <= Self::FILE_BYTES_MAX && !file.starts_with('.');
        let plain = file.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
        (fits && plain).then(|| Name { folder, file: file.to_owned() })
    }

    pub fn folder(&self) -> Folder {
        self.folder
    }

    pub fn file(&self) -> &str {
        &self.file
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.folder {
            Folder::Root => f.write_str(&self.file),
            folder => write!(f, "{}/{}", folder.as_str(), self.file),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
