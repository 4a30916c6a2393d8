//! Every way an upstream may misbehave, run against one provider: what each must end in is the same for all.
//!
//! An adapter's tests describe one whole answer of its protocol; the suite sends it late, cut, split, broken, too
//! large, as something else, or not at all. Cases that must end by a timeout use short ones.

mod marks;
mod transfers;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use sealog_events::{ExecutionId, PortableCode};
use sealog_execution::{
    AbortSignal, ExecutionRequest, Failure, ModelCall, ModelProvider, ProviderEvent, ProviderStream,
};

use super::{Gate, Script, ScriptedServer, unmarked};
use crate::model::Framing;
use crate::{EVENT_BYTES_MAX, Timeouts};

/// What upstreams write into errors and must never be repeated.
const CANARY: &str = "canary: your prompt was";

/// Short enough to wait for, for the cases in which nothing else happens, and long enough for all that comes before.
const SHORT: Duration = Duration::from_secs(1);

/// One whole answer of an adapter's protocol.
#[derive(Clone, Debug)]
pub struct Answer {
    pub framing: Framing,
    /// Event name, if the protocol names its events, and data. The last piece is the end marker; the text holds a
    /// character of several bytes.
    pub pieces: Vec<(Option<&'static str>, String)>,
    /// How many pieces it takes until the first output was exposed.
    pub first_output: usize,
}

/// Makes the provider under test for an upstream.
pub type Maker<'a> = &'a dyn Fn(&ScriptedServer, Timeouts) -> Arc<dyn ModelProvider>;

impl Answer {
    fn piece(&self, at: usize, line_end: &str) -> String {
        let (name, data) = &self.pieces[at];
        match self.framing {
            Framing::ServerSentEvents => {
                let name = name.map(|name| format!("event: {name}{line_end}")).unwrap_or_default();
                format!("{name}data: {data}{line_end}{line_end}")
            }
            Framing::JsonLines => format!("{data}{line_end}"),
        }
    }

    fn text(&self, count: usize, line_end: &str) -> String {
        (0..count).map(|at| self.piece(at, line_end)).collect()
    }

    /// The whole answer as bytes.
    pub fn whole(&self) -> String {
        self.text(self.pieces.len(), "\n")
    }

    /// What [`Answer::begun`] leaves out.
    fn rest(&self) -> String {
        (self.first_output..self.pieces.len()).map(|at| self.piece(at, "\n")).collect()
    }

    /// A script of the head of an answer.
    pub fn head(&self) -> Script {
        Script::new().head(200, &[&format!("content-type: {}", self.framing.media_type())])
    }

    /// A script of the answer up to the first output.
    pub fn begun(&self) -> Script {
        self.head().send(self.text(self.first_output, "\n"))
    }
}

/// What came of one attempt.
type Outcome = (Vec<ProviderEvent>, Option<Failure>);

/// The cases that went wrong, each with what came instead.
#[derive(Debug, Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn unless(&mut self, right: bool, case: &str, outcome: &Outcome) {
        if !right {
            self.0.push(format!("{case}: {} events, then {:?}", outcome.0.len(), outcome.1));
        }
    }

    /// The attempt must have failed so, without repeating the upstream's words and without a completion.
    fn unless_failed(
        &mut self,
        case: &str,
        outcome: &Outcome,
        code: PortableCode,
        retryable: bool,
        provider_code: Option<&str>,
    ) {
        let right = outcome.1.as_ref().is_some_and(|failure| {
            failure.code == code
                && failure.retryable() == retryable
                && failure.provider_code.as_deref() == provider_code
                && !format!("{failure} {failure:?}").contains("canary")
        });
        let completed = outcome.0.iter().any(|event| matches!(event, ProviderEvent::Completed));
        self.unless(right && !completed, case, outcome);
    }
}

struct Suite<'a> {
    make: Maker<'a>,
    request: Arc<ExecutionRequest>,
    answer: &'a Answer,
    wrong: Wrong,
}

/// Runs every case with `request`; returns those that went wrong, in words.
///
/// # Errors
/// No scripted server could be started.
pub async fn run(
    make: Maker<'_>,
    request: ExecutionRequest,
    answer: &Answer,
) -> std::io::Result<Vec<String>> {
    let mut suite = Suite { make, request: Arc::new(request), answer, wrong: Wrong::default() };
    suite.same_answer_in_other_pieces().await?;
    suite.early_ends().await?;
    suite.broken_connections().await?;
    suite.silence().await?;
    suite.something_else().await?;
    suite.statuses().await?;
    suite.redirects().await?;
    suite.transfers().await?;
    suite.given_up().await?;
    suite.marks().await?;
    Ok(suite.wrong.0)
}

impl Suite<'_> {
    fn start(&self, server: &ScriptedServer, timeouts: Timeouts, abort: &AbortSignal) -> ProviderStream {
        unmarked(self.start_marked(server, timeouts, abort))
    }

    fn start_marked(
        &self,
        server: &ScriptedServer,
        timeouts: Timeouts,
        abort: &AbortSignal,
    ) -> ProviderStream {
        let provider = (self.make)(server, timeouts);
        let models = provider.manifest().map(|manifest| manifest.models).unwrap_or_default();
        provider.execute(ModelCall {
            execution_id: ExecutionId::from_random([7; 16]),
            request: Arc::clone(&self.request),
            model: models.into_iter().next().map(|model| model.model).unwrap_or_default(),
            abort: abort.clone(),
        })
    }

    async fn outcome(&self, server: &ScriptedServer, timeouts: Timeouts) -> Outcome {
        let mut stream = self.start(server, timeouts, &AbortSignal::new());
        let (mut events, mut failure) = (Vec::new(), None);
        while let Some(item) = stream.next().await {
            match item {
                Ok(event) => events.push(event),
                Err(failed) => failure = Some(failed),
            }
        }
        (events, failure)
    }

    /// The outcome of one script; the request must have come exactly once, over one connection.
    async fn play(&mut self, case: &str, script: Script, timeouts: Timeouts) -> std::io::Result<Outcome> {
        let server = ScriptedServer::start(vec![script]).await?;
        let outcome = self.outcome(&server, timeouts).await;
        self.wrong.unless(server.connections() == 1, &format!("{case}: one connection"), &outcome);
        Ok(outcome)
    }

    async fn same_answer_in_other_pieces(&mut self) -> std::io::Result<()> {
        let whole = self.answer.whole();
        let script = self.answer.head().send(whole.as_str()).stall();
        let server = ScriptedServer::start(vec![script]).await?;
        let plain = self.outcome(&server, Timeouts::default()).await;
        server.abandoned(1).await;
        let completed = matches!(plain.0.last(), Some(ProviderEvent::Completed)) && plain.1.is_none();
        self.wrong.unless(completed, "the whole answer, and silence after its end marker", &plain);
        let text: String = plain.0.iter().filter_map(delta).collect();
        self.wrong.unless(!text.is_ascii(), "the text has a character of several bytes", &plain);
        let bytewise = whole.bytes().fold(self.answer.head(), |script, byte| script.send([byte]));
        let mut cases = vec![("byte by byte, characters split", bytewise)];
        let count = self.answer.pieces.len();
        cases.push(("CRLF", self.answer.head().send(self.answer.text(count, "\r\n"))));
        match self.answer.framing {
            Framing::ServerSentEvents => {
                let ends = ["\r", "\n", "\r\n"];
                let mixed: String = (0..count).map(|at| self.answer.piece(at, ends[at % 3])).collect();
                cases.push(("CR", self.answer.head().send(self.answer.text(count, "\r"))));
                cases.push(("CR, LF and CRLF", self.answer.head().send(mixed)));
                let comments = format!("\u{feff}: hello\n\n{}", whole.replace("\n\n", "\n\n: ping\n\n"));
                cases.push(("a byte order mark and comments", self.answer.head().send(comments)));
            }
            Framing::JsonLines => {
                let blank = whole.replace('\n', "\n\n");
                cases.push(("blank lines", self.answer.head().send(blank)));
            }
        }
        for (case, script) in cases {
            let outcome = self.play(case, script, Timeouts::default()).await?;
            self.wrong.unless(outcome == plain, case, &outcome);
        }
        Ok(())
    }

    /// However much came, and however cleanly it ended: without the end marker it is truncated.
    async fn early_ends(&mut self) -> std::io::Result<()> {
        let whole = self.answer.whole();
        let scripts: Vec<_> =
            (0..whole.len()).map(|cut| self.answer.head().send(&whole.as_bytes()[..cut])).collect();
        let server = ScriptedServer::start(scripts).await?;
        for cut in 0..whole.len() {
            let outcome = self.outcome(&server, Timeouts::default()).await;
            let case = format!("a clean end after {cut} of {} bytes", whole.len());
            self.wrong.unless_failed(&case, &outcome, PortableCode::ProviderProtocolError, false, None);
        }
        Ok(())
    }

    async fn broken_connections(&mut self) -> std::io::Result<()> {
        use PortableCode::ProviderUnavailable;
        let half_head = "HTTP/1.1 200 OK\r\ncontent-ty";
        for (case, script) in [
            ("no head", Script::new()),
            ("a reset before the head", Script::new().reset()),
            ("half a head", Script::new().send(half_head)),
        ] {
            let outcome = self.play(case, script, Timeouts::default()).await?;
            self.wrong.unless_failed(case, &outcome, ProviderUnavailable, true, None);
        }
        let gate = Gate::new();
        let half = &self.answer.piece(self.answer.first_output, "\n")[..4];
        let script = self.answer.begun().send(half).wait(&gate).reset();
        let server = ScriptedServer::start(vec![script]).await?;
        let mut stream = self.start(&server, Timeouts::default(), &AbortSignal::new());
        let mut outcome = (Vec::new(), None);
        while let Some(item) = stream.next().await {
            match item {
                Ok(event) => outcome.0.push(event),
                Err(failed) => outcome.1 = Some(failed),
            }
            // Only after the first output was seen, so that the reset cannot overtake it.
            gate.open();
        }
        self.wrong.unless_failed("a reset within a piece", &outcome, ProviderUnavailable, false, None);
        let content_type = format!("content-type: {}", self.answer.framing.media_type());
        let whole = self.answer.text(self.answer.first_output, "\n");
        let length = format!("content-length: {}", whole.len() + 1);
        let short = Script::new().head(200, &[&content_type, &length]).send(whole);
        let outcome = self.play("a wrong length", short, Timeouts::default()).await?;
        self.wrong.unless_failed("a wrong length", &outcome, ProviderUnavailable, false, None);
        Ok(())
    }

    async fn silence(&mut self) -> std::io::Result<()> {
        use PortableCode::ProviderUnavailable;
        let head = Timeouts { head: SHORT, ..Timeouts::default() };
        for (case, script) in [
            ("a head that does not come", Script::new().stall()),
            ("slow headers", Script::new().send("HTTP/1.1 200 OK\r\ncontent-").stall()),
        ] {
            let outcome = self.play(case, script, head).await?;
            self.wrong.unless_failed(case, &outcome, ProviderUnavailable, true, None);
        }
        let idle = Timeouts { idle: SHORT, ..Timeouts::default() };
        for (case, script) in [
            ("a stall after the head", self.answer.head().stall()),
            ("a stall after output", self.answer.begun().stall()),
        ] {
            let outcome = self.play(case, script, idle).await?;
            self.wrong.unless_failed(case, &outcome, ProviderUnavailable, false, None);
        }
        // Late, but within the time: a head and a piece that wait for each other's reader.
        let gate = Gate::new();
        let rest = self.answer.rest();
        let server = ScriptedServer::start(vec![self.answer.begun().wait(&gate).send(rest)]).await?;
        let mut stream = self.start(&server, Timeouts::default(), &AbortSignal::new());
        let (mut events, mut failure) = (Vec::new(), None);
        while let Some(item) = stream.next().await {
            gate.open();
            match item {
                Ok(event) => events.push(event),
                Err(failed) => failure = Some(failed),
            }
        }
        let late = (events, failure);
        self.wrong.unless(
            matches!(late.0.last(), Some(ProviderEvent::Completed)) && late.1.is_none(),
            "a piece that comes late",
            &late,
        );
        Ok(())
    }

    async fn something_else(&mut self) -> std::io::Result<()> {
        let huge = "x".repeat(EVENT_BYTES_MAX + 1);
        let (huge, endless) = match self.answer.framing {
            Framing::ServerSentEvents => {
                (format!("data: \"{huge}\"\n\n"), format!("data: {}", huge.repeat(3)))
            }
            Framing::JsonLines => (format!("\"{huge}\"\n"), huge.repeat(3)),
        };
        let prefix: &[u8] = match self.answer.framing {
            Framing::ServerSentEvents => b"data: ",
            Framing::JsonLines => b"",
        };
        // The rest of the answer follows: passing over what cannot be read must not lead to a completion.
        let rest = self.answer.rest();
        let framed = |data: &[u8]| [prefix, data, b"\n\n", rest.as_bytes()].concat();
        let html = format!("<p>{CANARY}</p>");
        for (case, script) in [
            ("a huge event", self.answer.begun().send(huge)),
            ("an event without an end", self.answer.begun().send(endless).stall()),
            ("text that is not UTF-8", self.answer.begun().send(framed(b"{\"a\":\"\xff\"}"))),
            ("broken JSON", self.answer.begun().send(framed(b"{broken"))),
            ("JSON that is no object", self.answer.begun().send(framed(b"[1]"))),
            ("a wrong content type", Script::new().respond(200, "text/html", &html)),
            ("an answer at once", Script::new().respond(200, "application/json", "{}")),
            ("no content type", Script::new().head(200, &[]).send(self.answer.whole())),
            ("an empty answer", Script::new().head(204, &[])),
        ] {
            let outcome = self.play(case, script, Timeouts::default()).await?;
            self.wrong.unless_failed(case, &outcome, PortableCode::ProviderProtocolError, false, None);
        }
        Ok(())
    }

    async fn statuses(&mut self) -> std::io::Result<()> {
        use PortableCode::{ProviderUnavailable, RateLimited};
        for (status, code, retryable) in [
            (400, ProviderUnavailable, false),
            (401, ProviderUnavailable, false),
            (403, ProviderUnavailable, false),
            (404, ProviderUnavailable, false),
            (408, ProviderUnavailable, true),
            (413, ProviderUnavailable, false),
            (422, ProviderUnavailable, false),
            (429, RateLimited, true),
            (500, ProviderUnavailable, true),
            (503, ProviderUnavailable, true),
            (529, ProviderUnavailable, true),
        ] {
            let body = format!(r#"{{"error":{{"message":"{CANARY}","code":"canary","type":"canary"}}}}"#);
            let case = format!("status {status}");
            let script = Script::new().respond(status, "application/json", &body);
            let outcome = self.play(&case, script, Timeouts::default()).await?;
            self.wrong.unless_failed(&case, &outcome, code, retryable, Some(&status.to_string()));
        }
        Ok(())
    }

    async fn redirects(&mut self) -> std::io::Result<()> {
        for status in [301, 302, 303, 307, 308] {
            let elsewhere = ScriptedServer::start(vec![self.answer.begun()]).await?;
            let location = format!("location: {}", elsewhere.url("/elsewhere"));
            let script = Script::new().head(status, &[&location, "content-length: 0"]);
            let case = format!("redirect {status} to another origin");
            let outcome = self.play(&case, script, Timeouts::default()).await?;
            let code = PortableCode::ProviderUnavailable;
            self.wrong.unless_failed(&case, &outcome, code, true, Some(&status.to_string()));
            self.wrong.unless(elsewhere.connections() == 0, &format!("{case}: nothing sent there"), &outcome);
        }
        Ok(())
    }

    async fn given_up(&mut self) -> std::io::Result<()> {
        let server = ScriptedServer::start(vec![self.answer.begun().stall()]).await?;
        drop(self.start(&server, Timeouts::default(), &AbortSignal::new()));
        let none = (Vec::new(), None);
        self.wrong.unless(server.connections() == 0, "nothing is sent before the first poll", &none);

        let abort = AbortSignal::new();
        let mut stream = self.start(&server, Timeouts::default(), &abort);
        let first = stream.next().await;
        self.wrong.unless(matches!(first, Some(Ok(_))), "a first event before an abort", &none);
        abort.cancel();
        let failure = stream.next().await.and_then(Result::err);
        let cancelled = (Vec::new(), failure);
        self.wrong.unless_failed("an abort", &cancelled, PortableCode::Cancelled, false, None);
        let over = stream.next().await.is_none();
        self.wrong.unless(over, "nothing follows a failure", &cancelled);
        server.abandoned(1).await;

        let mut stream = self.start(&server, Timeouts::default(), &AbortSignal::new());
        let first = stream.next().await;
        self.wrong.unless(matches!(first, Some(Ok(_))), "a first event before a drop", &none);
        drop(stream);
        server.abandoned(2).await;

        let aborted = AbortSignal::new();
        aborted.cancel();
        let refused = self.start(&server, Timeouts::default(), &aborted).next().await;
        let refused = (Vec::new(), refused.and_then(Result::err));
        self.wrong.unless_failed("an abort before the start", &refused, PortableCode::Cancelled, false, None);
        self.wrong.unless(server.connections() == 2, "nothing is sent after an abort", &refused);
        Ok(())
    }
}

fn delta(event: &ProviderEvent) -> Option<&str> {
    if let ProviderEvent::OutputDelta { delta, .. } = event { Some(delta) } else { None }
}

#[cfg(test)]
mod tests;
