//! Who is asked about executions: a node over HTTP, or a journal that is only read.
//!
//! Both give the same JSON texts, so that a verb renders one kind of answer. Must never write.

use std::path::{Path, PathBuf};

use sealog_client::{Client, ClientError, ListPage, ListQuery};
use sealog_engine::store::journal::JournalStore;
use sealog_engine::store::listing::{ENTRIES_MAX, Filter, list};
use sealog_engine::store::{EventStore, ListPosition, StoreError};
use sealog_events::json::snapshot_json;
use sealog_events::{ExecutionId, Status};
use serde::Deserialize;

use crate::again::{same_asked, same_key};
use crate::args::asking::WhereArgs;
use crate::asking;
use crate::exit::Exit;
use crate::failure::{Failure, NOTHING_CHANGED, Result, shown};
use crate::following::Source;
use crate::node::open_failure;
use crate::opening;
use crate::render::Render;

/// Who answers.
#[derive(Debug)]
pub enum Asked {
    Node(Client),
    Journal { store: Box<JournalStore>, dir: PathBuf },
}

impl Asked {
    /// Opens what the flags name. Inside a tokio runtime.
    ///
    /// # Errors
    /// As [`asking::client`], or what the journal says.
    pub fn open(args: &WhereArgs, render: Render) -> Result<Asked> {
        let Some(dir) = &args.data_dir else {
            let next = "leave it out to ask a node, or add --data-dir DIR to read a journal";
            asking::only_asks(&[], args.place, &args.key, next)?;
            return asking::client(&args.node).map(Asked::Node);
        };
        let config = opening::for_reading(dir, args.place, &args.key, render)?;
        let store =
            JournalStore::open_reading(&config).map_err(|error| by_piece(open_failure(error, dir), dir))?;
        Ok(Asked::Journal { store: Box::new(store), dir: dir.clone() })
    }

    /// A page of executions.
    ///
    /// # Errors
    /// Exit 2 for a place that is none, 75 where nobody answers.
    pub async fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let bad = || {
            Failure::usage("bad_place", "--after is no place of a list")
                .next("give the place that `sealog ps` printed at the end of a list")
        };
        let before = query.after.as_deref().map(|place| ListPosition::parse(place).ok_or_else(bad));
        let (store, dir) = match self {
            Asked::Node(client) => {
                // The node judges, and a newer one may know other places; its words do not name the flag.
                return client.list(query).await.map_err(|error| match (&error, &before) {
                    (ClientError::Api(api), Some(Err(_))) if api.status == 400 => bad().because(error),
                    _ => not_read(error),
                });
            }
            Asked::Journal { store, dir } => (store, dir),
        };
        let before = before.transpose()?;
        let filter = Filter {
            status: query.status.as_deref().and_then(Status::from_name),
            ability: query.ability.clone(),
        };
        let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(ENTRIES_MAX);
        let listing =
            list(&**store, filter, before, limit).await.map_err(|error| store_failed(error, dir))?;
        Ok(ListPage { entries: listing.entries, next: listing.next.map(|place| place.to_string()) })
    }

    /// An execution's snapshot as JSON text.
    ///
    /// # Errors
    /// Exit 4: there is no such execution. 75: nobody answers.
    pub async fn snapshot(&self, id: &str) -> Result<String> {
        let found = match self {
            Asked::Node(client) => {
                let found = client.snapshot(id).await.map_err(not_read)?;
                found.map(|snapshot| snapshot.json)
            }
            Asked::Journal { store, dir } => match ExecutionId::parse(id) {
                Some(id) => {
                    let found = store.snapshot(id).await.map_err(|error| store_failed(error, dir))?;
                    found.map(|snapshot| snapshot_json(&snapshot))
                }
                None => None,
            },
        };
        found.ok_or_else(not_found)
    }

    /// The execution's events behind a sequence.
    ///
    /// # Errors
    /// As [`Asked::snapshot`].
    pub async fn events(&self, id: &str, after: u64) -> Result<Source> {
        match self {
            Asked::Node(client) => Ok(Source::Node(Box::new(client.follow(id, after)))),
            Asked::Journal { store, dir } => {
                let id = ExecutionId::parse(id).ok_or_else(not_found)?;
                let watch = store.watch(id, after).await.map_err(|error| store_failed(error, dir))?;
                watch.map(Source::Journal).ok_or_else(not_found)
            }
        }
    }
}

/// A snapshot's text as what a verb wants of it.
///
/// # Errors
/// It is none.
pub fn read_snapshot<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json)
        .map_err(|_| Failure::new(Exit::Failed, "protocol", "the node sent something that is no snapshot"))
}

/// A damaged journal answers no question as a whole; two other verbs print what reads of it.
fn by_piece(failure: Failure, dir: &Path) -> Failure {
    if failure.code != "damaged" {
        return failure;
    }
    let (dir, key) = (shown(dir), same_key());
    let next = format!(
        "what reads: sealog journal inspect {dir} --executions{key}, then sealog journal replay {dir} ID{key}; {}",
        failure.next
    );
    failure.next(next)
}

pub fn not_found() -> Failure {
    Failure::new(Exit::NotFound, "not_found", "there is no such execution, or no longer")
        .next(format!("list what there is: sealog ps{}", same_asked()))
}

/// [`not_answered`] to a question that the node's journal answers as well.
fn not_read(error: ClientError) -> Failure {
    let failure = not_answered(error, Exit::TryAgain);
    match failure.code {
        "no_node" => failure.next("start a node: sealog serve; or read its journal: --data-dir DIR"),
        _ => failure,
    }
}

/// The node takes no such request now.
pub fn refused(what: String) -> Failure {
    Failure::new(Exit::TryAgain, "refused", what)
        .safe("nothing was started")
        .next("run the same command again in a moment; while it stays so, the node's GET /readyz says why")
}

/// [`refused`], where it was that, with what helps against the reason that the node gives for it.
pub async fn by_reason(failure: Failure, client: &Client) -> Failure {
    if failure.code != "refused" {
        return failure;
    }
    // A node that does not say is asked again like any other that refused.
    let reasons = client.not_ready().await.unwrap_or_default();
    match reasons.iter().find_map(|reason| against(reason)) {
        Some(next) => failure.next(next),
        None => failure,
    }
}

/// What helps against a reason of `GET /readyz` that does not pass by itself.
fn against(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "fenced" => {
            "once the journal that the node's was made of is gone for good: stop the node, and sealog journal unfence \
             its directory"
        }
        "read_only" => "ask the node that the work belongs to; this one only shows what stands in a journal",
        "poisoned" => {
            "look at the disk of the node's machine, restart the node, then run the same command again"
        }
        "damaged" => "see what is damaged, on the node's machine: sealog journal verify, of its directory",
        "full" | "unended" => {
            "wait until what has ended may be forgotten, or make room on the disk of the node's machine; then run the \
             same command again"
        }
        _ => return None,
    })
}

/// What a node said instead of an answer, or why it said nothing.
pub fn not_answered(error: ClientError, otherwise: Exit) -> Failure {
    let what = error.to_string();
    if let Some(failure) = asking::not_reached(&error) {
        return match error {
            ClientError::Connect(_) => failure.safe(NOTHING_CHANGED),
            _ => failure,
        }
        .because(error);
    }
    let failure = match &error {
        ClientError::Api(api) if api.status == 404 => not_found(),
        ClientError::Api(api) if [401, 403].contains(&api.status) => Failure::usage("not_allowed", what)
            .next("name a file with a token of the node whose scope is enough: --token-file FILE"),
        ClientError::Api(api) if api.status == 400 => Failure::usage("invalid_request", what)
            .next("correct the command; `sealog help` shows every flag"),
        ClientError::NotHttp(_) => Failure::new(otherwise, "no_answer", what)
            .next("give the address as the node's first line says it: --url"),
        _ => Failure::new(otherwise, "no_answer", what).next("run the same command again in a moment"),
    };
    failure.because(error)
}

fn store_failed(error: StoreError, dir: &Path) -> Failure {
    Failure::new(Exit::Damaged, "unreadable", error.to_string()).next(format!(
        "see what is wrong: sealog journal verify {}{}",
        shown(dir),
        same_key()
    ))
}
