//! `sealog config`: one module per verb.

pub mod check;
pub mod show;
