//! Sealog's execution engine and its event stores.
