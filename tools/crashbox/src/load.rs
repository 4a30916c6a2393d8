//! The clients of one life of a node: what they do until it is killed.
//!
//! Every client tells the history before it sends and after it hears. A transfer that breaks is a finding unless the
//! kill had been announced, and the announcement is made before the signal is sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::exchange::{self, Submitted, Until};
use crate::finding::{Class, Findings, Stop, Wrong};
use crate::history::{History, Record, State};
use crate::http::{Client, Request};
use crate::random::Random;
use crate::work::Work;

/// Longest silence of a node; a stream's heartbeat is far more frequent.
pub const PATIENCE: Duration = Duration::from_secs(45);
/// The largest body that is taken.
const BODY_BYTES_MAX: usize = 1_048_576;

/// One life of a node, as its clients see it.
#[derive(Debug)]
pub struct Life<'a> {
    pub address: SocketAddr,
    /// Counted from 1.
    pub cycle: u64,
    pub history: &'a History,
    pub findings: &'a Findings,
    /// Set before the node is killed or stopped.
    pub ending: &'a AtomicBool,
    /// Makes names unique in the campaign.
    pub names: &'a AtomicU64,
    /// Makes names unique among campaigns.
    pub seed: u64,
}

impl Life<'_> {
    /// A client that works until the node's end is announced.
    pub fn client(&self, mut random: Random) {
        let mut client = Client::new(self.address, PATIENCE);
        while !self.is_ending() {
            let done = self.act(&mut client, &mut random);
            if self.note(done) {
                client = Client::new(self.address, PATIENCE);
            }
        }
    }

    /// A new record of a random request.
    pub fn enlist(&self, random: &mut Random) -> Arc<Record> {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let name = format!("w{:x}-{number}", self.seed);
        self.history.enlist(Work::random(name, random), self.cycle)
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Files what went wrong. True when the connection is not to be used again.
    fn note(&self, done: Result<(), Stop>) -> bool {
        match done {
            Ok(()) => return false,
            Err(Stop::Transport(_)) if self.is_ending() => {}
            Err(Stop::Transport(error)) => {
                let what = format!("a transfer broke while nobody killed the node: {error}");
                self.findings.add(self.cycle, Wrong::new(Class::Node, what));
            }
            Err(Stop::Wrong(wrong)) => self.findings.add(self.cycle, wrong),
        }
        true
    }

    fn act(&self, client: &mut Client, random: &mut Random) -> Result<(), Stop> {
        match random.within(0..=99) {
            0..=29 => self.submit(client, random),
            30..=54 => {
                let record = self.enlist(random);
                exchange::submit_streaming(client, &record, until(&record, random)).map(|_| ())
            }
            55..=64 => self.race(random),
            65..=84 => self.read(client, random),
            85..=92 => self.again(client, random),
            _ => refused(client, random),
        }
    }

    /// A submission, and then often its events, a snapshot, or a cancel.
    fn submit(&self, client: &mut Client, random: &mut Random) -> Result<(), Stop> {
        let record = self.enlist(random);
        exchange::submit(client, &record)?;
        let Some(id) = record.id() else { return Ok(()) };
        if random.chance(25) {
            exchange::cancel(client, &record, &id)?;
        }
        if random.chance(30) {
            exchange::snapshot(client, &record, &id)?;
        }
        if random.chance(60) {
            exchange::follow(client, &record, &id, after(&record, random), until(&record, random))?;
        }
        Ok(())
    }

    /// Several clients with one key at once; an answer that contradicts another is found by the history.
    fn race(&self, random: &mut Random) -> Result<(), Stop> {
        let mut record = self.enlist(random);
        while record.work.key.is_none() {
            record = self.enlist(random);
        }
        let racers = random.within(2..=6);
        std::thread::scope(|scope| {
            let race = |_| {
                let record = &record;
                scope.spawn(move || {
                    let mut client = Client::new(self.address, PATIENCE);
                    self.note(exchange::submit(&mut client, record).map(|_| ()));
                })
            };
            let _racing: Vec<_> = (0..racers).map(race).collect();
        });
        let State { originals, refused, .. } = record.state();
        if originals == 0 && !refused && !self.is_ending() {
            let what = format!("{racers} racers for {} and no original", record.work.name);
            return Err(Wrong::new(Class::Lost, what).into());
        }
        Ok(())
    }

    /// Somebody's execution, from a random place.
    fn read(&self, client: &mut Client, random: &mut Random) -> Result<(), Stop> {
        let reach = if random.chance(70) { 30 } else { self.history.len() as u64 };
        let Some(record) = self.history.newest(random.within(0..=reach) as usize) else { return Ok(()) };
        let Some(id) = record.id() else { return Ok(()) };
        match random.within(0..=3) {
            0 => exchange::snapshot(client, &record, &id).map(|_| ()),
            1 => exchange::result(client, &id).map(|_| ()),
            _ => exchange::follow(client, &record, &id, after(&record, random), until(&record, random))
                .map(|_| ()),
        }
    }

    /// A known request once more, of this life or an earlier one.
    fn again(&self, client: &mut Client, random: &mut Random) -> Result<(), Stop> {
        let Some(record) = self.history.newest(random.within(0..=200) as usize) else { return Ok(()) };
        let State { acknowledged, .. } = record.state();
        if record.work.key.is_none() || !acknowledged {
            return Ok(());
        }
        // Acknowledged before this was sent: it cannot be new any more.
        if exchange::submit(client, &record)? == Submitted::New {
            let what = format!("{} was acknowledged and is unknown", record.work.name);
            return Err(Wrong::new(Class::Lost, what).into());
        }
        Ok(())
    }
}

/// A reader of a silent execution waits until the node is killed. A few do, not all.
fn waits(record: &Record, random: &mut Random) -> bool {
    !record.work.expected.stalls || random.chance(8)
}

fn until(record: &Record, random: &mut Random) -> Until {
    if !waits(record, random) {
        // Accepted and routed: what every execution that stalls has come to.
        return Until::Frames(random.within(1..=2));
    }
    if random.chance(60) { Until::End } else { Until::Frames(random.within(1..=6)) }
}

/// Cursors beyond the head are part of the protocol: such a reader waits.
fn after(record: &Record, random: &mut Random) -> u64 {
    if waits(record, random) { random.within(0..=9) } else { 0 }
}

/// Requests that must be refused, and after which the node must go on.
fn refused(client: &mut Client, random: &mut Random) -> Result<(), Stop> {
    let large = vec![b' '; BODY_BYTES_MAX + 1];
    let (kind, body): (&str, &[u8]) = match random.within(0..=3) {
        0 => ("application/json", b"{\"ability\":"),
        1 => ("text/plain", b"{}"),
        2 => ("application/json", b"{\"ability\":\"a\",\"input\":[],\"unknown\":1}"),
        _ => ("application/json", &large),
    };
    let headers = [("content-type", kind)];
    let reply = client.ask(&Request::post("/v1/executions", &headers, body))?;
    if reply.status == 400 { Ok(()) } else { Err(exchange::unexpected("an invalid request", &reply).into()) }
}
