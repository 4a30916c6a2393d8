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
    /// CPU time of the thread that all producers run on, in seconds.
    pub producers_cpu_seconds: f64,
    /// How often a thread of the process went to sleep or was made to make room for another.
    pub switches: u64,
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

/// Measures wall time, CPU time and context switches around a slice. Started and stopped on the producers' thread.
#[derive(Debug)]
pub struct Watch {
    start: Instant,
    cpu: Duration,
    own_cpu: Duration,
    switches: u64,
    length: Duration,
}

impl Watch {
    pub fn start(length: Duration) -> Watch {
        Watch {
            start: Instant::now(),
            cpu: cpu(ClockId::ProcessCPUTime),
            own_cpu: cpu(ClockId::ThreadCPUTime),
            switches: switches(),
            length,
        }
    }

    /// Whether the slice's time is over.
    pub fn is_over(&self) -> bool {
        self.start.elapsed() >= self.length
    }

    /// Notes in `slice` what went by since the start.
    pub fn stop(&self, slice: &mut Slice) {
        let seconds = |clock, before| cpu(clock).saturating_sub(before).as_secs_f64();
        slice.seconds = self.start.elapsed().as_secs_f64();
        slice.cpu_seconds = seconds(ClockId::ProcessCPUTime, self.cpu);
        slice.producers_cpu_seconds = seconds(ClockId::ThreadCPUTime, self.own_cpu);
        slice.switches = switches().saturating_sub(self.switches);
    }
}

/// CPU time of the whole process.
pub fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Context switches of all threads so far; 0 where the kernel does not tell.
fn switches() -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let texts = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let count = |text: &str| {
        let lines = text.lines().filter_map(|line| line.split_once("ctxt_switches:"));
        lines.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum::<u64>()
    };
    texts.map(|text| count(&text)).sum()
}

/// Microseconds since `start`.
pub fn us_since(start: Instant) -> f32 {
    start.elapsed().as_secs_f32() * 1e6
}
