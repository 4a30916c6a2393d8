//! What `verify` does with one segment on another thread: everything that needs nothing of the segments before.
//!
//! Every body is read here. An execution that is created in the segment is checked here as far as the segment goes; what
//! is told of others waits until the survey takes the part, and is then taken in its place.

use std::collections::HashMap;

use sealog_journal::{FrameView, Record, Sink, StreamId};

use super::{Execution, Finding, Place, Survey, Told, read};

/// The sink. Steps and findings stand in the order of the journal, each for itself.
#[derive(Debug, Default)]
pub(super) struct Part {
    steps: Vec<(Place, Step)>,
    /// Of what was checked here.
    findings: Vec<Finding>,
    /// Where the steps of executions stand that were created here and not forgotten since.
    own: HashMap<StreamId, usize>,
}

/// What is left for the survey.
#[derive(Debug)]
enum Step {
    /// An execution as it is behind everything that the segment tells of it, at the place of its creation.
    Created(Box<Execution>),
    Told(Told),
}

impl Part {
    /// What the survey would have found in these records.
    pub(super) fn give(self, survey: &mut Survey) {
        let mut findings = self.findings.into_iter().peekable();
        for (place, step) in self.steps {
            // A step may take findings back that were made before it.
            while let Some(finding) = findings.next_if(|finding| finding.sequence < place.sequence) {
                survey.findings.push(finding);
            }
            match step {
                Step::Told(told) => survey.take(told, &place),
                Step::Created(execution) => {
                    let what = survey.created(&place, *execution);
                    survey.findings.extend(what.map(|what| place.finding(what)));
                }
            }
        }
        survey.findings.extend(findings);
    }

    fn execution(&mut self, place: &Place) -> Option<&mut Execution> {
        match self.steps.get_mut(*self.own.get(&place.stream?)?) {
            Some((_, Step::Created(execution))) => Some(execution),
            Some((_, Step::Told(_))) | None => None,
        }
    }

    fn take(&mut self, told: Told, place: Place) {
        let step = match (told, self.execution(&place)) {
            (Told::Nothing, _) | (Told::Evidence, Some(_)) => return,
            (Told::Event(event), Some(execution)) => {
                let what = execution.take(&place, &event);
                self.findings.extend(what.map(|what| place.finding(what)));
                return;
            }
            (Told::Result(result), Some(execution)) => return execution.result(result),
            (Told::Created(created), _) => {
                if let Some(stream) = place.stream {
                    self.own.insert(stream, self.steps.len());
                }
                Step::Created(Box::new(Execution::new(&place, created.created_at, true)))
            }
            (Told::Forget(ids), _) => {
                for id in &ids {
                    self.own.remove(&StreamId(*id));
                }
                Step::Told(Told::Forget(ids))
            }
            (told @ (Told::Event(_) | Told::Result(_) | Told::Evidence), None) => Step::Told(told),
        };
        self.steps.push((place, step));
    }
}

impl Sink for Part {
    fn record(&mut self, frame: &FrameView, record: &Record) {
        let place = Place::of(frame, record);
        match read(record) {
            Ok(told) => self.take(told, place),
            Err(what) => self.findings.push(place.finding(what)),
        }
    }
}
