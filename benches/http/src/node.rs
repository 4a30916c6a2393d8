//! The node that is measured: the server, the engine and the mock provider of the product, over the journal on a real
//! disk or over the memory store.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use sealog_disk::real::{OpenOptions, RealClock, RealDisk, RealEntropy};
use sealog_engine::store::EventStore;
use sealog_engine::store::journal::{EngineCodec, JournalStore};
use sealog_engine::store::memory::MemoryStore;
use sealog_engine::store::{StoreLimits, sweep};
use sealog_engine::{Engine, EngineOptions};
use sealog_execution::Registry;
use sealog_http::{Server, ServerOptions, Shutdown};
use sealog_journal::{Config, Create};
use sealog_providers_mock::MockProvider;
use sealog_seal::{Secret, SlotParams, StoreId};
use tokio::io::AsyncReadExt;

/// Executions and attempts at the same time.
const ACTIVE_MAX: usize = 512;
/// One connection a subscriber.
const CONNECTIONS_MAX: usize = 20_000;

/// Serves until standard input ends; the first line of output is the address.
pub fn run(store: &str, folder: &Path) -> Result<()> {
    // As `sealog serve` has it.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let store = open(store, folder)?;
        tokio::spawn(sweep::sweep(Arc::downgrade(&store)));
        let mut registry = Registry::default();
        registry.register(Arc::new(MockProvider::default())).context("the provider was refused")?;
        let options = EngineOptions {
            max_active_executions: ACTIVE_MAX,
            provider_concurrency: ACTIVE_MAX,
            ..EngineOptions::default()
        };
        let (clock, entropy) = (Arc::new(RealClock::new()), Arc::new(RealEntropy));
        let engine = Engine::start(options, registry, Arc::clone(&store), clock, entropy);
        let options = ServerOptions { max_connections: CONNECTIONS_MAX, ..ServerOptions::default() };
        let server = Server::bind("127.0.0.1:0".parse()?, options).await?;
        println!("{}", server.local_addr().context("a TCP socket has an address")?);
        let ended = server.run(engine, input_ended()).await?;
        store.close().await?;
        anyhow::Ok(ended)
    })?;
    match ended {
        Shutdown::Clean => Ok(()),
        // What still streams is dropped: nobody reads it any more.
        Shutdown::GraceExpired => Ok(()),
    }
}

fn open(store: &str, folder: &Path) -> Result<Arc<dyn EventStore>> {
    // More than any run makes: refusals for want of room are not what is measured.
    let limits = StoreLimits { max_executions: 20_000_000, max_bytes: 1 << 40, ..StoreLimits::NODE };
    match store {
        "memory" => Ok(Arc::new(MemoryStore::new(limits, Arc::new(RealClock::new())))),
        "journal" => {
            let config = journal_config(&folder.join("journal"))?;
            let (store, _) = JournalStore::open(&config, limits)?;
            Ok(Arc::new(store))
        }
        _ => bail!("there is no store `{store}`"),
    }
}

fn journal_config(folder: &Path) -> Result<Config> {
    let options = OpenOptions { create: true, allow_network_fs: false };
    let disk = RealDisk::open(folder, options).context("the folder cannot be used")?;
    let secret = Secret::raw([1; 32]);
    let config = Config::new(
        Arc::new(disk),
        Arc::new(RealClock::new()),
        Arc::new(RealEntropy),
        vec![Secret::raw([1; 32])],
    );
    let config = Config { codec: Arc::new(EngineCodec), ..config };
    let create = Create {
        disk: Arc::clone(&config.disk),
        clock: Arc::clone(&config.clock),
        entropy: Arc::clone(&config.entropy),
        store_id: StoreId([7; 16]),
        slot_name: "bench",
        secret: &secret,
        params: SlotParams::DEFAULT,
    };
    create.run(&mut || Ok(()))?;
    Ok(config)
}

async fn input_ended() {
    let mut input = tokio::io::stdin();
    let mut byte = [0];
    while input.read(&mut byte).await.is_ok_and(|count| count > 0) {}
}
