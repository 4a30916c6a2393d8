//! What the queue answers, read without I/O. Unknown members are ignored: they are added without notice.

use sealog_events::{Artifact, PortableCode};
use sealog_execution::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How deep a result is searched for artifacts.
const ARTIFACT_DEPTH_MAX: usize = 6;

/// Most artifacts of one result.
const ARTIFACTS_MAX: usize = 1024;

/// Where an accepted task is cancelled, watched and fetched.
#[derive(Deserialize)]
pub struct Submitted {
    pub cancel_url: Option<String>,
    pub status_url: Option<String>,
    pub response_url: Option<String>,
}

#[derive(Deserialize)]
pub struct Status {
    pub status: String,
    pub error: Option<Value>,
    pub error_type: Option<String>,
}

/// # Errors
/// The body is not such an object.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    // An array in the place of an object would be read as its members in order.
    let object = body.trim_ascii_start().starts_with(b"{");
    serde_json::from_slice(body)
        .ok()
        .filter(|_| object)
        .ok_or(Failure::protocol("Provider answer is not of its protocol"))
}

/// What a completed task says about itself.
///
/// # Errors
/// It failed; its sentence is thrown away, its type may help.
pub fn completed(status: &Status) -> Result<(), Failure> {
    match &status.error {
        None | Some(Value::Null) => Ok(()),
        Some(_) => {
            let failure =
                Failure::permanent(PortableCode::ProviderUnavailable, "Provider reported a failure");
            Err(match &status.error_type {
                Some(kind) => failure.with_provider_code(kind),
                None => failure,
            })
        }
    }
}

/// The result as JSON text, and the files that it names. Nothing is fetched.
///
/// # Errors
/// The body is not JSON, or names too many files.
pub fn result(body: Vec<u8>) -> Result<(String, Vec<Artifact>), Failure> {
    let malformed = || Failure::protocol("Provider answer is not of its protocol");
    let value: Value = serde_json::from_slice(&body).map_err(|_| malformed())?;
    let mut artifacts = Vec::new();
    collect(&value, 0, &mut artifacts)?;
    Ok((String::from_utf8(body).map_err(|_| malformed())?, artifacts))
}

fn collect(value: &Value, depth: usize, found: &mut Vec<Artifact>) -> Result<(), Failure> {
    if depth > ARTIFACT_DEPTH_MAX {
        return Ok(());
    }
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str);
            let web = |uri: &&str| uri.starts_with("https://") || uri.starts_with("http://");
            if let Some(uri) = text("url").or_else(|| text("uri")).filter(web)
                && !found.iter().any(|artifact| artifact.uri == uri)
            {
                if found.len() == ARTIFACTS_MAX {
                    return Err(Failure::protocol("Provider named too many artifacts"));
                }
                found.push(Artifact {
                    uri: uri.to_owned(),
                    media_type: text("content_type").map(str::to_owned),
                    name: None,
                    expires_at: None,
                });
            }
            Box::new(members.values())
        }
        Value::Array(items) => Box::new(items.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
    };
    for value in inner {
        collect(value, depth + 1, found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
