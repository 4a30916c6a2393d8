//! What was found to be wrong, with its evidence.
//!
//! Owns the list that decides the exit code. Nothing here judges.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Evidence longer than this is cut.
const EVIDENCE_CHARS_MAX: usize = 4_000;

/// In which way a history is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Something acknowledged or delivered is not there any more.
    Lost,
    /// Something delivered is there, with other bytes.
    Altered,
    /// Something is there that nothing explains: a second effect, a second original, an event behind the end.
    Phantom,
    /// An execution that should have ended has not.
    Stuck,
    /// Two views of one execution disagree, or an outcome that its request does not allow.
    Disagrees,
    /// A tool refused a journal that a kill left behind, or something is left that somebody would have to clean up.
    Tool,
    /// The node failed while nobody had killed it.
    Node,
}

impl Class {
    /// Every class, in the order of a summary.
    pub const ALL: [Class; 7] = [
        Class::Lost,
        Class::Altered,
        Class::Phantom,
        Class::Stuck,
        Class::Disagrees,
        Class::Tool,
        Class::Node,
    ];

    /// Its name in summaries.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Lost => "lost",
            Class::Altered => "altered",
            Class::Phantom => "phantom",
            Class::Stuck => "stuck",
            Class::Disagrees => "disagrees",
            Class::Tool => "tool",
            Class::Node => "node",
        }
    }
}

/// One wrong thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub class: Class,
    pub evidence: String,
}

impl Wrong {
    /// Cuts evidence that nobody would read to its end.
    pub fn new(class: Class, evidence: impl Into<String>) -> Wrong {
        let mut evidence = evidence.into();
        if let Some((at, _)) = evidence.char_indices().nth(EVIDENCE_CHARS_MAX) {
            evidence.truncate(at);
            evidence.push_str(" ..");
        }
        Wrong { class, evidence }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class.as_str(), self.evidence)
    }
}

/// Why an exchange with the node did not go on.
#[derive(Debug)]
pub enum Stop {
    /// The transport failed: expected while the node is being killed, wrong otherwise.
    Transport(io::Error),
    Wrong(Wrong),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Transport(error)
    }
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Stop {
        Stop::Wrong(wrong)
    }
}

/// A finding of a campaign.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The life of the node in which it was met, from 1.
    pub cycle: u64,
    pub wrong: Wrong,
}

/// All findings, shared by all threads.
#[derive(Debug, Default)]
pub struct Findings {
    list: Mutex<Vec<Finding>>,
}

impl Findings {
    /// Adds one.
    pub fn add(&self, cycle: u64, wrong: Wrong) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(Finding { cycle, wrong });
    }

    /// All of them, in the order they were met.
    pub fn all(&self) -> Vec<Finding> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}
