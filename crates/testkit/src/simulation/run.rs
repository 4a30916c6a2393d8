//! Runs a plan: life after life, each judged when it ends, and the whole again at the end.

use std::cell::RefCell;
use std::rc::Rc;

use http_body_util::BodyExt;
use sealog_disk::Disk;
use sealog_disk::sim::Choice;
use sealog_engine::EventStore;
use sealog_engine::store::journal::{OpenError, Opened};
use sealog_events::json::{result_json, snapshot_json};
use sealog_events::{ErrorFact, EventBody, ExecutionId, Outcome, PortableCode, Status};

use super::class::{Class, Totals};
use super::client::text;
use super::host::Host;
use super::node::{Node, Setup};
use super::offline::{self, Cut, Done, Offline, Vault};
use super::pages;
use super::plan::{Action, LOOKS, Plan, Step};
use super::random::Random;
use super::script::lock;
use super::world::World;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Finished {
    /// One line for everything that happened, in order.
    pub trace: Vec<String>,
    pub violation: Option<String>,
    pub totals: Totals,
}

/// How a life ended.
#[derive(Debug)]
enum End {
    /// In order.
    Closed,
    Killed,
    PowerLost(Choice),
    /// The steps are used up.
    StepsOver,
    /// The run is over.
    Over,
}

/// Runs a plan to its end or to its first violation.
pub fn run(plan: &Plan) -> Finished {
    let world = Rc::new(RefCell::new(World::new(plan.seed, plan.swarm.limits)));
    match Host::new(plan.seed, &plan.swarm) {
        Ok(host) => {
            let setup = Setup { options: plan.swarm.options, large: plan.swarm.large };
            let looks = Random::of(plan.seed, LOOKS);
            let mut run = Run {
                vault: Vault::default(),
                offline: None,
                plan,
                world: Rc::clone(&world),
                host,
                setup,
                at: 0,
                looks,
                cut: None,
                start_cut: None,
            };
            run.lives();
        }
        Err(error) => world.borrow_mut().violated(format!("no journal could be made: {error}")),
    }
    let mut world = world.borrow_mut();
    // The journal is held by what the provider wrote down.
    lock(&world.calls).journal = None;
    if plan.swarm.large {
        world.met(Class::Large);
    }
    if !plan.swarm.faults {
        world.met(Class::Faultless);
    }
    Finished {
        trace: std::mem::take(&mut world.trace),
        violation: world.violation.take(),
        totals: std::mem::take(&mut world.totals),
    }
}

struct Run<'a> {
    plan: &'a Plan,
    world: Rc<RefCell<World>>,
    host: Host,
    setup: Setup,
    /// The next step.
    at: usize,
    looks: Random,
    /// What a power cut that was ordered keeps.
    cut: Option<Choice>,
    /// A cut of the next start.
    start_cut: Option<(u64, Choice)>,
    /// What is to be done before the next start.
    offline: Option<Offline>,
    vault: Vault,
}

impl Run<'_> {
    fn violated(&self, what: impl Into<String>) {
        self.world.borrow_mut().violated(what);
    }

    fn is_violated(&self) -> bool {
        self.world.borrow().violation.is_some()
    }

    fn lives(&mut self) {
        // Bounded by the steps: each life takes one, but the last two.
        loop {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            let Ok(runtime) = runtime else { return self.violated("no runtime could be made") };
            let end = runtime.block_on(self.life());
            if self.is_violated() {
                return;
            }
            // Copied before the node is dropped: nothing that its end does counts any more.
            match &end {
                End::Killed => self.host.kill(),
                End::PowerLost(keep) => self.host.lose_power(*keep),
                End::Closed | End::StepsOver | End::Over => {}
            }
            lock(&self.world.borrow().calls).journal = None;
            drop(runtime);
            {
                let mut world = self.world.borrow_mut();
                world.note(format!("end {end:?}"));
                world.readers.clear();
                world.stopping = false;
                world.in_trouble = false;
                world.totals.crash_images += u64::from(matches!(&end, End::Killed | End::PowerLost(_)));
            }
            self.host.disk.clear_faults();
            self.host.disk.cut_at(u64::MAX);
            self.cut = None;
            self.host.next_process();
            self.judge();
            if let Some(work) = self.offline.take().filter(|_| !self.is_violated()) {
                self.work_offline(work);
            }
            if self.is_violated() || matches!(end, End::Over) {
                return;
            }
        }
    }

    fn work_offline(&mut self, work: Offline) {
        // What a tool saw in the page cache counts as durable from here on, and only a start would sync it.
        self.host.write_back();
        let done = offline::work(&mut self.host, &mut self.vault, &self.world, work);
        self.host.next_process();
        let mut world = self.world.borrow_mut();
        world.note(format!("  {work:?}: {}", done.as_ref().map_or("violated", Done::as_str)));
        match done {
            Ok(Done::Well) => world.totals.met.add_done(work),
            Ok(Done::Nothing) => return,
            Ok(Done::Cut) => {
                world.met(Class::OfflineCut);
                world.totals.crash_images += 1;
            }
            Ok(Done::Imported(records)) => {
                world.met(Class::Import);
                if world.log.fenced {
                    world.met(Class::ImportFenced);
                }
                if self.host.is_bounded() {
                    world.met(Class::ImportLimited);
                }
                world.imported(&records);
            }
            Ok(Done::Restored(records)) => {
                world.met(Class::Restore);
                world.restored(&records);
            }
            Err(what) => return world.violated(what),
        }
        drop(world);
        self.judge();
    }

    /// Takes a backup beside the node and holds it against what is durable.
    fn back_up(&mut self, cut: Cut) {
        let taken = self.vault.take(&self.host, cut);
        let mut world = self.world.borrow_mut();
        match taken {
            Ok(Some(live)) => world.note(format!("  backup, beside a writer: {live}")),
            Ok(None) => world.met(Class::BackupCut),
            Err(_failed) if world.in_trouble => return,
            Err(what) => return world.violated(what),
        }
        let held = self.vault.held().unwrap_or_default();
        let last = held.last().map_or(0, |record| record.sequence);
        if !world.current || last > world.log.through {
            return;
        }
        // An older one may hold what was dropped since.
        match world.log.up_to(last).compare(held) {
            Ok((_, [])) => {}
            Ok(_) => world.violated("a backup holds more than what is durable"),
            Err(what) => world.violated(format!("{what}: in a backup")),
        }
    }

    /// What an offline tool says of the disk must be what is known to be durable, and more only where something was
    /// in flight.
    fn judge(&self) {
        let (audit, records) = match self.host.audit() {
            Ok(found) => found,
            Err(error) => return self.violated(format!("the audit could not be made: {error}")),
        };
        let mut world = self.world.borrow_mut();
        if let Some(problem) = audit.problems.first() {
            return world.violated(format!("a sound disk is called damaged: {problem:?}"));
        }
        if audit.segments.len() > 2 {
            world.met(Class::Rolled);
        }
        if audit.segments.iter().any(|facts| facts.file.contains('-')) {
            world.met(Class::Compacted);
        }
        let behind = match world.log.compare(&records.0) {
            Ok((gone, behind)) => {
                if !gone.is_empty() {
                    world.met(Class::Dropped);
                }
                world.log.drop_records(&gone);
                behind
            }
            Err(differs) => return world.violated(differs),
        };
        for record in behind {
            world.durable(record);
        }
        if let Err(what) = world.log.whole() {
            world.violated(what);
        }
        world.current = true;
        world.settle();
    }

    async fn life(&mut self) -> End {
        self.world.borrow_mut().totals.lives += 1;
        let open = self.running();
        if let Some((after, keep)) = self.start_cut.take() {
            self.host.disk.cut_at(self.host.disk.op_count() + after);
            self.cut = Some(keep);
        }
        let opened = Node::open(&self.host, &self.world, self.setup);
        if self.host.disk.is_off() {
            self.world.borrow_mut().met(Class::CutStart);
            return self.power_lost();
        }
        let (mut node, opened) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.refused_start(&error);
                return End::Killed;
            }
        };
        self.host.disk.cut_at(u64::MAX);
        self.cut = None;
        node.tail();
        if opened.unended > 0 {
            // It serves what there is and waits for room; an operator makes some and starts it anew.
            self.host.disk.set_capacity(None);
            self.world.borrow_mut().met(Class::FullStart);
            return End::Killed;
        }
        {
            let mut world = self.world.borrow_mut();
            world.shown = world.log.executions.keys().copied().collect();
            world.ended = world.shown.clone();
            world.latest = self.host.wall();
        }
        self.interrupted(&opened, &open);
        if !self.is_violated() {
            self.look_over(&node).await;
        }
        while !self.is_violated() {
            let Some(step) = self.plan.steps.get(self.at) else { break };
            self.at += 1;
            if let Some(end) = self.step(&mut node, step).await {
                return end;
            }
        }
        if self.is_violated() {
            return End::Over;
        }
        self.finish(&mut node).await
    }

    /// Executions that have no end.
    fn running(&self) -> Vec<ExecutionId> {
        let world = self.world.borrow();
        let open = world.log.executions.iter().filter(|(_, execution)| execution.ended.is_none());
        open.map(|(id, _)| *id).collect()
    }

    fn power_lost(&mut self) -> End {
        End::PowerLost(self.cut.take().unwrap_or(Choice::Nothing))
    }

    /// A start may be refused for want of space; then an operator makes room. Nothing else may refuse it.
    fn refused_start(&self, error: &OpenError) {
        self.world.borrow_mut().note(format!("  start refused: {error}"));
        let Ok(space) = self.host.disk.space() else { return self.violated("no space could be asked") };
        if space.available > 1 << 30 {
            self.violated(format!("a start on a sound disk was refused: {error}"));
        }
        self.host.disk.set_capacity(None);
    }

    /// JR-12: exactly those that had no end have one now, and it says what is true.
    fn interrupted(&self, opened: &Opened, open: &[ExecutionId]) {
        let mut world = self.world.borrow_mut();
        if opened.recovery.tail.is_some() {
            world.met(Class::TornTail);
        }
        let mut ended: Vec<ExecutionId> = opened.interrupted.iter().map(|one| one.id).collect();
        ended.sort_unstable();
        if ended != open {
            return world.violated("a start ended others than those that were interrupted");
        }
        for one in &opened.interrupted {
            let Some(execution) = world.log.executions.get(&one.id) else { continue };
            let certain = execution.copied.is_none() && !opened.recovery.cut_written_bytes();
            let never = execution.routed.is_empty() && certain;
            let (outcome, sentence) = match never {
                true => (Outcome::NotDispatched, "nothing was sent"),
                false => (Outcome::Unknown, "remote outcome is unknown"),
            };
            let message = format!("Execution was interrupted by a runtime restart; {sentence}");
            let error = ErrorFact::new(PortableCode::InternalError, message, false).with_outcome(outcome);
            let expected = EventBody::Failed { error, cancelled: false };
            let last = execution.events.last().map(|event| &event.body);
            let right = one.outcome == outcome && last == Some(&expected);
            let called = world.was_called(one.id);
            world.met(if never { Class::NotDispatched } else { Class::Interrupted });
            if !right || (never && called) {
                world.violated(format!("{} was interrupted and its end does not say so", one.id));
            }
        }
    }

    /// Reads everything back through the node. Nothing is running.
    async fn look_over(&mut self, node: &Node) {
        let (wall, retention_ms) = (self.host.wall(), self.plan.swarm.limits.retention_ms);
        let visible: Vec<ExecutionId> = match node.store.list(None, usize::MAX).await {
            Ok(list) => list.iter().map(|brief| brief.id).collect(),
            Err(error) => return self.violated(format!("the store cannot be listed: {error}")),
        };
        if !self.world.borrow().log.is_shown(&visible, wall, retention_ms) {
            self.violated(format!("{} executions are listed, and not those that are kept", visible.len()));
        }
        self.look_over_pages(node, &visible).await;
        // A few of many: each is read whole.
        const LOOKS_MAX: u64 = 12;
        let skip = self.looks.below((visible.len() as u64).saturating_sub(LOOKS_MAX) + 1) as usize;
        for id in visible.into_iter().skip(skip).take(LOOKS_MAX as usize) {
            self.look_at(node, id).await;
        }
    }

    /// The pages of a list are the whole of it, the youngest first, and each entry is what its events come to.
    async fn look_over_pages(&mut self, node: &Node, visible: &[ExecutionId]) {
        let limit = self.looks.pick(&[1, 3, 7, 100]);
        let pages = match pages::all(&node.ask, limit, None).await {
            Ok(pages) => pages,
            Err(wrong) => return self.violated(format!("a list behind a start: {wrong}")),
        };
        let world = self.world.borrow();
        let entries: Vec<String> = visible
            .iter()
            .rev()
            .filter_map(|id| world.log.executions.get(id).map(|execution| execution.entry(*id)))
            .collect();
        drop(world);
        if !pages.iter().map(|entry| &entry.text).eq(&entries) {
            self.violated("the pages of a list are not what is kept");
        }
    }

    async fn look_at(&mut self, node: &Node, id: ExecutionId) {
        let Some(execution) = self.world.borrow().log.executions.get(&id).cloned() else { return };
        let cursors = [0, self.looks.below(execution.last_sequence() + 1)];
        for cursor in cursors {
            let response = node.ask.get(&format!("/v1/executions/{id}/events?after={cursor}")).await;
            if self.world.borrow().diverged(id, cursor) {
                if response.status().as_u16() != 400 {
                    self.violated(format!("cursor {cursor} of {id} belongs to another history"));
                }
                continue;
            }
            let mut body = response.into_body();
            let mut frames = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                let frame = frame.into_data().unwrap_or_default();
                if frame == sealog_http::SSE_HEARTBEAT.as_bytes() {
                    return self.violated(format!("STUCK: {id} has no end behind a start"));
                }
                frames.extend_from_slice(&frame);
            }
            if frames != execution.frames[cursor as usize..].concat().into_bytes() {
                self.violated(format!("the events of {id} behind {cursor} are not its durable ones"));
            }
        }
        let snapshot = execution.snapshot(id);
        let shown = text(node.ask.get(&format!("/v1/executions/{id}")).await).await;
        let response = node.ask.get(&format!("/v1/executions/{id}/result")).await;
        let status = response.status().as_u16();
        let result = text(response).await;
        let right = match snapshot.status {
            Status::Succeeded => status == 200 && result == result_json(&snapshot),
            Status::Failed | Status::Cancelled => status == 409,
            Status::Accepted | Status::Routing | Status::Running => false,
        };
        if shown != snapshot_json(&snapshot) || !right {
            self.violated(format!("snapshot or result of {id} are not the fold of its events"));
        }
    }

    async fn step(&mut self, node: &mut Node, step: &Step) -> Option<End> {
        {
            let mut world = self.world.borrow_mut();
            world.note(format!("step {} {:?}", self.at - 1, step.action));
            world.totals.steps += 1;
            if let Some(class) = step.action.class() {
                world.met(class);
            }
        }
        if let Some(end) = self.act(node, &step.action).await {
            return Some(end);
        }
        if node.pump(&self.host, step.pump).await {
            return None;
        }
        self.world.borrow_mut().met(Class::PowerCut);
        Some(self.power_lost())
    }

    async fn act(&mut self, node: &mut Node, action: &Action) -> Option<End> {
        match action {
            Action::Submit { .. }
            | Action::Race { .. }
            | Action::Cancel { .. }
            | Action::Watch { .. }
            | Action::Read { .. }
            | Action::List { .. } => node.send(action),
            Action::Resume => node.resume(),
            Action::Wait { ms } => node.pass(&self.host, *ms).await,
            Action::Jump { ms } => {
                self.host.clock.jump_wall_ms(*ms);
                node.note_time(&self.host);
            }
            Action::Sweep => {
                let store = node.store.clone();
                // What there is no room for stays for the next one.
                node.client(|_| async move {
                    let _ = store.sweep().await;
                });
            }
            Action::Backup { cut } => {
                // A backup waits so long for the head to name what stands there.
                node.pass(&self.host, 300).await;
                node.journal.maintain();
                if self.host.disk.is_off() {
                    return Some(self.power_lost());
                }
                self.back_up(*cut);
            }
            Action::Offline(work) => {
                self.offline = Some(*work);
                return Some(self.restart(node).await);
            }
            Action::Restart => return Some(self.restart(node).await),
            Action::Starve { spare } => {
                self.squeeze(Some(*spare));
                return Some(End::Killed);
            }
            Action::Kill => return Some(End::Killed),
            Action::PowerLoss { keep, start_cut } => {
                self.start_cut = *start_cut;
                return Some(End::PowerLost(*keep));
            }
            Action::PowerCut { after, keep } => {
                self.host.disk.cut_at(self.host.disk.op_count() + after);
                self.cut = Some(*keep);
                self.world.borrow_mut().in_trouble = true;
            }
            Action::Fault(fault) => {
                self.host.disk.inject(fault.clone());
                let mut world = self.world.borrow_mut();
                world.in_trouble = true;
                world.totals.faults += 1;
            }
            Action::Space { spare } => self.squeeze(*spare),
            Action::Nothing => {}
        }
        None
    }

    fn squeeze(&self, spare: Option<u64>) {
        self.host.disk.set_capacity(None);
        let Ok(space) = self.host.disk.space() else { return };
        self.host.disk.set_capacity(spare.map(|spare| space.total - space.available + spare));
        self.world.borrow_mut().in_trouble = true;
    }

    async fn restart(&mut self, node: &mut Node) -> End {
        match node.close(&self.host).await {
            None => self.power_lost(),
            Some(well) => {
                let mut world = self.world.borrow_mut();
                if !well && !world.in_trouble {
                    world.violated("a clean shutdown did not end well");
                }
                End::Closed
            }
        }
    }

    /// The steps are over: the disk is mended, everything comes to its end, and is looked at once more from a new
    /// start.
    async fn finish(&mut self, node: &mut Node) -> End {
        self.host.disk.clear_faults();
        self.host.disk.set_capacity(None);
        self.host.disk.cut_at(u64::MAX);
        if !node.store.available() {
            self.restart(node).await;
            return End::StepsOver;
        }
        node.resume();
        let quiet = self.running().is_empty() && node.idle();
        for round in 0..3_000 {
            let Some(moved) = node.round(&self.host, true).await else { return self.power_lost() };
            if self.is_violated() {
                return End::Over;
            }
            let running = self.running();
            if running.is_empty() && node.idle() {
                break;
            }
            if round % 50 == 0 {
                running.into_iter().for_each(|id| node.client(|asking| asking.cancel(id)));
            }
            if !moved {
                node.pass(&self.host, 100).await;
                node.journal.maintain();
            }
        }
        let running = self.running().len();
        let poisoned = !node.store.available();
        if (running > 0 || !node.idle()) && !poisoned {
            self.violated(format!("STUCK: {running} executions have no end, or a client waits"));
        }
        match self.restart(node).await {
            End::Closed if quiet => End::Over,
            _more => End::StepsOver,
        }
    }
}
