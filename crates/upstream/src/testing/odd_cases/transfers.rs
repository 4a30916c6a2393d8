//! How an answer's bytes are carried: in chunks, behind heads that are none yet, compressed, without an end, and refusals
//! whose bodies nobody waits for.

use sealog_events::PortableCode;

use super::Suite;
use crate::Timeouts;
use crate::testing::{Script, ScriptedServer};

/// The first bytes of anything in gzip.
const GZIP: [u8; 12] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48];

impl Suite<'_> {
    pub(super) async fn transfers(&mut self) -> std::io::Result<()> {
        let content_type = format!("content-type: {}", self.answer.framing.media_type());
        let chunked = || Script::new().head(200, &[&content_type, "transfer-encoding: chunked"]);
        let whole = self.answer.whole();
        let begun = self.answer.text(self.answer.first_output, "\n");
        let plain = self
            .play("the whole answer", self.answer.head().send(whole.as_str()), Timeouts::default())
            .await?;
        let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        let in_bytes = whole.bytes().fold(chunked(), |script, byte| script.chunk([byte]));
        for (case, script) in [
            ("chunks of one byte", in_bytes.last_chunk()),
            ("heads before the head", Script::new().send(early).head(200, &[&content_type]).send(whole)),
        ] {
            let outcome = self.play(case, script, Timeouts::default()).await?;
            self.wrong.unless(outcome == plain, case, &outcome);
        }
        let compressed = Script::new().head(200, &[&content_type, "content-encoding: gzip"]).send(GZIP);
        let endless = format!("HTTP/1.1 200 OK\r\nx-a: {}", "a".repeat(1 << 20));
        let (unavailable, protocol) =
            (PortableCode::ProviderUnavailable, PortableCode::ProviderProtocolError);
        for (case, script, code, retryable) in [
            ("chunks without the last one", chunked().chunk(&begun), unavailable, false),
            ("a chunk that is none", chunked().chunk(&begun).send("zz\r\n"), unavailable, false),
            ("an answer that is compressed", compressed, protocol, false),
            ("a head without an end", Script::new().send(endless).stall(), unavailable, true),
        ] {
            let outcome = self.play(case, script, Timeouts::default()).await?;
            self.wrong.unless_failed(case, &outcome, code, retryable, None);
        }
        self.bodies_that_nobody_waits_for().await
    }

    /// The status says everything: what follows it may never end.
    async fn bodies_that_nobody_waits_for(&mut self) -> std::io::Result<()> {
        for (status, retryable) in [(400, false), (503, true), (307, true)] {
            let headers = ["content-type: application/json", "content-length: 1000000", "location: /again"];
            let script = Script::new().head(status, &headers).send("{").stall();
            let server = ScriptedServer::start(vec![script]).await?;
            let outcome = self.outcome(&server, Timeouts::default()).await;
            server.abandoned(1).await;
            let case = format!("status {status} with a body without an end");
            let (code, own) = (PortableCode::ProviderUnavailable, status.to_string());
            self.wrong.unless_failed(&case, &outcome, code, retryable, Some(&own));
            self.wrong.unless(server.connections() == 1, &format!("{case}: one connection"), &outcome);
        }
        Ok(())
    }
}
