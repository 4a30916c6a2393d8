//! From slices to rows. Ratios are the median over rounds of the ratio within a round.

use serde_json::{Value, json};

use crate::load::{Series, Slice, System};

#[derive(Clone, Debug)]
pub struct Row {
    system: &'static str,
    clients: usize,
    per_second: f64,
    first_p50_us: f64,
    first_p99_us: f64,
    whole_p50_us: f64,
    whole_p99_us: f64,
    /// CPU time of the node, for each execution; `None` for what is not ours.
    node_cpu_us: Option<f64>,
    /// Executions a second against the memory store's.
    ratio_memory: Option<f64>,
    /// And against Restate's.
    ratio_restate: Option<f64>,
}

pub fn rows(systems: &[System], series: &[Series]) -> Vec<Row> {
    let name = |one: &Series| systems.get(one.system).map_or("?", |system| system.name);
    let beside = |one: &Series, other: &str| {
        let other = series.iter().find(|that| that.clients == one.clients && name(that) == other)?;
        let rounds = one.slices.iter().zip(&other.slices);
        median(rounds.map(|(ours, theirs)| ours.per_second() / theirs.per_second()).collect())
    };
    series.iter().map(|one| row(name(one), one, beside(one, "memory"), beside(one, "restate"))).collect()
}

fn row(system: &'static str, series: &Series, ratio_memory: Option<f64>, ratio_restate: Option<f64>) -> Row {
    let sorted = |of: fn(&Slice) -> &Vec<f32>| {
        let mut all: Vec<f32> = series.slices.iter().flat_map(of).copied().collect();
        all.sort_by(f32::total_cmp);
        all
    };
    let (first, whole) = (sorted(|slice| &slice.first_us), sorted(|slice| &slice.whole_us));
    let cpu: f64 = series.slices.iter().map(|slice| slice.node_cpu_seconds).sum();
    Row {
        system,
        clients: series.clients,
        per_second: median(series.slices.iter().map(Slice::per_second).collect()).unwrap_or(0.0),
        first_p50_us: percentile(&first, 0.50),
        first_p99_us: percentile(&first, 0.99),
        whole_p50_us: percentile(&whole, 0.50),
        whole_p99_us: percentile(&whole, 0.99),
        node_cpu_us: (cpu > 0.0).then(|| cpu * 1e6 / whole.len().max(1) as f64),
        ratio_memory,
        ratio_restate,
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

pub fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<8} {:>7} {:>12} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>9}\n",
        "system",
        "clients",
        "executions/s",
        "first p50",
        "first p99",
        "whole p50",
        "whole p99",
        "CPU us",
        "/memory",
        "/restate"
    );
    for row in rows {
        let optional = |value: Option<f64>, digits: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        out.push_str(&format!(
            "{:<8} {:>7} {:>12.0} {:>10.0} {:>10.0} {:>10.0} {:>10.0} {:>8} {:>8} {:>9}\n",
            row.system,
            row.clients,
            row.per_second,
            row.first_p50_us,
            row.first_p99_us,
            row.whole_p50_us,
            row.whole_p99_us,
            optional(row.node_cpu_us, 0),
            optional(row.ratio_memory, 2),
            optional(row.ratio_restate, 1)
        ));
    }
    out
}

impl Row {
    pub fn json(&self) -> Value {
        json!({
            "system": self.system,
            "clients": self.clients,
            "executions_per_s": self.per_second,
            "first_p50_us": self.first_p50_us,
            "first_p99_us": self.first_p99_us,
            "whole_p50_us": self.whole_p50_us,
            "whole_p99_us": self.whole_p99_us,
            "node_cpu_us_per_execution": self.node_cpu_us,
            "ratio_memory": self.ratio_memory,
            "ratio_restate": self.ratio_restate,
        })
    }
}
