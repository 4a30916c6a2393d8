//! A client of a Sealog node.
