//! One keep-alive connection: HTTP/1.1 with as little work a byte as a client can do, because the client shares the
//! machine with what it measures.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CHUNK_LINE_BYTES_MAX: usize = 32;
const HEAD_BYTES_MAX: usize = 16 << 10;

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// Read and not yet taken, from `at` on.
    buffer: Vec<u8>,
    at: usize,
}

/// How an answer's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Length(usize),
    Chunked,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// When the first bytes of the body were there.
    pub first: Instant,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        Connection::over(TcpStream::connect(address).await.context("no connection")?)
    }

    pub fn over(stream: TcpStream) -> Result<Connection> {
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::new(), at: 0 })
    }

    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    async fn more(&mut self) -> Result<()> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        }
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the connection ended within an answer");
        }
        Ok(())
    }

    /// Takes bytes up to and with `end`.
    async fn until(&mut self, end: &[u8], bytes_max: usize) -> Result<Vec<u8>> {
        loop {
            if let Some(found) = self.unread().windows(end.len()).position(|window| window == end) {
                let taken = self.unread()[..found + end.len()].to_vec();
                self.at += taken.len();
                return Ok(taken);
            }
            if self.unread().len() > bytes_max {
                bail!("the node sent no answer");
            }
            self.more().await?;
        }
    }

    async fn exactly(&mut self, count: usize, to: &mut Vec<u8>) -> Result<()> {
        while self.unread().len() < count {
            self.more().await?;
        }
        to.extend_from_slice(&self.unread()[..count]);
        self.at += count;
        Ok(())
    }

    /// Status, and how the body ends.
    pub async fn head(&mut self) -> Result<(u16, Body)> {
        parse_head(&self.until(b"\r\n\r\n", HEAD_BYTES_MAX).await?)
    }

    /// Appends the next chunk of a chunked body; `false` after the last one.
    pub async fn chunk(&mut self, to: &mut Vec<u8>) -> Result<bool> {
        let line = self.until(b"\r\n", CHUNK_LINE_BYTES_MAX).await?;
        let digits = std::str::from_utf8(&line)?.trim();
        let size = usize::from_str_radix(digits, 16).with_context(|| format!("`{digits}` is no length"))?;
        let before = to.len();
        self.exactly(size + 2, to).await?;
        if !to.ends_with(b"\r\n") {
            bail!("a chunk is not as long as it says");
        }
        to.truncate(before + size);
        Ok(size > 0)
    }

    /// Sends a request and reads the whole answer.
    pub async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        self.send(request).await?;
        let (status, ends) = self.head().await?;
        let mut body = Vec::with_capacity(4096);
        let mut first = None;
        match ends {
            Body::Length(count) => {
                self.exactly(count, &mut body).await?;
                first = Some(Instant::now());
            }
            Body::Chunked => {
                while self.chunk(&mut body).await? {
                    first.get_or_insert_with(Instant::now);
                }
            }
        }
        Ok(Answer { status, body, first: first.context("the answer is empty")? })
    }
}

fn parse_head(head: &[u8]) -> Result<(u16, Body)> {
    let text = std::str::from_utf8(head)?;
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).context("no status line")?;
    let mut body = None;
    for line in text.lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            body = Some(Body::Length(value.trim().parse()?));
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            body = Some(Body::Chunked);
        }
    }
    Ok((status.parse()?, body.context("the answer says neither its length nor that it is chunked")?))
}

/// Sequences of the events in the text of a stream.
pub fn sequences(body: &[u8]) -> impl Iterator<Item = u64> {
    body.split(|byte| *byte == b'\n').filter_map(|line| {
        let number = std::str::from_utf8(line.strip_prefix(b"id: ")?).ok()?;
        number.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_how_the_body_ends() {
        let length = parse_head(b"HTTP/1.1 202 Accepted\r\ncontent-length: 12\r\n\r\n").unwrap();
        assert_eq!(length, (202, Body::Length(12)));
        let chunked = parse_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        assert_eq!(chunked, (200, Body::Chunked));
        assert!(parse_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn comments_are_no_events() {
        let text = b"id: 1\nevent: a\ndata: {\"id: 9\":1}\n\n: heartbeat\n\nid: 2\nevent: b\ndata: {}\n\n";
        assert_eq!(sequences(text).collect::<Vec<_>>(), [1, 2]);
    }

    #[tokio::test]
    async fn chunks_are_put_together_whatever_the_packets_are() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            for part in [
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r",
                "\n4\r\nab",
                "cd\r\n1",
                "\r\ne\r\n0\r\n\r\n",
            ] {
                stream.write_all(part.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut connection = Connection::open(address).await.unwrap();
        let answer = connection.ask(b"x").await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"abcde"[..]));
        server.await.unwrap();
    }
}
