//! The bytes of the Sealog journal: a pure codec, no I/O.
