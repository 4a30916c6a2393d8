//! Lists as a client reads them: page after page, each from the place that the one before named. Owns what every list
//! must be, whatever it names: in order, without an entry twice, of the status that was asked for.

use std::fmt;

use http::Request;
use sealog_events::{ExecutionId, Status};
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::{Ask, error_code, text};
use super::script::ABILITY;

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: ExecutionId,
    pub(super) last_sequence: u64,
    pub(super) has_ended: bool,
    pub(super) text: String,
}

/// Why there is no list.
#[derive(Debug)]
pub(super) enum Wrong {
    Answer { status: u16, code: String },
    Content(&'static str),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Answer { status, code } => write!(f, "answered with {status} {code}"),
            Wrong::Content(what) => f.write_str(what),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    next: Option<String>,
}

/// All pages, the youngest first.
///
/// # Errors
/// [`Wrong`].
pub(super) async fn all(ask: &Ask, limit: u8, status: Option<Status>) -> Result<Vec<Entry>, Wrong> {
    let filter = status.map_or(String::new(), |status| format!("&status={}", status.as_str()));
    let mut entries = Vec::new();
    // The newest place so far: creation and id.
    let mut place: Option<(String, String)> = None;
    let mut after = String::new();
    loop {
        let path = format!("/v1/executions?limit={limit}{filter}{after}");
        let response = ask.send(Request::get(path), String::new()).await;
        let answered = response.status().as_u16();
        let body = text(response).await;
        if answered != 200 {
            return Err(Wrong::Answer { status: answered, code: error_code(&body) });
        }
        let page: Page<'_> = serde_json::from_str(&body).map_err(|_| Wrong::Content("it is no page"))?;
        if page.data.len() > usize::from(limit) {
            return Err(Wrong::Content("a page has more than was asked for"));
        }
        for raw in page.data {
            entries.push(entry(raw.get(), status, &mut place)?);
        }
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(entries),
        }
    }
}

/// Reads one entry, which must stand behind `place`.
fn entry(text: &str, wanted: Option<Status>, place: &mut Option<(String, String)>) -> Result<Entry, Wrong> {
    let value: Value = serde_json::from_str(text).map_err(|_| Wrong::Content("an entry is no object"))?;
    let id = value["execution_id"].as_str().and_then(ExecutionId::parse);
    let status = value["status"].as_str().and_then(Status::from_name);
    let (Some(id), Some(status), Some(last_sequence), Some(created)) =
        (id, status, value["last_sequence"].as_u64(), value["created_at"].as_str())
    else {
        return Err(Wrong::Content("an entry lacks what every entry has"));
    };
    if wanted.is_some_and(|wanted| wanted != status) || value["ability"].as_str() != Some(ABILITY) {
        return Err(Wrong::Content("an entry is not what was asked for"));
    }
    // Times have one width, so their text has their order.
    let here = (created.to_owned(), id.to_string());
    if place.as_ref().is_some_and(|before| *before <= here) {
        return Err(Wrong::Content("an entry stands twice or out of order"));
    }
    *place = Some(here);
    let has_ended = matches!(status, Status::Succeeded | Status::Failed | Status::Cancelled);
    Ok(Entry { id, last_sequence, has_ended, text: text.to_owned() })
}
