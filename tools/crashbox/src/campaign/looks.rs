//! The looks at what is left: over HTTP at a restarted node, and offline at its journal.
//!
//! Owns which executions are looked at when. Everything that cannot be running any more is checked once, right after
//! the end of its node; of what was checked before, a sample each time and everything at the end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

use super::Running;
use crate::check::{Checked, check};
use crate::finding::{Class, Stop, Wrong};
use crate::history::Record;
use crate::http::{Client, Request};
use crate::load::PATIENCE;
use crate::node::Node;
use crate::offline;
use crate::random::Random;
use crate::summary::Summary;

/// Settled executions checked again after each restart.
const SAMPLE: u64 = 30;
/// Checks at the same time.
const CHECKERS: usize = 4;
/// Offline replays after each kill.
const REPLAYS: u64 = 2;

/// Which executions to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those of the life that ended, and a sample of older ones.
    Cycle,
    Everything,
}

/// One round of checks, shared by its checkers.
struct Round {
    address: SocketAddr,
    chosen: Vec<Arc<Record>>,
    next: AtomicUsize,
    counted: Mutex<Summary>,
}

impl Running<'_> {
    /// Checks executions on a node that has just come up.
    pub(super) fn check(&mut self, node: &Node, scope: Scope) -> Result<()> {
        let chosen = self.choose(scope);
        for record in chosen.iter().filter(|record| !record.is_settled()) {
            self.summary.delivered_before_end += record.state().delivered.len() as u64;
        }
        self.ready(node);
        let round = Round {
            address: node.address(),
            chosen,
            next: AtomicUsize::new(0),
            counted: Mutex::new(std::mem::take(&mut self.summary)),
        };
        let checkers: Vec<Random> = (0..CHECKERS).map(|_| self.random.fork()).collect();
        std::thread::scope(|scope| {
            for random in checkers {
                let (this, round) = (&*self, &round);
                scope.spawn(move || this.checker(round, random));
            }
        });
        self.summary = round.counted.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.directory()
    }

    fn choose(&mut self, scope: Scope) -> Vec<Arc<Record>> {
        let all = self.history.all();
        let (settled, mut chosen): (Vec<_>, Vec<_>) = all.into_iter().partition(|record| record.is_settled());
        chosen.retain(|record| !record.state().unknowable);
        match scope {
            Scope::Everything => chosen.extend(settled),
            Scope::Cycle if settled.is_empty() => {}
            Scope::Cycle => {
                chosen.extend((0..SAMPLE).map(|_| Arc::clone(self.random.pick(&settled))));
            }
        }
        chosen
    }

    fn checker(&self, round: &Round, mut random: Random) {
        let mut client = Client::new(round.address, PATIENCE);
        while let Some(record) = round.chosen.get(round.next.fetch_add(1, Ordering::Relaxed)) {
            let (was_settled, acknowledged) = (record.is_settled(), record.state().acknowledged);
            let checked = match check(&mut client, record, &self.upstream, &mut random) {
                Ok(checked) => checked,
                Err(stop) => {
                    client = Client::new(round.address, PATIENCE);
                    self.findings.add(self.cycle, explained(stop));
                    continue;
                }
            };
            self.file(record, checked);
            let mut counted = round.counted.lock().unwrap_or_else(PoisonError::into_inner);
            counted.checks += 1;
            if !was_settled {
                counted.count(checked, acknowledged);
                counted.events += record.state().settled.map_or(0, |frames| frames.len() as u64);
            }
        }
    }

    fn file(&self, record: &Record, checked: Checked) {
        match checked {
            Checked::Ended(_) => {}
            Checked::StartedNow => record.live_in(self.cycle),
            Checked::Unknown => record.give_up(),
        }
    }

    /// It says that it is ready, and serves what it says.
    fn ready(&self, node: &Node) {
        let mut client = Client::new(node.address(), PATIENCE);
        let wrong = match client.ask(&Request::get("/v1/runtime")) {
            Ok(reply) if reply.status == 200 && reply.text().contains("\"state\":\"ready\"") => return,
            Ok(reply) => Wrong::new(Class::Node, format!("not ready: {} {}", reply.status, reply.text())),
            Err(error) => Wrong::new(Class::Node, format!("not ready: {error}")),
        };
        self.findings.add(self.cycle, wrong);
    }

    fn directory(&self) -> Result<()> {
        if let Err(wrong) = offline::directory(&self.home.data)? {
            self.findings.add(self.cycle, wrong);
        }
        Ok(())
    }

    /// What the offline tools say about the journal of a node that is gone.
    pub(super) fn look_offline(&mut self) -> Result<()> {
        if self.cycle == 0 {
            return Ok(());
        }
        self.summary.verified += 1;
        match offline::verify(&self.home)? {
            Ok(verified) => {
                self.summary.torn_tails += u64::from(verified.torn_tail);
                self.summary.segments = verified.segments;
                self.summary.executions_stored = verified.executions;
                self.summary.records_stored = verified.records;
                self.count_executions(verified.executions);
            }
            Err(wrong) => self.findings.add(self.cycle, wrong),
        }
        self.compare_replays(REPLAYS)
    }

    /// Every acknowledged execution is stored, and nothing that nobody asked for.
    fn count_executions(&self, stored: u64) {
        let all = self.history.all();
        let known = all.iter().filter(|record| record.state().acknowledged).count() as u64;
        if stored < known {
            let what = format!("{stored} executions are stored, {known} were acknowledged");
            self.findings.add(self.cycle, Wrong::new(Class::Lost, what));
        }
        if stored > all.len() as u64 {
            let what = format!("{stored} executions are stored, {} requests were ever sent", all.len());
            self.findings.add(self.cycle, Wrong::new(Class::Phantom, what));
        }
    }

    /// Replays some executions offline: fresh ones rather than old ones, they are where a kill can hurt.
    pub(super) fn compare_replays(&mut self, count: u64) -> Result<()> {
        let all: Vec<Arc<Record>> =
            self.history.all().into_iter().filter(|record| record.id().is_some()).collect();
        for _ in 0..count {
            if all.is_empty() {
                return Ok(());
            }
            let fresh = all.len().saturating_sub(60);
            let record =
                if self.random.chance(70) { self.random.pick(&all[fresh..]) } else { self.random.pick(&all) };
            let Some(id) = record.id() else { continue };
            self.summary.replayed += 1;
            if let Err(wrong) = offline::replay(&self.home, record, &id, record.is_settled())? {
                self.findings.add(self.cycle, wrong);
            }
        }
        Ok(())
    }

    /// Beside what was checked all along: no panic in any life, and no request that nobody made.
    pub(super) fn last_look(&self) -> Result<()> {
        if let Some(lines) = offline::panic(&self.home.log)? {
            self.findings.add(self.cycle, Wrong::new(Class::Node, lines));
        }
        if let Some(strange) = self.upstream.strange().first() {
            let what = format!("the provider received what nobody asked for: {strange}");
            self.findings.add(self.cycle, Wrong::new(Class::Phantom, what));
        }
        self.unique()
    }

    /// No two requests share an execution.
    fn unique(&self) -> Result<()> {
        let mut ids: Vec<String> = self.history.all().iter().filter_map(|record| record.id()).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            let what = format!("two requests share the execution {}", pair[0]);
            self.findings.add(self.cycle, Wrong::new(Class::Phantom, what));
        }
        Ok(())
    }
}

fn explained(stop: Stop) -> Wrong {
    match stop {
        Stop::Wrong(wrong) => wrong,
        Stop::Transport(error) => {
            Wrong::new(Class::Node, format!("a transfer broke while everything was checked: {error}"))
        }
    }
}
