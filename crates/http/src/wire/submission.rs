//! The answer to a submission.

use sealog_engine::Submission;
use serde::Serialize;

#[derive(Serialize)]
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema), schemars(rename = "Submission"))]
pub(crate) struct Wire {
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("format" = "uuid")))]
    execution_id: String,
    #[cfg_attr(
        any(test, feature = "contract"),
        schemars(extend("enum" = sealog_events::Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>()))
    )]
    status: &'static str,
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("format" = "date-time")))]
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
