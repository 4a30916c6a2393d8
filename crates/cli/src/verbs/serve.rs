//! `sealog serve`: a node. Everything that can refuse does so before the port is bound; the first line on standard
//! output says that it is ready.

use std::future::Future;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use sealog_disk::real::{RealEntropy, SocketFile};
use sealog_disk::{DiskError, Entropy, ErrorKind};
use sealog_engine::Observer;
use sealog_http::{BindError, ListenerBroke, RequestIds, Server, ServerOptions, ServerStats, Shutdown};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::access::Access;
use crate::args::{Listen, LogFormat, Serve};
use crate::config::NodeConfig;
use crate::exit::Exit;
use crate::failure::{Failure, NOTHING_CHANGED, Result, shown};
use crate::node::Node;
use crate::opening;
use crate::places;
use crate::process;
use crate::render::Render;
use crate::report::hex;
use crate::runtime::runtime;
use crate::service::{self, Starting};

/// What is served.
enum Source {
    Writing(opening::Ready),
    /// A stopped journal or a backup, as it is.
    Reading(sealog_journal::Config),
}

pub fn run(args: &Serve, render: Render) -> Result<Exit> {
    process::start_logging(args.log_format.unwrap_or(LogFormat::beside(render.json)))?;
    process::raise_descriptor_limit();
    let mut config = NodeConfig::read(args.config.as_deref())?;
    let access = Access::read(args, std::mem::take(&mut config.access))?;
    let dir = match &args.data_dir {
        Some(dir) => dir.clone(),
        None => places::data_dir()?,
    };
    if !args.read_only && !places::holds_store(&dir) {
        can_listen(&args.listen)?;
    }
    let source = match args.read_only {
        true => Source::Reading(opening::for_reading(&dir, args.place, &args.key, render)?),
        false => Source::Writing(opening::for_writing(&dir, args.place, args.expect, &args.key, render)?),
    };
    let request_ids = Arc::new(request_ids(&RealEntropy)?);
    // Before the runtime, and ended behind it: its client blocks.
    let export = Traces::start()?;
    let runtime = runtime()?;
    let starting = Starting::begin();
    let ended = runtime.block_on(async {
        // A hangup during a long start must not end it: it is answered once the node serves.
        let hangups = access.hangups()?;
        let options = ServerOptions {
            grace_ms: args.grace_ms,
            reader_stall_ms: config.store.reader_stall_ms,
            max_connections: process::connections_max(),
            allow_non_loopback: access.allows_remote(args),
            tls: access.tls.clone(),
            guard: access.guard.clone(),
            request_ids,
            ..ServerOptions::default()
        };
        let node = match &source {
            Source::Writing(ready) => {
                Node::open(ready, config, &dir, args.grace_ms, export.observers(), render)?
            }
            Source::Reading(journal) => Node::open_reading(journal, config, &dir, args.grace_ms, render)?,
        };
        if let Some(budget) = &node.budget {
            render.note(&budget.line());
        }
        // The journal is open: whatever comes of the rest, it is closed.
        node.closing(serve(args, &node, &access, hangups, options, starting, render), render).await
    });
    // What still blocks a thread now is past its grace.
    runtime.shutdown_background();
    export.end();
    ended
}

/// The export of traces, if this build has one.
struct Traces {
    #[cfg(feature = "otel")]
    export: Option<crate::otel::Export>,
}

#[cfg(feature = "otel")]
impl Traces {
    fn start() -> Result<Traces> {
        Ok(Traces { export: crate::otel::Export::start()? })
    }

    fn observers(&self) -> Vec<Arc<dyn Observer>> {
        self.export.iter().map(|export| Arc::new(export.observer()) as Arc<dyn Observer>).collect()
    }

    fn end(self) {
        if let Some(export) = self.export {
            export.end();
        }
    }
}

#[cfg(not(feature = "otel"))]
impl Traces {
    fn start() -> Result<Traces> {
        Ok(Traces {})
    }

    fn observers(&self) -> Vec<Arc<dyn Observer>> {
        Vec::new()
    }

    fn end(self) {}
}

/// Serves an open node until it is to stop.
async fn serve(
    args: &Serve,
    node: &Node,
    access: &Access,
    hangups: Option<Signal>,
    options: ServerOptions,
    starting: Starting,
    render: Render,
) -> Result<Exit> {
    let stats = Arc::<ServerStats>::default();
    let operation = Arc::new(node.operation(Arc::clone(&stats)));
    let options = ServerOptions { operation: Some(operation), stats, ..options };
    let (server, _name, place) = listen(&args.listen, options).await?;
    access.follow_hangups(hangups, render);
    let stop = stop_signal()?;
    render.data(&format!("sealog listening on {place}\n"))?;
    drop(starting);
    service::ready(&place);
    node.watch();
    let stop = async {
        stop.await;
        service::stopping();
    };
    match server.run(node.engine.clone(), stop).await {
        Ok(Shutdown::Clean) => Ok(Exit::Success),
        Ok(Shutdown::GraceExpired) => {
            Err(Failure::new(Exit::Failed, "grace_expired", "grace period expired")
                .safe("everything acknowledged is durable; what was still open was dropped")
                .next("start again; a longer grace is --grace-ms"))
        }
        Err(broke) => Err(listener_broke(broke)),
    }
}

/// Resolves at the first SIGINT or SIGTERM; later ones are ignored.
///
/// # Errors
/// The handlers cannot be installed.
pub fn stop_signal() -> Result<impl Future<Output = ()>> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Failed, "internal", "signals cannot be caught").because(error)
    };
    let mut interrupt: Signal = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate: Signal = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Ids that no other start of a node gives.
fn request_ids(entropy: &dyn Entropy) -> Result<RequestIds> {
    let mut random = [0; 6];
    entropy.fill(&mut random).map_err(|_| opening::no_randomness())?;
    Ok(RequestIds::new(&hex(&random)))
}

/// Binds, and says where in the form of the first line. The socket's name goes with the second part.
async fn listen(at: &Listen, options: ServerOptions) -> Result<(Server, Option<SocketFile>, String)> {
    match at {
        Listen::Tcp(address) => {
            let scheme = if options.tls.is_some() { "https" } else { "http" };
            let server = Server::bind(*address, options).await.map_err(listen_failed)?;
            let place = format!("{scheme}://{}", server.local_addr().unwrap_or(*address));
            Ok((server, None, place))
        }
        Listen::Unix(path) => {
            let (name, listener) = SocketFile::listen(path).map_err(|error| socket_failed(path, &error))?;
            let server = Server::on_unix(listener, options).map_err(|error| {
                Failure::new(Exit::Failed, "listen_failed", "the socket cannot be waited on").because(error)
            })?;
            Ok((server, Some(name), format!("unix:{}", path.display())))
        }
    }
}

fn socket_failed(path: &Path, error: &DiskError) -> Failure {
    let failed = |why| {
        Failure::new(Exit::Failed, "listen_failed", format!("{}: {why}", shown(path)))
            .safe("the journal was closed in order")
            .next("stop what uses the path, or pick another one: --listen unix:PATH")
    };
    match error.kind {
        ErrorKind::AlreadyExists => failed("there is something that is no socket"),
        ErrorKind::Contended => failed("another process serves it"),
        _ => failed("the socket cannot be made").because(error.clone()),
    }
}

/// A new journal and its key are not made for a node that cannot serve. What is there already is judged first, and only
/// then bound to (the listener is let go at once: nobody must be able to connect before).
fn can_listen(at: &Listen) -> Result<()> {
    match at {
        Listen::Tcp(address) => TcpListener::bind(address).map(drop).map_err(|error| {
            let what = format!("{address} cannot be listened on");
            not_listening(&error, what).because(error)
        }),
        Listen::Unix(path) => SocketFile::listen(path)
            .map(drop)
            .map_err(|error| socket_failed(path, &error).safe(NOTHING_CHANGED)),
    }
}

fn listen_failed(error: BindError) -> Failure {
    let failure = match &error {
        BindError::Listen { source, .. } => not_listening(source, error.to_string()),
        BindError::NonLoopback(_) => {
            Failure::new(Exit::Failed, "listen_failed", error.to_string()).next(PICK_ADDRESS)
        }
    };
    failure.safe("the journal was closed in order").because(error)
}

const PICK_ADDRESS: &str = "stop what uses the address, or pick another one: --listen 127.0.0.1:0";

/// Another address is no help where the process may open no more.
fn not_listening(error: &std::io::Error, what: String) -> Failure {
    match rustix::io::Errno::from_io_error(error) {
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
            Failure::new(Exit::TryAgain, "too_many_files", what)
                .next("let this process open more files (ulimit -n), then run the same command again")
        }
        _ => Failure::new(Exit::Failed, "listen_failed", what).next(PICK_ADDRESS),
    }
}

fn listener_broke(broke: ListenerBroke) -> Failure {
    Failure::new(Exit::Failed, "listener_broke", broke.to_string())
        .safe("everything acknowledged is durable")
        .next("start again")
        .because(broke)
}

#[cfg(test)]
mod tests {
    use sealog_disk::EntropyError;

    use super::*;

    #[derive(Debug)]
    struct Dry;

    impl Entropy for Dry {
        fn fill(&self, _: &mut [u8]) -> std::result::Result<(), EntropyError> {
            Err(EntropyError)
        }
    }

    #[test]
    fn ids_of_requests_want_randomness_and_say_so() {
        let failure = request_ids(&Dry).unwrap_err();
        assert_eq!((failure.exit, failure.code), (Exit::TryAgain, "no_randomness"));
        assert!(request_ids(&RealEntropy).is_ok());
    }
}
