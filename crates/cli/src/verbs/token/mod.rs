//! The verbs about bearer tokens.

pub mod new;
