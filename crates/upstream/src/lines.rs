//! A body of lines, each bounded and each a whole piece. The last line needs its end as well: half a line cannot be
//! told from a whole one.

use bytes::BytesMut;
use futures_core::stream::BoxStream;
use futures_util::StreamExt;

use crate::sse::Pieces;
use crate::{EVENT_BYTES_MAX, ServerEvent, UpstreamError};

struct Lines {
    pieces: Pieces,
    /// Received and not yet handed on; less than a piece more than the largest line.
    kept: BytesMut,
    /// How much of `kept` is known to hold no line end.
    searched: usize,
}

/// The lines that hold anything but white space. Ends after the first error.
pub(crate) fn lines(pieces: Pieces) -> BoxStream<'static, Result<ServerEvent, UpstreamError>> {
    let lines = Lines { pieces, kept: BytesMut::new(), searched: 0 };
    futures_util::stream::try_unfold(lines, |mut lines| async move {
        Ok(lines.next().await?.map(|line| (line, lines)))
    })
    .boxed()
}

impl Lines {
    async fn next(&mut self) -> Result<Option<ServerEvent>, UpstreamError> {
        loop {
            let end = self.kept[self.searched..].iter().position(|&byte| byte == b'\n');
            if let Some(end) = end.map(|end| self.searched + end) {
                let line = self.kept.split_to(end + 1);
                self.searched = 0;
                if line.len() > EVENT_BYTES_MAX {
                    return Err(UpstreamError::EventTooLarge);
                }
                let line = std::str::from_utf8(&line).map_err(|_| UpstreamError::NotUtf8)?.trim();
                if !line.is_empty() {
                    return Ok(Some(ServerEvent { event: None, id: None, data: line.to_owned() }));
                }
                continue;
            }
            self.searched = self.kept.len();
            if self.kept.len() > EVENT_BYTES_MAX {
                return Err(UpstreamError::EventTooLarge);
            }
            match self.pieces.next().await {
                Some(piece) => self.kept.extend_from_slice(&piece?),
                None if self.kept.trim_ascii().is_empty() => return Ok(None),
                None => return Err(UpstreamError::Truncated),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    async fn read(pieces: &[&[u8]]) -> (Vec<String>, Option<UpstreamError>) {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let mut lines = lines(futures_util::stream::iter(pieces).boxed());
        let mut found = Vec::new();
        while let Some(line) = lines.next().await {
            match line {
                Ok(line) => found.push(line.data),
                Err(error) => return (found, Some(error)),
            }
        }
        (found, None)
    }

    #[track_caller]
    fn lines_are(found: &(Vec<String>, Option<UpstreamError>), lines: &[&str], error: Option<UpstreamError>) {
        assert_eq!(
            (found.0.iter().map(String::as_str).collect::<Vec<_>>(), found.1),
            (lines.to_vec(), error)
        );
    }

    #[tokio::test]
    async fn lines_come_whole_wherever_they_were_cut() {
        let text = "{\"a\":\"\u{e9}\u{1f600}\"}\r\n\n{\"b\":1}\n".as_bytes();
        let expected = ["{\"a\":\"\u{e9}\u{1f600}\"}", "{\"b\":1}"];
        for cut in 0..=text.len() {
            lines_are(&read(&[&text[..cut], &text[cut..]]).await, &expected, None);
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        lines_are(&read(&single).await, &expected, None);
    }

    #[tokio::test]
    async fn half_lines_huge_lines_and_broken_text_end_it() {
        lines_are(&read(&[b"{}\n{"]).await, &["{}"], Some(UpstreamError::Truncated));
        lines_are(&read(&[b"{}\n{\"a\":\"\xff\"}\n"]).await, &["{}"], Some(UpstreamError::NotUtf8));
        let most = vec![b'x'; EVENT_BYTES_MAX - 1];
        assert_eq!(read(&[&most, b"\n"]).await.1, None);
        assert_eq!(read(&[&most, b"xx\n"]).await.1, Some(UpstreamError::EventTooLarge));
        assert_eq!(read(&[&most, b"xx"]).await.1, Some(UpstreamError::EventTooLarge));
    }
}
