//! One module per verb: it calls one thing and renders the answer.

pub mod cancel;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod journal;
pub mod ps;
pub mod run;
pub mod serve;
pub mod show;
pub mod tail;
pub mod token;
