//! Writes numbers that were counted elsewhere. Owns no name.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use sealog_journal::HistogramView;

/// One scrape.
pub(super) struct Page<'a>(pub DescriptorEncoder<'a>);

type Row<'a> = (&'a str, u64);

impl Page<'_> {
    pub fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    pub fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    pub fn counters<'r>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        rows: impl IntoIterator<Item = Row<'r>>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value, count) in rows {
            ConstCounter::new(count).encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    pub fn gauges<'r>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        rows: impl IntoIterator<Item = Row<'r>>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (value, count) in rows {
            ConstGauge::new(count).encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    /// `unit`: what one of the histogram's numbers is worth. Bucket `n` holds numbers below 2^n.
    pub fn histogram(&mut self, name: &str, help: &str, view: &HistogramView, unit: f64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let last = view.buckets.len() - 1;
        let buckets: Vec<(f64, u64)> = view
            .buckets
            .iter()
            .enumerate()
            .map(|(n, count)| {
                let bound = if n == last { f64::INFINITY } else { ((1_u64 << n) - 1) as f64 * unit };
                (bound, *count)
            })
            .collect();
        metric.encode_histogram::<NoLabelSet>(view.sum as f64 * unit, view.count(), &buckets, None)
    }
}
