//! `sealog demo`: the whole promise in one command, on a real child process that is really killed.
//!
//! Every line is printed after what it says was observed; what does not happen as promised ends the demo with exit 1.

use sealog_client::{Client, Event as ClientEvent, Submission};
use sealog_disk::real::{OpenOptions, RealDisk};
use sealog_disk::{Disk, Folder, Name, io};
use sealog_http::sse_frame;
use serde::Serialize;

use crate::args::Demo;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::following::Event;
use crate::render::Render;
use crate::runtime::runtime;
use crate::stage::{ChildNode, Stage, went_wrong};
use crate::verbs::serve::stop_signal;

const KEY: &str = "demo-1";
const PROMPT: &str = "the prompt of the demonstration";
/// A slow mock: a word at a time, so that there is a middle to be killed in.
const REQUEST: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"the prompt of the demonstration"}],"extensions":{"mock":{"chunks":60,"delay_ms":100}}}"#;
/// Words seen before the kill.
const WORDS: usize = 5;
/// Largest file that is searched, in bytes; a segment is no longer.
const FILE_BYTES_MAX: usize = 64 << 20;

pub fn run(_args: &Demo, render: Render) -> Result<Exit> {
    runtime()?.block_on(async {
        let stopped = stop_signal()?;
        let stage = Stage::new()?;
        let story = Story { stage: &stage, render };
        tokio::select! {
            told = story.tell() => told.map(|()| Exit::Success),
            () = stopped => Err(went_wrong("interrupted").next("sealog demo")),
        }
    })
}

struct Story<'a> {
    stage: &'a Stage,
    render: Render,
}

/// One observation.
#[derive(Serialize)]
struct Step<'a> {
    step: &'a str,
    text: &'a str,
}

impl Story<'_> {
    fn say(&self, step: &str, text: &str) -> Result<()> {
        match self.render.json {
            true => self.render.object(&Step { step, text }),
            false => self.render.data(&format!("{step:<10} {text}\n")),
        }
    }

    async fn tell(&self) -> Result<()> {
        let node = self.stage.start_node()?;
        self.say(
            "started",
            &format!(
                "a node (process {}) on {}, with a new encrypted journal in {}",
                node.process_id(),
                node.url(),
                self.stage.path().display()
            ),
        )?;
        let client = client_of(&node)?;
        let submission = submit(&client).await?;
        expect(!submission.idempotent_replay, "the first submission is new")?;
        let id = submission.execution_id.clone();
        self.say("accepted", &format!("execution {id} under the key {KEY}: on disk before it was answered"))?;
        let seen = self.stream_some(&client, &id).await?;
        expect(node.kill()? == Some(9), "the process ended by signal 9")?;
        self.say(
            "killed",
            &format!("the node with SIGKILL after event {}, while the next word was on its way", seen.len()),
        )?;

        let node = self.stage.start_node()?;
        self.say("restarted", &format!("a node (process {}) on the same journal", node.process_id()))?;
        let client = client_of(&node)?;
        let events = self.after_the_crash(&client, &id, &seen).await?;
        let again = submit(&client).await?;
        expect(again.idempotent_replay && again.execution_id == id, "the key returns the same execution")?;
        let after = all_events(&client, &id).await?;
        expect(after == events, "asking again adds no event")?;
        self.say(
            "asked",
            &format!("again with the same key and request: the answer is execution {id}; nothing ran again"),
        )?;
        let (code, _) = node.stop()?;
        expect(code == Some(0), "the node stops with exit code 0")?;
        self.say("stopped", "the node with SIGTERM: exit code 0")?;
        self.offline(&id, &events)?;
        self.say("done", "all of this happened just now; the journal and its key were temporary and are gone")
    }

    /// Follows the stream until some words came, showing each event.
    async fn stream_some(&self, client: &Client, id: &str) -> Result<Vec<ClientEvent>> {
        let mut follow = client.follow(id, 0);
        let mut seen = Vec::new();
        let mut words = 0;
        while words < WORDS {
            let event = follow.next().await.map_err(broken)?;
            let event = event.ok_or_else(|| went_wrong("the stream ended before it was killed"))?;
            let parsed = Event::parse(&event.data)?;
            expect(parsed.outcome().is_none(), "the execution is still running")?;
            let text = parsed.text();
            words += usize::from(text.is_some());
            let text = text.map(|text| format!(" {text:?}")).unwrap_or_default();
            self.say("event", &format!("{} {}{text}", event.sequence, event.type_name))?;
            seen.push(event);
        }
        Ok(seen)
    }

    /// What the restarted node says of the interrupted execution. Returns all its events.
    async fn after_the_crash(
        &self,
        client: &Client,
        id: &str,
        seen: &[ClientEvent],
    ) -> Result<Vec<ClientEvent>> {
        let events = all_events(client, id).await?;
        expect(events.starts_with(seen), "every event seen before the kill is there, byte for byte")?;
        let (terminal, before) = events.split_last().ok_or_else(|| went_wrong("there are no events"))?;
        expect(terminal.is_terminal(), "the last event is terminal")?;
        expect(!before.iter().any(ClientEvent::is_terminal), "there is one terminal event")?;
        self.say(
            "kept",
            &format!(
                "all {} events seen before the kill, byte for byte, of {} in all",
                seen.len(),
                events.len()
            ),
        )?;
        let last = Event::parse(&terminal.data)?;
        let error = last.error.ok_or_else(|| went_wrong("the interrupted execution has no error"))?;
        expect(error.outcome.as_deref() == Some("unknown"), "the outcome is unknown")?;
        expect(!error.retryable, "the failure is not called retryable")?;
        self.say(
            "unknown",
            &format!(
                "event {} is {}, outcome unknown: the provider may have done the rest, and Sealog does not guess",
                terminal.sequence, terminal.type_name
            ),
        )?;
        let attempts = events.iter().filter(|event| event.type_name == "route.selected").count();
        expect(attempts == 1, "the provider was chosen once")?;
        self.say(
            "once",
            "one route.selected: the provider was asked once; what may have happened is never repeated",
        )?;
        Ok(events)
    }

    /// What the journal says without a node.
    fn offline(&self, id: &str, events: &[ClientEvent]) -> Result<()> {
        let data = self.stage.data_dir();
        let data = data.to_str().ok_or_else(|| went_wrong("the temporary directory has no plain name"))?;
        let replay = self.stage.offline(&["journal", "replay", data, id, "--format", "sse"])?;
        let live: String =
            events.iter().map(|event| sse_frame(event.sequence, &event.type_name, &event.data)).collect();
        expect(replay.status.success(), "the replay ends with exit code 0")?;
        expect(replay.stdout == live.as_bytes(), "the replay is the live stream, byte for byte")?;
        self.say(
            "replayed",
            &format!("offline, {} bytes: exactly the frames of the live stream", live.len()),
        )?;
        let verify = self.stage.offline(&["journal", "verify", data])?;
        expect(verify.status.success(), "the check ends with exit code 0")?;
        let verdict = String::from_utf8_lossy(&verify.stdout);
        self.say("verified", verdict.trim_end())?;
        let mut texts: Vec<String> = vec![PROMPT.to_owned()];
        for event in events {
            texts.extend(Event::parse(&event.data)?.text().map(str::to_owned));
        }
        let files = self.search(&texts)?;
        self.say("sealed", &format!("the prompt and the words were sought in {files} files: none holds any"))
    }

    /// Looks for plain text in every file of the data directory. Returns how many files were read.
    fn search(&self, texts: &[String]) -> Result<usize> {
        let failed =
            |error| went_wrong("the journal's files cannot be read").because(anyhow::Error::from(error));
        let disk = RealDisk::open(&self.stage.data_dir(), OpenOptions::default()).map_err(failed)?;
        let mut files = 0;
        for folder in Folder::ALL {
            for entry in disk.list(folder).map_err(failed)? {
                let Some(name) = Name::new(folder, &entry.file) else { continue };
                let Ok(file) = disk.open(&name) else { continue };
                let bytes = io::read_to_vec(&*file, FILE_BYTES_MAX).map_err(failed)?;
                let holds = |text: &String| bytes.windows(text.len()).any(|window| window == text.as_bytes());
                expect(!texts.iter().any(holds), "no file holds plain text")?;
                files += 1;
            }
        }
        expect(files > 0, "the journal has files")?;
        Ok(files)
    }
}

fn client_of(node: &ChildNode) -> Result<Client> {
    Client::new(node.url()).map_err(broken)
}

fn broken(error: sealog_client::ClientError) -> Failure {
    went_wrong("the node did not answer as it should").because(error)
}

async fn submit(client: &Client) -> Result<Submission> {
    client.submit(REQUEST.as_bytes(), Some(KEY)).await.map_err(broken)
}

async fn all_events(client: &Client, id: &str) -> Result<Vec<ClientEvent>> {
    let mut follow = client.follow(id, 0);
    let mut events = Vec::new();
    while let Some(event) = follow.next().await.map_err(broken)? {
        events.push(event);
    }
    Ok(events)
}

/// What was promised must be what was observed.
fn expect(observed: bool, promise: &str) -> Result<()> {
    if observed { Ok(()) } else { Err(went_wrong(format!("this did not hold: {promise}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_carries_the_prompt() {
        assert!(REQUEST.contains(PROMPT));
        assert!(sealog_execution::ExecutionRequest::parse(REQUEST.as_bytes()).is_ok());
    }
}
