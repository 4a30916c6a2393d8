//! One slice: a system, some producers, a fraction of a second.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What one slice measured.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub events: u64,
    pub seconds: f64,
    /// CPU time of the whole process, in seconds.
    pub cpu_seconds: f64,
    pub groups: u64,
    /// In the calls that write and sync, in seconds.
    pub disk_seconds: f64,
    /// Bytes that were written to hold the events.
    pub bytes: u64,
    /// From hand-over to acknowledgement, in microseconds.
    pub latencies_us: Vec<f32>,
}

impl Slice {
    pub fn events_per_s(&self) -> f64 {
        self.events as f64 / self.seconds
    }
}

/// Measures wall and CPU time around a slice.
#[derive(Debug)]
pub struct Watch {
    start: Instant,
    cpu: Duration,
    length: Duration,
}

impl Watch {
    pub fn start(length: Duration) -> Watch {
        Watch { start: Instant::now(), cpu: cpu(), length }
    }

    /// Whether the slice's time is over.
    pub fn is_over(&self) -> bool {
        self.start.elapsed() >= self.length
    }

    /// Wall and CPU seconds since the start.
    pub fn stop(&self) -> (f64, f64) {
        let cpu = cpu().saturating_sub(self.cpu);
        (self.start.elapsed().as_secs_f64(), cpu.as_secs_f64())
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Microseconds since `start`.
pub fn us_since(start: Instant) -> f32 {
    start.elapsed().as_secs_f32() * 1e6
}
