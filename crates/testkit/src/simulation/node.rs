//! One life of a node: store, engine and router over the host's disk, its clients, and what the scheduler does to it.
//!
//! Everything runs on one thread in one order: clients are polled by number, tasks by the runtime in the order of
//! their wakes, and the journal only when the scheduler turns it. Time stands still unless a step moves it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sealog_engine::store::journal::{JournalStore, OpenError, Opened};
use sealog_engine::{Engine, EngineOptions, EventStore};
use sealog_events::ExecutionId;
use sealog_http::{ServerOptions, router};
use sealog_journal::{Journal, Turn};

use super::class::Class;
use super::client::{Ask, Asking, Client};
use super::host::Host;
use super::plan::{Action, Pump};
use super::script::{lock, providers};
use super::world::World;

pub(super) struct Node {
    pub(super) store: JournalStore,
    pub(super) journal: Journal,
    pub(super) engine: Engine,
    pub(super) ask: Ask,
    pub(super) world: Rc<RefCell<World>>,
    clients: Vec<Client>,
    client_next: u64,
    /// The writer was seen to have stopped.
    stopped: Cell<bool>,
}

/// What a start needs beside the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) options: EngineOptions,
    pub(super) large: bool,
}

impl Node {
    pub(super) fn open(
        host: &Host,
        world: &Rc<RefCell<World>>,
        setup: Setup,
    ) -> Result<(Node, Opened), OpenError> {
        let (seed, limits, calls) = {
            let world = world.borrow();
            (world.seed, world.limits, Arc::clone(&world.calls))
        };
        let (store, journal, opened) = JournalStore::open_turned(&host.config(&host.disk), limits)?;
        lock(&calls).journal = Some(journal.clone());
        let registry = providers(seed, setup.large, &calls);
        let shared: Arc<dyn EventStore> = Arc::new(store.clone());
        let clock = Arc::new(host.clock.clone());
        let engine = Engine::start(setup.options, registry, shared, clock, host.entropy(2));
        let router = router(engine.clone(), Arc::new(ServerOptions::default()));
        let ask = Ask { world: Rc::clone(world), router };
        let node = Node {
            store,
            journal,
            engine,
            ask,
            world: Rc::clone(world),
            clients: Vec::new(),
            client_next: 0,
            stopped: Cell::new(false),
        };
        Ok((node, opened))
    }

    pub(super) fn client<F: Future<Output = ()> + 'static>(&mut self, make: impl FnOnce(Asking) -> F) {
        self.client_next += 1;
        self.clients.push(Client::new(self.client_next, make, self.ask.clone()));
    }

    pub(super) fn idle(&self) -> bool {
        self.clients.is_empty()
    }

    pub(super) fn resume(&self) {
        self.clients.iter().for_each(Client::resume);
    }

    /// One execution of those that are known, or none yet.
    pub(super) fn pick(&self, pick: u64) -> Option<ExecutionId> {
        let world = self.world.borrow();
        let ids = &world.log.ids;
        // The younger half more often: old ones are mostly forgotten.
        let count = ids.len() as u64;
        let from = if pick & 1 == 0 { count / 2 } else { 0 };
        (count > 0).then(|| ids[(from + (pick >> 1) % (count - from)) as usize])
    }

    /// Sends clients on their way.
    pub(super) fn send(&mut self, action: &Action) {
        match action {
            Action::Submit { request, key, stream } => {
                let (request, key, stream) = (*request, *key, *stream);
                self.client(|asking| asking.submit(key, request, stream));
            }
            Action::Race { request, other, key, clients } => {
                for number in 0..*clients {
                    let request = other.filter(|_| number % 2 == 1).unwrap_or(*request);
                    let key = Some(*key);
                    self.client(|asking| asking.submit(key, request, None));
                }
            }
            Action::Cancel { pick } => {
                if let Some(id) = self.pick(*pick) {
                    self.client(|asking| asking.cancel(id));
                }
            }
            Action::Watch { pick, cursor, manner } => {
                let (cursor, manner) = (*cursor, *manner);
                if let Some(id) = self.pick(*pick) {
                    self.client(|asking| asking.watch(id, cursor, manner));
                }
            }
            Action::List { limit, status } => {
                let (limit, status) = (*limit, *status);
                self.client(|asking| asking.list(limit, status));
            }
            Action::Read { pick, result } => {
                let result = *result;
                if let Some(id) = self.pick(*pick) {
                    self.client(|asking| asking.read(id, result));
                }
            }
            _of_the_machine => {}
        }
    }

    /// Polls the clients that asked for it. Returns whether any did.
    fn poll_clients(&mut self) -> bool {
        let any = self.clients.iter().any(Client::is_woken);
        let mut index = 0;
        while index < self.clients.len() {
            match self.clients[index].poll() {
                true => drop(self.clients.remove(index)),
                false => index += 1,
            }
        }
        any
    }

    /// Turns the writer and reads what became durable. `false`: the power went.
    fn turn(&self, host: &Host) -> (bool, bool) {
        let turned = self.journal.turn();
        if host.disk.is_off() {
            return (false, true);
        }
        if turned == Turn::Ended && !self.stopped.replace(true) {
            let mut world = self.world.borrow_mut();
            world.met(Class::Poisoned);
            world.note("  the writer has stopped".to_owned());
            if !world.in_trouble {
                world.violated("the writer stopped although nothing was done to the disk");
            }
        }
        if let Turn::Decided(units) = turned {
            self.world.borrow_mut().note(format!("  turn {units}"));
            self.tail();
        }
        (true, turned == Turn::Idle)
    }

    /// Reads what became durable into the log.
    pub(super) fn tail(&self) {
        let mut world = self.world.borrow_mut();
        let durable = self.journal.durable_sequence();
        if world.log.through < durable {
            for record in self.journal.read_from(world.log.through + 1) {
                match record {
                    Ok(record) if record.sequence <= durable => world.durable(&record),
                    Ok(_) => break,
                    Err(error) => {
                        if !world.in_trouble {
                            world.violated(format!("a durable record does not read back: {error}"));
                        }
                        break;
                    }
                }
            }
        }
        world.current = world.log.through == durable;
        if world.current {
            world.settle();
        }
    }

    /// One round: clients, tasks, and the writer if it is its turn. `None`: the power went. Else whether anything
    /// moved.
    pub(super) async fn round(&mut self, host: &Host, turn: bool) -> Option<bool> {
        let polled = self.poll_clients();
        tokio::task::yield_now().await;
        if host.disk.is_off() {
            return None;
        }
        if !turn {
            return Some(polled);
        }
        match self.turn(host) {
            (false, _) => None,
            (true, idle) => Some(polled || !idle),
        }
    }

    /// What a step leaves for the machine to do. `false`: the power went.
    pub(super) async fn pump(&mut self, host: &Host, pump: Pump) -> bool {
        for round in 0..pump.rounds {
            if self.round(host, pump.turns >> (round % 8) & 1 == 1).await.is_none() {
                return false;
            }
        }
        if pump.maintain {
            self.journal.maintain();
        }
        if pump.tend && !host.disk.is_off() {
            self.journal.tend();
        }
        !host.disk.is_off()
    }

    pub(super) fn note_time(&self, host: &Host) {
        let mut world = self.world.borrow_mut();
        world.latest = world.latest.max(host.wall());
    }

    pub(super) async fn pass(&self, host: &Host, ms: u64) {
        host.clock.advance(Duration::from_millis(ms));
        self.note_time(host);
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    /// Shuts down in order: executions are cancelled, then the journal closes. `None`: the power went. Else whether
    /// everything ended well.
    pub(super) async fn close(&mut self, host: &Host) -> Option<bool> {
        self.world.borrow_mut().stopping = true;
        let engine = self.engine.clone();
        let drained = Rc::new(RefCell::new(None));
        let told = Rc::clone(&drained);
        self.client(|_| async move {
            let all = engine.shutdown().await;
            *told.borrow_mut() = Some(all);
        });
        let mut all = false;
        for _ in 0..2_000 {
            let moved = self.round(host, true).await?;
            if let Some(drained) = *drained.borrow() {
                all = drained;
                break;
            }
            if !moved {
                self.pass(host, 50).await;
                self.journal.maintain();
            }
        }
        // The last events reach their readers.
        for _ in 0..4 {
            self.round(host, true).await?;
        }
        let closed = self.store.close().await;
        if host.disk.is_off() {
            return None;
        }
        self.tail();
        self.world.borrow_mut().note(format!("  closed {all} {closed:?}"));
        Some(all && closed.is_ok())
    }
}
