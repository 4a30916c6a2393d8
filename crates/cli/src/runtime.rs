//! The runtime of the verbs that run executions or ask a node, and what must be left for it.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// How long a thread for calls that block is kept without one.
const KEPT: Duration = Duration::from_secs(10);
/// A thread that has begun has run by then, however much runs beside it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The runtime of every verb that runs executions.
///
/// # Errors
/// The system gives no threads or descriptors.
pub fn runtime() -> Result<Runtime> {
    descriptors_left().map_err(|error| {
        Failure::new(Exit::TryAgain, "too_many_files", "the system gives no more descriptors")
            .next("let this process open more files (ulimit -n), then run the same command again")
            .because(error)
    })?;
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Beside those that run futures, one for calls that block.
    threads_left(threads + 1).and_then(|()| build("sealog", KEPT)).map_err(|error| {
        Failure::new(Exit::TryAgain, "no_threads", "the system gave no threads")
            .next("let this process have more threads (ulimit -u), then run the same command again")
            .because(error)
    })
}

/// A runtime that has a thread for calls that block, now and for as long as it is there: a system that gives no more makes
/// them slow. Without any, tokio lets a call wait for a thread that never comes.
fn build(name: &str, kept: Duration) -> io::Result<Runtime> {
    let runtime =
        Builder::new_multi_thread().enable_all().thread_name(name).thread_keep_alive(kept).build()?;
    let first = runtime.block_on(async { timeout(PATIENCE, spawn_blocking(|| ())).await });
    if !matches!(first, Ok(Ok(()))) {
        // Its threads may wait for others that were never there.
        runtime.shutdown_background();
        return Err(io::Error::from(io::ErrorKind::WouldBlock));
    }
    runtime.spawn(async move {
        // Whichever thread has a call now is there for longer than until the next one.
        while spawn_blocking(|| ()).await.is_ok() {
            sleep(kept / 2).await;
        }
    });
    Ok(runtime)
}

/// Whether there are as many as a runtime takes at its start: its poller twice, what wakes it, and the pair through which
/// signals come with one more end of it. Without the pair tokio panics.
fn descriptors_left() -> io::Result<()> {
    let _held = [UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?];
    Ok(())
}

/// Whether the system gives so many at once. Without the first tokio panics, and goes on without the others.
fn threads_left(threads: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let _closed = gate.lock();
        (0..threads)
            .try_for_each(|_| thread::Builder::new().spawn_scoped(scope, || drop(gate.lock())).map(drop))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::time::Instant;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "what the kernel says of this process is in no journal")]
    fn threads_named(name: &str) -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let name_of = |task: io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        tasks.filter_map(name_of).filter(|of| of.trim_end() == name).count()
    }

    /// Whether one thread, and in the end no more, was there whenever it was looked for.
    fn one_stays(name: &str) -> bool {
        let kept = Duration::from_millis(200);
        let runtime = build(name, kept).unwrap();
        let workers = runtime.metrics().num_workers();
        let calls = Arc::new(Barrier::new(9));
        for _ in 0..8 {
            let calls = Arc::clone(&calls);
            runtime.spawn_blocking(move || {
                calls.wait();
                calls.wait();
            });
        }
        calls.wait();
        assert!(threads_named(name) >= workers + 8, "as many as there are calls");
        calls.wait();
        let stays = (0..8).all(|_| {
            thread::sleep(kept);
            threads_named(name) > workers
        });
        let alone = threads_named(name) == workers + 1;
        drop(runtime);
        // The system shows a thread for a moment after it was waited for.
        let end = Instant::now() + Duration::from_secs(60);
        while threads_named(name) != 0 {
            assert!(Instant::now() < end, "they are gone with it");
        }
        stays && alone
    }

    #[test]
    fn one_thread_for_calls_that_block_is_there_however_long_none_comes() {
        // A machine that stands still for as long as a thread is kept lets it go all the same, and the next call gets
        // another.
        assert!((0..20).any(|_| one_stays("one-kept")));
    }

    #[test]
    fn so_many_threads_are_there_at_once_and_gone_behind() {
        threads_left(17).unwrap();
    }
}
