//! File names of the data directory.

use sealog_disk::{Folder, Name};
use sealog_journal_format::names::{QuarantineName, SegmentName};

/// A name that parses is the one name of what it says, and never leaves its folder.
pub(super) fn file_names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(name) = SegmentName::parse(text) {
        assert_eq!(name.file_name(), text);
        assert!(0 < name.first() && name.first() <= name.last());
        assert_eq!(SegmentName::parse_summary(&name.summary_name()), Some(name));
        assert!(Name::new(Folder::Segments, text).is_some());
    }
    if let Some(name) = SegmentName::parse_summary(text) {
        assert_eq!(name.summary_name(), text);
    }
    if let Some(name) = QuarantineName::parse(text) {
        assert!(text == name.tail_name() || text == name.report_name());
        assert!(Name::new(Folder::Quarantine, text).is_some());
    }
    for folder in Folder::ALL {
        if let Some(name) = Name::new(folder, text) {
            assert!(!text.contains(['/', '\\', '\0']) && !text.starts_with('.'));
            assert_eq!((name.folder(), name.file()), (folder, text));
        }
    }
}
