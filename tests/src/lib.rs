//! Cross-crate behaviour of Sealog, by topic.
