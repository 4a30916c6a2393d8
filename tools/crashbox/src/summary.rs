//! The numbers of a campaign and how they are told.
//!
//! Owns counting and wording. It decides nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::check::Checked;
use crate::finding::{Class, Finding};
use crate::judge::Ending;

/// Findings that the text form prints.
const FINDINGS_SHOWN_MAX: usize = 20;

/// Everything a campaign counted.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    pub seed: u64,
    /// SIGKILLs, those below among them.
    pub kills: u64,
    /// Kills of a node that had not said yet that it serves.
    pub kills_at_start: u64,
    /// Kills of a node that had been asked to stop.
    pub kills_at_stop: u64,
    /// Kills of `journal compact`, on what an earlier kill had left.
    pub kills_at_compaction: u64,
    /// Requests sent as new work.
    pub requests: u64,
    /// Executions that a 202 or 200 acknowledged.
    pub acknowledged: u64,
    /// Requests without an answer whose execution was found by its key.
    pub found_unacknowledged: u64,
    /// Requests without an answer that had left no trace and were started after the restart.
    pub left_no_trace: u64,
    /// Events of all executions, each checked byte by byte against every delivery of it.
    pub events: u64,
    /// Events that had been delivered live before a kill or a stop.
    pub delivered_before_end: u64,
    /// Executions by how they ended.
    pub endings: BTreeMap<Ending, u64>,
    /// Checks of executions over HTTP, repeated ones among them.
    pub checks: u64,
    pub provider_calls: u64,
    pub verified: u64,
    pub torn_tails: u64,
    pub replayed: u64,
    /// At the end, as `journal verify` counts.
    pub executions_stored: u64,
    pub records_stored: u64,
    pub segments: u64,
    pub files: u64,
    pub bytes: u64,
    /// The slowest start that was waited for.
    pub start_ms_max: u64,
    pub duration: Duration,
    pub findings: Vec<Finding>,
}

impl Summary {
    /// Counts a check of an execution that was not settled before.
    pub fn count(&mut self, checked: Checked, acknowledged: bool) {
        match checked {
            Checked::Ended(ending) => {
                *self.endings.entry(ending).or_default() += 1;
                self.found_unacknowledged += u64::from(!acknowledged);
            }
            Checked::StartedNow => self.left_no_trace += 1,
            Checked::Unknown => {}
        }
    }

    /// Executions that ended this way.
    pub fn ended(&self, ending: Ending) -> u64 {
        self.endings.get(&ending).copied().unwrap_or(0)
    }

    /// Findings of this class.
    pub fn found(&self, class: Class) -> usize {
        self.findings.iter().filter(|finding| finding.wrong.class == class).count()
    }

    /// One JSON object on one line.
    pub fn json(&self) -> Value {
        let mut found = json!({});
        for class in Class::ALL {
            found[class.as_str()] = self.found(class).into();
        }
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|Finding { cycle, wrong }| {
                json!({"cycle": cycle, "class": wrong.class.as_str(), "evidence": wrong.evidence})
            })
            .collect();
        json!({
            "seed": self.seed, "kills": self.kills, "kills_at_start": self.kills_at_start,
            "kills_at_stop": self.kills_at_stop, "kills_at_compaction": self.kills_at_compaction,
            "requests": self.requests, "acknowledged": self.acknowledged,
            "found_unacknowledged": self.found_unacknowledged, "left_no_trace": self.left_no_trace,
            "events": self.events, "delivered_before_end": self.delivered_before_end,
            "succeeded": self.ended(Ending::Succeeded), "failed": self.ended(Ending::Failed),
            "cancelled": self.ended(Ending::Cancelled), "interrupted": self.ended(Ending::Interrupted),
            "not_dispatched": self.ended(Ending::NotDispatched), "checks": self.checks,
            "provider_calls": self.provider_calls, "verified": self.verified,
            "torn_tails": self.torn_tails, "replayed": self.replayed,
            "executions_stored": self.executions_stored, "records_stored": self.records_stored,
            "segments": self.segments, "files": self.files, "bytes": self.bytes,
            "start_ms_max": self.start_ms_max, "duration_ms": self.duration.as_millis() as u64,
            "found": found, "findings": findings,
        })
    }

    /// A few lines for people. Evidence of what is wrong comes first.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Finding { cycle, wrong } in self.findings.iter().take(FINDINGS_SHOWN_MAX) {
            text.push_str(&format!("WRONG (seed {}, cycle {cycle}) {wrong}\n", self.seed));
        }
        if self.findings.len() > FINDINGS_SHOWN_MAX {
            text.push_str(&format!("and {} more\n", self.findings.len() - FINDINGS_SHOWN_MAX));
        }
        text.push_str(&format!(
            "seed {}: {} kills ({} during start, {} behind a SIGTERM, {} during compaction), {} requests, {} executions acknowledged, {} events, \
             {} of them delivered before the end of their node\n",
            self.seed,
            self.kills,
            self.kills_at_start,
            self.kills_at_stop,
            self.kills_at_compaction,
            self.requests,
            self.acknowledged,
            self.events,
            self.delivered_before_end,
        ));
        let classes: Vec<String> =
            Class::ALL.iter().map(|class| format!("{} {}", class.as_str(), self.found(*class))).collect();
        text.push_str(&format!("{}\n", classes.join(", ")));
        text.push_str(&format!(
            "succeeded {}, failed {}, cancelled {}, interrupted {}, not dispatched {}; without an answer: \
             {} found by key, {} had left no trace; {} provider calls, none twice unless said above\n",
            self.ended(Ending::Succeeded),
            self.ended(Ending::Failed),
            self.ended(Ending::Cancelled),
            self.ended(Ending::Interrupted),
            self.ended(Ending::NotDispatched),
            self.found_unacknowledged,
            self.left_no_trace,
            self.provider_calls,
        ));
        text.push_str(&format!(
            "{} checks over HTTP, {} runs of verify ({} torn tails), {} replays; {} executions and {} records \
             in {} segments, {} bytes; slowest start {} ms; {} s\n",
            self.checks,
            self.verified,
            self.torn_tails,
            self.replayed,
            self.executions_stored,
            self.records_stored,
            self.segments,
            self.bytes,
            self.start_ms_max,
            self.duration.as_secs(),
        ));
        text
    }
}
