//! Sealog's HTTP projection.
