//! Bounded HTTP to model providers and their event streams.
