//! From slices to rows: medians, percentiles, and ratios taken round by round.

use serde_json::json;

use crate::slice::Slice;

/// All slices of one system with one number of producers, in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Series {
    pub system: &'static str,
    pub producers: u64,
    pub slices: Vec<Slice>,
}

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub system: &'static str,
    pub producers: u64,
    pub events_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub mean_group: f64,
    /// Mean time of a group in the calls that write and sync.
    pub disk_us: f64,
    pub bytes_per_event: f64,
    pub cpu_us_per_event: f64,
    /// Of which on the thread of the producers.
    pub producers_cpu_us_per_event: f64,
    /// Context switches of the process, for each group.
    pub switches_per_group: f64,
    pub ratio_floor: Option<f64>,
    pub ratio_bare: Option<f64>,
}

/// A row for each series. Ratios are the median over rounds of the ratio within the round: the machine drifts by
/// more in a second than most systems differ.
pub fn rows(all: &[Series]) -> Vec<Row> {
    let find = |system: &str, producers: u64| {
        all.iter().find(|series| series.system == system && series.producers == producers)
    };
    all.iter()
        .map(|series| {
            let floor = find("floor", 1).and_then(|floor| ratio(series, floor));
            let bare = find("bare", series.producers).and_then(|bare| ratio(series, bare));
            row(series, floor, bare)
        })
        .collect()
}

fn ratio(series: &Series, other: &Series) -> Option<f64> {
    let rounds = series.slices.iter().zip(&other.slices);
    median(rounds.map(|(ours, theirs)| ours.events_per_s() / theirs.events_per_s()).collect())
}

fn row(series: &Series, ratio_floor: Option<f64>, ratio_bare: Option<f64>) -> Row {
    let sum = |of: fn(&Slice) -> f64| series.slices.iter().map(of).sum::<f64>();
    let events = sum(|slice| slice.events as f64);
    let mut latencies: Vec<f32> = series.slices.iter().flat_map(|slice| slice.latencies_us.clone()).collect();
    latencies.sort_by(f32::total_cmp);
    Row {
        system: series.system,
        producers: series.producers,
        events_per_s: median(series.slices.iter().map(Slice::events_per_s).collect()).unwrap_or(0.0),
        p50_us: percentile(&latencies, 0.50),
        p99_us: percentile(&latencies, 0.99),
        mean_group: events / sum(|slice| slice.groups as f64),
        disk_us: sum(|slice| slice.disk_seconds) * 1e6 / sum(|slice| slice.groups as f64),
        bytes_per_event: sum(|slice| slice.bytes as f64) / events,
        cpu_us_per_event: sum(|slice| slice.cpu_seconds) * 1e6 / events,
        producers_cpu_us_per_event: sum(|slice| slice.producers_cpu_seconds) * 1e6 / events,
        switches_per_group: sum(|slice| slice.switches as f64) / sum(|slice| slice.groups as f64),
        ratio_floor,
        ratio_bare,
    }
}

fn percentile(sorted: &[f32], part: f64) -> f64 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(0.0, |value| f64::from(*value))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The table for people.
pub fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<16} {:>5} {:>10} {:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7}\n",
        "system",
        "prod",
        "events/s",
        "p50 us",
        "p99 us",
        "group",
        "disk us",
        "B/event",
        "CPU us",
        "own us",
        "switch",
        "/floor",
        "/bare"
    );
    for row in rows {
        let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        out.push_str(&format!(
            "{:<16} {:>5} {:>10.0} {:>8.0} {:>8.0} {:>7.1} {:>8.0} {:>8.1} {:>8.2} {:>8.2} {:>7.1} {:>7} {:>7}\n",
            row.system,
            row.producers,
            row.events_per_s,
            row.p50_us,
            row.p99_us,
            row.mean_group,
            row.disk_us,
            row.bytes_per_event,
            row.cpu_us_per_event,
            row.producers_cpu_us_per_event,
            row.switches_per_group,
            ratio(row.ratio_floor),
            ratio(row.ratio_bare)
        ));
    }
    out
}

/// One JSON text a row.
pub fn json_line(row: &Row) -> String {
    json!({
        "system": row.system,
        "producers": row.producers,
        "events_per_s": row.events_per_s,
        "p50_us": row.p50_us,
        "p99_us": row.p99_us,
        "mean_group": row.mean_group,
        "disk_us": row.disk_us,
        "cpu_us_per_event": row.cpu_us_per_event,
        "producers_cpu_us_per_event": row.producers_cpu_us_per_event,
        "switches_per_group": row.switches_per_group,
        "disk_bytes_per_event": row.bytes_per_event,
        "ratio_floor": row.ratio_floor,
        "ratio_bare": row.ratio_bare,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(system: &'static str, producers: u64, rates: &[u64]) -> Series {
        let slice = |events: &u64| Slice {
            events: *events,
            seconds: 1.0,
            groups: 10,
            latencies_us: vec![1.0; 3],
            ..Slice::default()
        };
        Series { system, producers, slices: rates.iter().map(slice).collect() }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine halves its speed in the second round; the ratio does not move.
        let all = [series("bare", 8, &[100, 50, 100]), series("sealog", 8, &[120, 60, 120])];
        let rows = rows(&all);
        assert_eq!(rows[1].ratio_bare, Some(1.2));
        assert_eq!((rows[1].ratio_floor, rows[1].events_per_s), (None, 120.0));
        assert_eq!(rows[1].mean_group, 10.0);
    }

    #[test]
    fn every_row_is_a_line_of_json() {
        let all = [series("floor", 1, &[10]), series("sealog", 1, &[9])];
        for row in rows(&all) {
            let value: serde_json::Value = serde_json::from_str(&json_line(&row)).unwrap();
            assert_eq!(value["producers"], 1);
        }
        assert_eq!(table(&rows(&all)).lines().count(), 3);
    }
}
