//! From slices to rows. Ratios are the median over rounds of the ratio within a round: a machine drifts by more in a
//! second than most systems differ.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;

use super::worker::Slice;

const FLOOR: &str = "floor-overwrite";
const BARE: &str = "bare";

/// All slices of one system with one number of producers, in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Series {
    pub system: &'static str,
    pub producers: u64,
    pub slices: Vec<Slice>,
}

impl Series {
    pub fn new(system: &'static str, producers: u64) -> Series {
        Series { system, producers, slices: Vec::new() }
    }
}

#[derive(Clone, Debug)]
pub struct Row {
    system: &'static str,
    producers: u64,
    events_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
    mean_group: f64,
    bytes: Option<f64>,
    ratio_floor: Option<f64>,
    ratio_bare: Option<f64>,
}

pub fn rows(all: &[Series], sizes: &BTreeMap<String, f64>) -> Vec<Row> {
    let find = |system: &str, producers: u64| {
        all.iter().find(|series| series.system == system && series.producers == producers)
    };
    all.iter()
        .map(|series| {
            let sum = |of: fn(&Slice) -> f64| series.slices.iter().map(of).sum::<f64>();
            let middle =
                |of: fn(&Slice) -> f64| median(series.slices.iter().map(of).collect()).unwrap_or(0.0);
            Row {
                system: series.system,
                producers: series.producers,
                events_per_s: middle(Slice::events_per_s),
                p50_us: middle(|slice| slice.p50_us),
                p99_us: middle(|slice| slice.p99_us),
                cpu_us: middle(|slice| slice.cpu_seconds * 1e6 / slice.events),
                mean_group: sum(|slice| slice.events) / sum(|slice| slice.groups),
                bytes: sizes.get(&format!("{} {}", series.system, series.producers)).copied(),
                ratio_floor: find(FLOOR, 1).and_then(|floor| ratio(series, floor)),
                ratio_bare: find(BARE, series.producers).and_then(|bare| ratio(series, bare)),
            }
        })
        .collect()
}

fn ratio(series: &Series, other: &Series) -> Option<f64> {
    let rounds = series.slices.iter().zip(&other.slices);
    median(rounds.map(|(ours, theirs)| ours.events_per_s() / theirs.events_per_s()).collect())
}

pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Row {
    pub fn json(&self) -> String {
        json!({
            "system": self.system,
            "producers": self.producers,
            "events_per_s": self.events_per_s,
            "p50_us": self.p50_us,
            "p99_us": self.p99_us,
            "cpu_us_per_event": self.cpu_us,
            "disk_bytes_per_event": self.bytes,
            "ratio_floor": self.ratio_floor,
            "ratio_bare": self.ratio_bare,
            "mean_group": self.mean_group,
        })
        .to_string()
    }
}

pub fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<18} {:>5} {:>10} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7}\n",
        "system", "prod", "events/s", "p50 us", "p99 us", "CPU us", "B/event", "group", "/floor", "/bare"
    );
    for row in rows {
        let part = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<18} {:>5} {:>10.0} {:>8.0} {:>8.0} {:>8.2} {:>8} {:>7.1} {:>7} {:>7}",
            row.system,
            row.producers,
            row.events_per_s,
            row.p50_us,
            row.p99_us,
            row.cpu_us,
            row.bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.1}")),
            row.mean_group,
            part(row.ratio_floor),
            part(row.ratio_bare)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(system: &'static str, producers: u64, rates: &[f64]) -> Series {
        let slices = rates
            .iter()
            .map(|events| Slice { events: *events, seconds: 1.0, groups: 10.0, ..Slice::default() })
            .collect();
        Series { system, producers, slices }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine halves its speed in the second round; the ratio does not move.
        let all = [series(BARE, 8, &[100.0, 50.0, 100.0]), series("sealog", 8, &[120.0, 60.0, 120.0])];
        let sizes = BTreeMap::from([("sealog 8".to_owned(), 147.5)]);
        let rows = rows(&all, &sizes);
        assert_eq!((rows[1].ratio_bare, rows[1].ratio_floor), (Some(1.2), None));
        assert_eq!((rows[1].bytes, rows[0].bytes), (Some(147.5), None));
        assert_eq!(table(&rows).lines().count(), 3);
    }

    #[test]
    fn a_line_of_json_has_the_published_members() {
        let all = [series(FLOOR, 1, &[10.0]), series("sealog", 1, &[9.0])];
        let rows = rows(&all, &BTreeMap::new());
        let value: serde_json::Value = serde_json::from_str(&rows[1].json()).unwrap();
        for member in [
            "system",
            "producers",
            "events_per_s",
            "p50_us",
            "p99_us",
            "cpu_us_per_event",
            "disk_bytes_per_event",
            "ratio_floor",
            "ratio_bare",
        ] {
            assert!(value.get(member).is_some(), "{member}");
        }
        assert_eq!(value["ratio_floor"], 0.9);
    }
}
