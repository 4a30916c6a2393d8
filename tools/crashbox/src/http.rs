//! HTTP/1.1 as a checker needs it: every body byte as it came, and a broken transfer told from a complete one.
//!
//! A connection is used again only when its last answer was read to the end a moment ago. Nothing is ever sent a
//! second time: a request that fails has an unknown fate, and that is what the campaign wants to know.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long an answered connection may rest and still be trusted to be open.
const REST_MS_MAX: u64 = 1_000;
/// Longest line of a head or of a chunk's size.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// One request. `headers` come after `host` and the length.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// A `GET` without headers of its own.
    pub fn get(path: &'a str) -> Request<'a> {
        Request { method: "GET", path, headers: &[], body: None }
    }

    /// A `POST` of JSON with exactly these headers, the content type among them.
    pub fn post(path: &'a str, headers: &'a [(&'a str, &'a str)], body: &'a [u8]) -> Request<'a> {
        Request { method: "POST", path, headers, body: Some(body) }
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as text for evidence, cut short.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(2_000)]).into_owned()
    }
}

/// Names in lower case with their values, in order.
#[derive(Debug, Clone, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct Opened {
    pub status: u16,
    pub headers: Headers,
    pub body: Body<BufReader<TcpStream>>,
}

/// Speaks to one node; one request at a time.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    patience: Duration,
    rested: Option<(Instant, BufReader<TcpStream>)>,
}

impl Client {
    /// `patience` bounds every single read and write.
    pub fn new(address: SocketAddr, patience: Duration) -> Client {
        Client { address, patience, rested: None }
    }

    /// Sends, and reads the whole answer.
    ///
    /// # Errors
    /// Any failure of the transport, a body that ends early among them.
    pub fn ask(&mut self, request: &Request<'_>) -> io::Result<Reply> {
        let Opened { status, headers, mut body } = self.open(request)?;
        let mut bytes = Vec::new();
        while body.read_some(&mut bytes)? {}
        self.rest(body);
        Ok(Reply { status, headers, body: bytes })
    }

    /// Sends, and reads the head of the answer.
    ///
    /// # Errors
    /// Any failure of the transport.
    pub fn open(&mut self, request: &Request<'_>) -> io::Result<Opened> {
        let mut connection = self.connection()?;
        connection.get_mut().write_all(&encoded(request))?;
        let (status, headers) = read_head(&mut connection)?;
        let framing = Framing::of(&headers)?;
        Ok(Opened { status, headers, body: Body { source: connection, framing } })
    }

    /// Takes back the connection of a body that was read to its end.
    pub fn rest(&mut self, body: Body<BufReader<TcpStream>>) {
        if matches!(body.framing, Framing::Ended) {
            self.rested = Some((Instant::now(), body.source));
        }
    }

    fn connection(&mut self) -> io::Result<BufReader<TcpStream>> {
        if let Some((since, connection)) = self.rested.take()
            && since.elapsed() < Duration::from_millis(REST_MS_MAX)
        {
            return Ok(connection);
        }
        let stream = TcpStream::connect_timeout(&self.address, self.patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        Ok(BufReader::new(stream))
    }
}

fn encoded(request: &Request<'_>) -> Vec<u8> {
    let Request { method, path, headers, body } = request;
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n").into_bytes();
    for (name, value) in *headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if let Some(body) = body {
        bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.unwrap_or_default());
    bytes
}

/// Reads a status line and headers.
pub(crate) fn read_head(source: &mut impl BufRead) -> io::Result<(u16, Headers)> {
    let first = line(source)?;
    let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| invalid("no status line"))?;
    Ok((status, read_headers(source)?))
}

/// Reads headers up to the blank line.
pub(crate) fn read_headers(source: &mut impl BufRead) -> io::Result<Headers> {
    let mut headers = Headers::default();
    loop {
        let line = line(source)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header without a colon"))?;
        headers.0.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// One line without its end.
pub(crate) fn line(source: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Err(early());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| invalid("a line is not UTF-8"))
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// So many bytes are left of the message.
    Length(u64),
    /// So many bytes are left of the chunk.
    Chunk(u64),
    /// The next chunk's size comes next.
    Size,
    /// Everything was read.
    Ended,
}

impl Framing {
    fn of(headers: &Headers) -> io::Result<Framing> {
        if headers.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return Ok(Framing::Size);
        }
        // A body that lasts until the connection ends could not be told from one cut by a kill.
        let length = headers.get("content-length").ok_or_else(|| invalid("a body without an end"))?;
        match length.parse() {
            Ok(0) => Ok(Framing::Ended),
            Ok(length) => Ok(Framing::Length(length)),
            Err(_) => Err(invalid("a length that is no number")),
        }
    }
}

/// A body that arrives.
#[derive(Debug)]
pub struct Body<R> {
    source: R,
    framing: Framing,
}

impl<R: BufRead> Body<R> {
    /// Appends what has arrived, waiting for at least one byte; false at the proper end.
    ///
    /// # Errors
    /// `UnexpectedEof` for a transfer that broke, and whatever the source fails with.
    pub fn read_some(&mut self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            match self.framing {
                Framing::Ended => return Ok(false),
                Framing::Length(left) => {
                    let left = self.take(left, bytes)?;
                    self.framing = if left == 0 { Framing::Ended } else { Framing::Length(left) };
                    return Ok(true);
                }
                Framing::Chunk(left) => {
                    let left = self.take(left, bytes)?;
                    self.framing = Framing::Chunk(left);
                    if left == 0 {
                        self.framing = Framing::Size;
                        // The line end belongs to the chunk; without it the chunk was cut.
                        line(&mut self.source)?;
                    }
                    return Ok(true);
                }
                Framing::Size => self.next_chunk()?,
            }
        }
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let size = u64::from_str_radix(line(&mut self.source)?.trim(), 16)
            .map_err(|_| invalid("a chunk size that is no number"))?;
        self.framing = Framing::Chunk(size);
        if size == 0 {
            read_headers(&mut self.source)?;
            self.framing = Framing::Ended;
        }
        Ok(())
    }

    /// Moves at most `left` bytes and says how many are left then.
    fn take(&mut self, left: u64, bytes: &mut Vec<u8>) -> io::Result<u64> {
        let here = self.source.fill_buf()?;
        if here.is_empty() {
            return Err(early());
        }
        let count = here.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        bytes.extend_from_slice(&here[..count]);
        self.source.consume(count);
        Ok(left - count as u64)
    }
}

fn early() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the transfer broke")
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(framing: Framing, text: &str) -> io::Result<String> {
        let mut body = Body { source: text.as_bytes(), framing };
        let mut bytes = Vec::new();
        while body.read_some(&mut bytes)? {}
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn chunks_are_joined_up_to_the_last_one() {
        assert_eq!(read(Framing::Size, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").unwrap(), "abcde");
    }

    #[test]
    fn a_body_without_its_end_is_broken() {
        for text in ["", "3\r\nabc\r\n", "3\r\nab", "3\r\nabc", "0\r\n"] {
            let error = read(Framing::Size, text).expect_err(text);
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{text:?}");
        }
        let error = read(Framing::Length(4), "abc").expect_err("a byte is missing");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_length_ends_a_body() {
        assert_eq!(read(Framing::Length(3), "abcdef").unwrap(), "abc");
    }

    #[test]
    fn heads_are_read_and_bodies_need_an_end() {
        let mut source = "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nX: a:b\r\n\r\n".as_bytes();
        let (status, headers) = read_head(&mut source).unwrap();
        assert_eq!((status, headers.get("x")), (202, Some("a:b")));
        assert_eq!(Framing::of(&headers).unwrap(), Framing::Length(2));
        assert!(Framing::of(&Headers::default()).is_err());
    }
}
