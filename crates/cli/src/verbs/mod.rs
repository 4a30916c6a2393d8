//! One module per verb: it calls one thing and renders the answer.

pub mod demo;
pub mod doctor;
pub mod journal;
pub mod run;
pub mod serve;
pub mod token;
