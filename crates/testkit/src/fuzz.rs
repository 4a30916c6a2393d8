//! Bodies of the fuzz targets, one a decoder, and one that damages a whole journal.
//!
//! The fuzzer's workspace (`fuzz/`) only forwards bytes to [`TARGETS`]; a test of this crate replays every kept input
//! on stable. A body asserts properties (round trips, agreement, memory that follows the input), so that a run
//! without a sanitizer has an oracle beyond panics. Nothing here may depend on time, threads or randomness: the same
//! bytes must fail again.

pub mod allocation;
mod base_url;
mod body;
mod canonical;
mod compacted;
mod cursor;
mod decimal;
mod dialect;
mod export;
mod folded;
mod frame;
mod group;
mod head;
mod image;
mod input;
mod json_text;
mod key_file;
mod keyring;
mod manifest;
mod names;
mod request;
mod segment;
mod sse;
mod store;
mod summary;

/// A target: its name, which is also that of its corpus folder, and its body.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub body: fn(&[u8]),
}

/// Every target. A test demands a corpus for each, and a fuzzer's binary for each.
pub const TARGETS: &[Target] = &[
    Target { name: "segment_header", body: segment::segment_header },
    Target { name: "frame", body: frame::frame },
    Target { name: "group", body: group::group },
    Target { name: "compacted", body: compacted::compacted },
    Target { name: "summary", body: summary::summary },
    Target { name: "manifest", body: manifest::manifest },
    Target { name: "head", body: head::head },
    Target { name: "store", body: store::store },
    Target { name: "file_names", body: names::file_names },
    Target { name: "keyring", body: keyring::keyring },
    Target { name: "key_file", body: key_file::key_file },
    Target { name: "record_body", body: body::record_body },
    Target { name: "folded", body: folded::folded },
    Target { name: "canonical_json", body: canonical::canonical_json },
    Target { name: "json_text", body: json_text::json_text },
    Target { name: "request", body: request::request },
    Target { name: "dialect_request", body: dialect::dialect_request },
    Target { name: "export_lines", body: export::export_lines },
    Target { name: "base_url", body: base_url::base_url },
    Target { name: "sse_cursor", body: cursor::sse_cursor },
    Target { name: "upstream_sse", body: sse::upstream_sse },
    Target { name: "journal_image", body: image::journal_image },
];

/// Runs the body of the target with this name.
///
/// # Panics
/// There is no such target, or the body found something.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no target is called {name}")).body)(data);
}
