//! Keys and authenticated encryption of the Sealog journal.
