//! `sealog ps`: which executions there are, the youngest first.

use sealog_client::ListQuery;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::args::asking::Ps;
use crate::asked::Asked;
use crate::exit::Exit;
use crate::failure::{Failure, Result, one_line};
use crate::render::Render;
use crate::runtime::runtime;

/// Most entries of one page; more are asked for page by page.
const PAGE: u32 = 100;

#[derive(Debug, Deserialize)]
struct Entry {
    execution_id: String,
    status: String,
    created_at: String,
    last_sequence: u64,
    ability: Option<String>,
    target: Option<Target>,
    error: Option<Error>,
}

#[derive(Debug, Deserialize)]
struct Target {
    provider: String,
    model: String,
}

#[derive(Debug, Deserialize)]
struct Error {
    code: String,
    outcome: Option<String>,
}

impl Error {
    /// The outcome counts before the code, which is there for clients that know no other.
    fn word(&self) -> &str {
        match self.outcome.as_deref() {
            Some("unknown") => "outcome unknown",
            Some("not_dispatched") => "not dispatched",
            Some(_) | None => &self.code,
        }
    }
}

#[derive(Serialize)]
struct Answer {
    data: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub fn run(args: &Ps, render: Render) -> Result<Exit> {
    let runtime = runtime()?;
    let (entries, next) = runtime.block_on(async {
        let asked = Asked::open(&args.from, render)?;
        gather(args, &asked).await
    })?;
    if render.json {
        let data = entries.into_iter().map(RawValue::from_string).collect::<std::result::Result<_, _>>();
        let data = data.map_err(|_| no_entry())?;
        render.object(&Answer { data, next })?;
        return Ok(Exit::Success);
    }
    let entries: Vec<Entry> = entries
        .iter()
        .map(|entry| serde_json::from_str(entry).map_err(|_| no_entry()))
        .collect::<Result<_>>()?;
    render.foreign(&table(&entries))?;
    if let Some(next) = next {
        render.note(&format!("there may be more: --after {next}"));
    }
    Ok(Exit::Success)
}

fn no_entry() -> Failure {
    Failure::new(Exit::Failed, "protocol", "the node sent something that is no list of executions")
}

/// Asks page by page; a page may be short although there is more.
async fn gather(args: &Ps, asked: &Asked) -> Result<(Vec<String>, Option<String>)> {
    let (mut entries, mut next) = (Vec::new(), args.after.clone());
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    loop {
        let left = args.limit.saturating_sub(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        let page = asked
            .list(&ListQuery {
                status: args.status.clone(),
                ability: args.ability.clone(),
                after: next,
                limit: Some(left.min(PAGE)),
            })
            .await?;
        entries.extend(page.entries);
        next = page.next;
        if next.is_none() || entries.len() >= most {
            return Ok((entries, next));
        }
    }
}

fn table(entries: &[Entry]) -> String {
    let mut rows = vec![["EXECUTION", "STATUS", "EVENTS", "CREATED", "ABILITY", "WHERE"].map(str::to_owned)];
    for entry in entries {
        let target = entry.target.as_ref().map(|target| format!("{}/{}", target.provider, target.model));
        let place = match (&entry.error, target) {
            (Some(error), Some(target)) => format!("{target}: {}", error.word()),
            (Some(error), None) => error.word().to_owned(),
            (None, Some(target)) => target,
            (None, None) => "-".to_owned(),
        };
        rows.push(
            [
                entry.execution_id.clone(),
                entry.status.clone(),
                entry.last_sequence.to_string(),
                entry.created_at.clone(),
                entry.ability.clone().unwrap_or_else(|| "-".to_owned()),
                place,
            ]
            .map(|cell| one_line(&cell)),
        );
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let entry = |json: &str| serde_json::from_str(json).unwrap();
        let entries: [Entry; 4] = [
            entry(
                r#"{"execution_id":"a","status":"failed","created_at":"t","last_sequence":2,"usage":[],
                "error":{"code":"cancelled","message":"m","retryable":false}}"#,
            ),
            entry(
                r#"{"execution_id":"bb","status":"succeeded","created_at":"t","last_sequence":17,"usage":[],
                "target":{"provider":"p","model":"m"},"ability":"te\nxt"}"#,
            ),
            entry(
                r#"{"execution_id":"c","status":"failed","created_at":"t","last_sequence":3,"usage":[],
                "target":{"provider":"p","model":"m"},
                "error":{"code":"internal_error","message":"m","retryable":false,"outcome":"unknown"}}"#,
            ),
            entry(
                r#"{"execution_id":"d","status":"failed","created_at":"t","last_sequence":2,"usage":[],
                "error":{"code":"internal_error","message":"m","retryable":false,"outcome":"not_dispatched"}}"#,
            ),
        ];
        assert_eq!(
            table(&entries),
            "EXECUTION  STATUS     EVENTS  CREATED  ABILITY  WHERE\n\
             a          failed     2       t        -        cancelled\n\
             bb         succeeded  17      t        te\u{fffd}xt    p/m\n\
             c          failed     3       t        -        p/m: outcome unknown\n\
             d          failed     2       t        -        not dispatched\n"
        );
    }
}
