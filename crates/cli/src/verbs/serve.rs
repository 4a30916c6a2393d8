//! `sealog serve`: a node. Everything that can refuse does so before the port is bound; the first line on standard
//! output says that it is ready.

use std::future::Future;
use std::sync::Arc;

use sealog_http::{BindError, ListenerBroke, Server, ServerOptions, ServerStats, Shutdown, check_listen};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::access::Access;
use crate::args::Serve;
use crate::config::NodeConfig;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::node::Node;
use crate::opening;
use crate::places;
use crate::process;
use crate::render::Render;

/// What is served.
enum Source {
    Writing(opening::Ready),
    /// A stopped journal or a backup, as it is.
    Reading(sealog_journal::Config),
}

pub fn run(args: &Serve, render: Render) -> Result<Exit> {
    process::start_logging(render.json)?;
    process::raise_descriptor_limit();
    let mut config = NodeConfig::read(args.config.as_deref())?;
    let access = Access::read(&args.access, args.listen.ip(), std::mem::take(&mut config.access))?;
    check_listen(args.listen, args.allow_remote).map_err(|refused| {
        Failure::usage("not_loopback", refused.to_string())
            .next("listen on 127.0.0.1 behind a proxy that authenticates, or add --allow-remote")
    })?;
    let dir = match &args.data_dir {
        Some(dir) => dir.clone(),
        None => places::data_dir()?,
    };
    let source = match args.read_only {
        true => Source::Reading(opening::for_reading(&dir, args.place, &args.key, render)?),
        false => Source::Writing(opening::for_writing(&dir, args.place, args.expect, &args.key, render)?),
    };
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let reader_stall_ms = config.store.reader_stall_ms;
        let node = match &source {
            Source::Writing(ready) => Node::open(ready, config, &dir, args.grace_ms, render)?,
            Source::Reading(journal) => Node::open_reading(journal, config, &dir, args.grace_ms, render)?,
        };
        if let Some(budget) = &node.budget {
            render.note(&budget.line());
        }
        serve(args, &node, access, reader_stall_ms, render).await
    });
    // What still blocks a thread now is past its grace.
    runtime.shutdown_background();
    ended
}

/// The runtime of every verb that runs executions.
///
/// # Errors
/// The system gives no threads.
pub fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().thread_name("sealog").build().map_err(|error| {
        Failure::new(Exit::TryAgain, "no_threads", "the system gave no threads")
            .next("run the same command again")
            .because(error)
    })
}

async fn serve(
    args: &Serve,
    node: &Node,
    access: Access,
    reader_stall_ms: u64,
    render: Render,
) -> Result<Exit> {
    let stats = Arc::<ServerStats>::default();
    let options = ServerOptions {
        grace_ms: args.grace_ms,
        reader_stall_ms,
        allow_non_loopback: args.allow_remote,
        guard: access.guard.clone(),
        operation: Some(Arc::new(node.operation(Arc::clone(&stats)))),
        stats,
        ..ServerOptions::default()
    };
    let server = match Server::bind(args.listen, options).await {
        Ok(server) => server,
        Err(error) => {
            node.close().await?;
            return Err(listen_failed(error));
        }
    };
    let stop = match access.follow_hangups(render).and_then(|()| stop_signal()) {
        Ok(stop) => stop,
        Err(failure) => {
            node.close().await?;
            return Err(failure);
        }
    };
    if let Err(failure) = render.data(&format!("sealog listening on http://{}\n", server.local_addr())) {
        node.close().await?;
        return Err(failure);
    }
    let ended = server.run(node.engine.clone(), stop).await;
    let closed = node.close().await;
    match ended {
        Ok(Shutdown::Clean) => closed.map(|()| Exit::Success),
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

fn listen_failed(error: BindError) -> Failure {
    Failure::new(Exit::Failed, "listen_failed", error.to_string())
        .safe("the journal was closed in order")
        .next("stop what uses the address, or pick another one: --listen 127.0.0.1:0")
        .because(error)
}

fn listener_broke(broke: ListenerBroke) -> Failure {
    Failure::new(Exit::Failed, "listener_broke", broke.to_string())
        .safe("everything acknowledged is durable")
        .next("start again")
        .because(broke)
}
