//! How fast the disk under a directory really syncs, measured on a file without a name: nothing is left behind whatever
//! happens, and no journal is touched.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::errno::failed_io;
use super::longest::within;
use crate::{DiskError, Operation};

type Result<T> = std::result::Result<T, DiskError>;

/// What one series of writes, each followed by fdatasync, took.
#[derive(Clone, Debug)]
pub struct SyncTimes {
    /// Ascending; at least one.
    times: Vec<Duration>,
    total: Duration,
}

impl SyncTimes {
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// The time that `percent` of 100 stayed within.
    pub fn percentile(&self, percent: usize) -> Duration {
        let at = (self.times.len() * percent / 100).min(self.times.len() - 1);
        self.times[at]
    }

    pub fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.total.as_secs_f64().max(1e-9)
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// Bytes of one write.
    pub write_bytes: usize,
    /// Writes at most.
    pub writes_max: usize,
    /// No further write is begun after this time.
    pub time_max: Duration,
}

/// Overwrites a zero-filled, synced file in order, as the journal does, one write and one fdatasync at a time.
///
/// # Errors
/// What the system said; a directory that takes no file among it.
pub fn measure_syncs(directory: &Path, series: Series) -> Result<SyncTimes> {
    let fail = |operation| move |error: std::io::Error| failed_io(operation, &error, None);
    let file = tempfile::tempfile_in(directory).map_err(fail(Operation::Create))?;
    let length = series.write_bytes * series.writes_max;
    within(length as u64).map_err(std::io::Error::from).map_err(fail(Operation::Write))?;
    let zeros = vec![0; 256 << 10];
    let mut filled = 0;
    while filled < length {
        let piece = zeros.len().min(length - filled);
        file.write_all_at(&zeros[..piece], filled as u64).map_err(fail(Operation::Write))?;
        filled += piece;
    }
    file.sync_all().map_err(fail(Operation::Sync))?;
    let bytes = vec![0xa5; series.write_bytes];
    let mut times = Vec::with_capacity(series.writes_max);
    let start = Instant::now();
    for at in 0..series.writes_max {
        let before = Instant::now();
        file.write_all_at(&bytes, (at * series.write_bytes) as u64).map_err(fail(Operation::Write))?;
        file.sync_data().map_err(fail(Operation::Sync))?;
        times.push(before.elapsed());
        if start.elapsed() >= series.time_max {
            break;
        }
    }
    let total = start.elapsed();
    times.sort_unstable();
    Ok(SyncTimes { times, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_bounded_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let series = Series { write_bytes: 512, writes_max: 7, time_max: Duration::from_secs(600) };
        let times = measure_syncs(dir.path(), series).unwrap();
        assert_eq!(times.count(), 7);
        assert!(times.percentile(50) <= times.percentile(99) && times.per_second() > 0.0);
        let once = Series { time_max: Duration::ZERO, ..series };
        assert_eq!(measure_syncs(dir.path(), once).unwrap().count(), 1);
        assert!(dir.path().read_dir().unwrap().next().is_none());
        assert!(measure_syncs(&dir.path().join("absent"), series).is_err());
    }

    #[test]
    fn percentiles_are_taken_from_the_sorted_times() {
        let times = (1..=200).map(Duration::from_millis).collect();
        let times = SyncTimes { times, total: Duration::from_secs(4) };
        assert_eq!(times.percentile(50), Duration::from_millis(101));
        assert_eq!(times.percentile(99), Duration::from_millis(199));
        assert_eq!(times.percentile(100), Duration::from_millis(200));
        assert!((times.per_second() - 50.0).abs() < 1e-9);
    }
}
