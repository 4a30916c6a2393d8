//! The answer to a submission.

use sealog_engine::Submission;
use serde::Serialize;

#[derive(Serialize)]
struct Wire {
    execution_id: String,
    status: &'static str,
    created_at: String,
    idempotent_replay: bool,
}

/// `{execution_id, status, created_at, idempotent_replay}`
pub(crate) fn submission_json(submission: &Submission) -> String {
    let wire = Wire {
        execution_id: submission.execution_id.to_string(),
        status: submission.status.as_str(),
        created_at: submission.created_at.to_string(),
        idempotent_replay: submission.idempotent_replay,
    };
    serde_json::to_string(&wire).expect("strings and a boolean serialise")
}
