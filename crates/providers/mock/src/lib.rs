//! A scripted provider without a network.
