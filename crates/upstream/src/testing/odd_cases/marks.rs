//! What an attempt proves of itself, however it goes on: never more than happened, and nothing too late.

use futures_util::StreamExt;
use sealog_events::{Mark, RequestId};
use sealog_execution::{AbortSignal, Failure, ProviderEvent};

use super::{SHORT, Suite};
use crate::Timeouts;
use crate::testing::{Script, ScriptedServer};

impl Suite<'_> {
    pub(super) async fn marks(&mut self) -> std::io::Result<()> {
        let content_type = format!("content-type: {}", self.answer.framing.media_type());
        let head = |id: &str| Script::new().head(200, &[&content_type, &format!("x-request-id: {id}")]);
        let answered = |id: Option<&str>| Mark::ResponseHeaders { request_id: id.and_then(RequestId::new) };
        let whole = self.answer.whole();
        let cases = [
            ("a whole answer", head("req-1").send(whole.as_str()), answered(Some("req-1"))),
            ("an answer without a request id", self.answer.head().send(whole.as_str()), answered(None)),
            ("a request id that is none", head("two words").send(whole), answered(None)),
            ("a head and nothing else", head("req-2"), answered(Some("req-2"))),
            ("a refusal", Script::new().head(503, &["request-id: req-3"]), answered(Some("req-3"))),
        ];
        for (case, script, answered) in cases {
            let server = ScriptedServer::start(vec![script]).await?;
            self.expect(case, &server, Timeouts::default(), &[Mark::RequestSent, answered]).await;
        }
        let silent = ScriptedServer::start(vec![Script::new().stall()]).await?;
        let short = Timeouts { head: SHORT, ..Timeouts::default() };
        self.expect("a request without an answer", &silent, short, &[Mark::RequestSent]).await;

        let absent = ScriptedServer::absent().await?;
        self.expect("no connection", &absent, Timeouts::default(), &[]).await;
        Ok(())
    }

    /// The marks of one attempt; none may come behind an event.
    async fn expect(&mut self, case: &str, server: &ScriptedServer, timeouts: Timeouts, expected: &[Mark]) {
        let mut stream = self.start_marked(server, timeouts, &AbortSignal::new());
        let (mut marks, mut events, mut late) = (Vec::new(), Vec::new(), false);
        let mut failure: Option<Failure> = None;
        while let Some(item) = stream.next().await {
            match item {
                Ok(ProviderEvent::Mark(mark)) => {
                    late |= !events.is_empty();
                    marks.push(mark);
                }
                Ok(event) => events.push(event),
                Err(failed) => failure = Some(failed),
            }
        }
        let right = marks == expected && !late;
        self.wrong.unless(right, &format!("what {case} proves, {marks:?}"), &(events, failure));
    }
}
