//! The order of a campaign: live, kill, look offline, perhaps kill again while it starts, restart, check.
//!
//! Owns the moments of the kills and which executions are checked when. What is wrong is decided elsewhere.

mod looks;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::finding::{Class, Findings, Wrong};
use crate::history::History;
use crate::load::Life;
use crate::node::{Home, Node};
use crate::offline;
use crate::random::Random;
use crate::summary::Summary;
use crate::upstream::Upstream;
use looks::Scope;

use crate::work::{COUNTED_ABILITY, COUNTED_PROVIDER, MOCK_ABILITY};

/// Longest start that is waited for. A start takes as long as its journal, not as long as its history of kills.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Longest stop in order.
const STOP_PATIENCE: Duration = Duration::from_secs(30);
/// Most kills of starts in a row.
const STARTS_KILLED_MAX: u64 = 3;
/// Latest moment of a start at which it is killed, in milliseconds.
const START_KILL_MS_MAX: u64 = 50;
/// Latest moment behind a SIGTERM, and of a compaction, at which the process is killed, in milliseconds.
const STOP_KILL_MS_MAX: u64 = 40;
const COMPACTION_KILL_MS_MAX: u64 = 120;
/// Replays compared at the end, beside the running node.
const FINAL_REPLAYS: u64 = 25;
/// The variable that holds the upstream's key in the node's environment.
const UPSTREAM_KEY_ENV: &str = "CRASHBOX_UPSTREAM_KEY";

/// What to do, and to which binary.
#[derive(Debug, Clone)]
pub struct Campaign {
    pub binary: PathBuf,
    /// SIGKILLs in all.
    pub kills: u64,
    pub seed: u64,
    /// Clients at work at the same time.
    pub clients: u64,
    /// Where everything lives; must not hold a journal yet.
    pub dir: PathBuf,
    /// Longest life of a node under load, in milliseconds.
    pub life_ms_max: u64,
    /// Whether to say on standard error how far it is.
    pub progress: bool,
}

impl Campaign {
    /// Runs it to its end. A wrong history is in the summary.
    ///
    /// # Errors
    /// It could not be run at all: no binary, no directory, a first start that fails.
    pub fn run(&self) -> Result<Summary> {
        let begun = Instant::now();
        let upstream = Upstream::start()?;
        let home = self.home(&upstream)?;
        let mut running = Running {
            campaign: self,
            home,
            upstream,
            history: History::default(),
            findings: Findings::default(),
            names: AtomicU64::new(0),
            random: Random::new(self.seed),
            summary: Summary { seed: self.seed, ..Summary::default() },
            cycle: 0,
        };
        running.go()?;
        let Running { mut summary, findings, upstream, home, history, .. } = running;
        (summary.files, summary.bytes) = offline::size(&home.data)?;
        summary.requests = history.len() as u64;
        summary.acknowledged =
            history.all().iter().filter(|record| record.state().acknowledged).count() as u64;
        summary.provider_calls = upstream.total();
        summary.duration = begun.elapsed();
        summary.findings = findings.all();
        Ok(summary)
    }

    fn home(&self, upstream: &Upstream) -> Result<Home> {
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("{} cannot be made", self.dir.display()))?;
        let mut home = Home::inside(&self.dir, &self.binary);
        anyhow::ensure!(!home.data.exists(), "{} is there already", home.data.display());
        let config = self.dir.join("sealog.toml");
        std::fs::write(&config, configuration(upstream)).context("the configuration cannot be written")?;
        home.config = Some(config);
        home.environment.push((UPSTREAM_KEY_ENV.to_owned(), "upstream-key".to_owned()));
        Ok(home)
    }
}

/// Nothing may be refused for want of room: a refusal explains a missing execution.
fn configuration(upstream: &Upstream) -> String {
    format!(
        "max_active_executions = 100000\n\n\
         [[providers]]\ntype = \"mock\"\nabilities = [\"{MOCK_ABILITY}\"]\nmax_concurrency = 100000\n\n\
         [[providers]]\ntype = \"openai-chat\"\nid = \"{COUNTED_PROVIDER}\"\nmodel = \"scripted\"\n\
         abilities = [\"{COUNTED_ABILITY}\"]\nbase_url = \"{}\"\napi_key_env = \"{UPSTREAM_KEY_ENV}\"\n\
         max_concurrency = 100000\n",
        upstream.base_url()
    )
}

/// A campaign under way.
struct Running<'a> {
    campaign: &'a Campaign,
    home: Home,
    upstream: Upstream,
    history: History,
    findings: Findings,
    names: AtomicU64,
    random: Random,
    summary: Summary,
    /// Lives of the node that served, from 1.
    cycle: u64,
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Kill,
    /// SIGTERM, and SIGKILL so many milliseconds later, on its way out.
    StopAndKill(u64),
    /// SIGTERM, and the node's own way out.
    Stop,
}

impl Running<'_> {
    fn go(&mut self) -> Result<()> {
        // A first start that dies leaves a journal that is not one yet, and nothing acknowledged.
        self.kill_starts()?;
        let mut node = self.start()?;
        while self.summary.kills < self.campaign.kills {
            let end = match self.random.chance(30) {
                true => End::StopAndKill(self.random.within(0..=STOP_KILL_MS_MAX)),
                false => End::Kill,
            };
            self.live(node, end)?;
            self.look_offline()?;
            if self.random.chance(30) && self.kill_compaction()? {
                self.look_offline()?;
            }
            if self.random.chance(30) && self.kill_starts()? {
                self.look_offline()?;
            }
            let Some(next) = self.restart()? else { return Ok(()) };
            node = next;
            self.check(&node, Scope::Cycle)?;
            self.say();
            if !self.findings.is_empty() {
                return Ok(());
            }
        }
        // One life ends in order, so that a stop under load is part of every history.
        self.live(node, End::Stop)?;
        let Some(node) = self.restart()? else { return Ok(()) };
        self.check(&node, Scope::Everything)?;
        // The tools work beside a node that serves, too.
        self.look_offline()?;
        self.compare_replays(FINAL_REPLAYS)?;
        // What that check started under a key that had left no trace ends here, and is checked as well.
        self.stop(node)?;
        let Some(node) = self.restart()? else { return Ok(()) };
        self.check(&node, Scope::Cycle)?;
        self.stop(node)?;
        self.look_offline()?;
        self.last_look()
    }

    /// Starts and waits. Only for a start that nothing has to explain.
    fn start(&mut self) -> Result<Node> {
        let begun = Instant::now();
        let node = self.home.start()?.ready(START_PATIENCE)?;
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.summary.start_ms_max = self.summary.start_ms_max.max(took);
        self.cycle += 1;
        Ok(node)
    }

    /// Starts on what a kill has left; a node that does not come up is a finding.
    fn restart(&mut self) -> Result<Option<Node>> {
        match self.start() {
            Ok(node) => Ok(Some(node)),
            Err(error) => {
                let what = format!("no restart behind {} kills: {error:#}", self.summary.kills);
                self.findings.add(self.cycle, Wrong::new(Class::Node, what));
                self.last_look()?;
                Ok(None)
            }
        }
    }

    /// Kills a few starts in a row, each within its first moments. False when there was no kill left for it.
    fn kill_starts(&mut self) -> Result<bool> {
        let left = self.campaign.kills.saturating_sub(self.summary.kills);
        let count = self.random.within(1..=STARTS_KILLED_MAX).min(left);
        for _ in 0..count {
            let starting = self.home.start()?;
            std::thread::sleep(Duration::from_millis(self.random.within(0..=START_KILL_MS_MAX)));
            starting.kill()?;
            self.summary.kills += 1;
            self.summary.kills_at_start += 1;
        }
        Ok(count > 0)
    }

    /// Compacts what a kill has left, and kills that. False when it was not killed.
    fn kill_compaction(&mut self) -> Result<bool> {
        if self.summary.kills >= self.campaign.kills {
            return Ok(false);
        }
        let mut command = self.home.journal("compact");
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().context("journal compact cannot be run")?;
        std::thread::sleep(Duration::from_millis(self.random.within(0..=COMPACTION_KILL_MS_MAX)));
        child.kill()?;
        let status = child.wait()?;
        match status.code() {
            None => {
                self.summary.kills += 1;
                self.summary.kills_at_compaction += 1;
            }
            Some(0) => {}
            Some(code) => {
                let what = format!("journal compact ended with {code} behind {} kills", self.summary.kills);
                self.findings.add(self.cycle, Wrong::new(Class::Tool, what));
            }
        }
        Ok(status.code().is_none())
    }

    /// Puts the node under load and ends it.
    fn live(&mut self, node: Node, end: End) -> Result<()> {
        let ending = AtomicBool::new(false);
        let life = Life {
            address: node.address(),
            cycle: self.cycle,
            history: &self.history,
            findings: &self.findings,
            ending: &ending,
            names: &self.names,
            seed: self.campaign.seed,
        };
        // Short lives meet the first commits of a segment, long ones meet full groups and rotation.
        let reach = *self.random.pick(&[40, self.campaign.life_ms_max / 3, self.campaign.life_ms_max]);
        let lasts = Duration::from_millis(self.random.within(0..=reach.max(1)));
        let forks: Vec<Random> = (0..self.campaign.clients).map(|_| self.random.fork()).collect();
        let ended = std::thread::scope(|scope| {
            for random in forks {
                let life = &life;
                scope.spawn(move || life.client(random));
            }
            std::thread::sleep(lasts);
            // Announced first: whatever breaks from now on is explained.
            ending.store(true, Ordering::SeqCst);
            match end {
                End::Kill => node.kill().map(|()| true),
                End::StopAndKill(after_ms) => node.stop_and_kill(Duration::from_millis(after_ms)),
                End::Stop => stop_in_order(node).map(|()| false),
            }
        });
        let killed = u64::from(*ended.as_ref().unwrap_or(&true));
        match end {
            End::Kill => self.summary.kills += 1,
            End::StopAndKill(_) => {
                self.summary.kills += killed;
                self.summary.kills_at_stop += killed;
                // It may have been on its way out with some, and all the way with others.
                for record in self.history.all().iter().filter(|record| !record.is_settled()) {
                    record.ask_stop();
                }
            }
            End::Stop => self.mark_stopped(),
        }
        if let Err(error) = ended {
            self.findings.add(self.cycle, Wrong::new(Class::Node, format!("{error:#}")));
        }
        Ok(())
    }

    /// A stop without load.
    fn stop(&mut self, node: Node) -> Result<()> {
        self.mark_stopped();
        if let Err(error) = stop_in_order(node) {
            self.findings.add(self.cycle, Wrong::new(Class::Node, format!("{error:#}")));
        }
        Ok(())
    }

    fn mark_stopped(&self) {
        for record in self.history.all().iter().filter(|record| !record.is_settled()) {
            record.stop_in_order();
        }
    }

    fn say(&self) {
        if self.campaign.progress {
            eprintln!(
                "{} of {} kills, {} requests, {} checks",
                self.summary.kills,
                self.campaign.kills,
                self.history.len(),
                self.summary.checks
            );
        }
    }
}

fn stop_in_order(node: Node) -> Result<()> {
    node.signal(Signal::TERM)?;
    let status = node.ended(STOP_PATIENCE)?;
    anyhow::ensure!(status.success(), "a stop in order ended with {status}");
    Ok(())
}
