//! Lines of an export, one by one, as a whole input, and put right so that counts and digest do not hide the rest.

use sealog_engine::store::journal::transfer::check;
use sealog_engine::store::journal::transfer::lines::{Counts, Line, link};

use super::allocation::within;

/// What parses spells itself the same, and an input is judged in memory that follows its length.
pub(super) fn export_lines(data: &[u8]) {
    let mut lines = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        if let Ok(parsed) = Line::parse(line) {
            assert_eq!(parsed.spell().as_bytes(), line, "one value has one spelling");
            lines.push(parsed);
        }
    }
    judge(data);
    judge(&put_right(lines));
}

fn judge(input: &[u8]) {
    let checked = within(64 * input.len() + (1 << 20), || check(&mut &input[..]));
    if let Ok(checked) = checked {
        let lines = input.split(|byte| *byte == b'\n').count() as u64;
        assert!(checked.whole + checked.events + checked.gaps + checked.incomplete.len() as u64 <= lines);
    }
}

/// The lines behind a header and before their right end.
fn put_right(mut lines: Vec<Line>) -> Vec<u8> {
    lines.retain(|line| !matches!(line, Line::Header { .. } | Line::End { .. }));
    lines.insert(0, Line::Header { store_id: [1; 16], created_ms: 1, last_sequence: 1 });
    let (mut bytes, mut digest) = (Vec::new(), [0; 32]);
    let mut counts = Counts::default();
    for line in &lines {
        counts.executions += u64::from(matches!(line, Line::Execution { .. }));
        counts.events += u64::from(matches!(line, Line::Event { .. }));
        let text = line.spell();
        digest = link(&digest, text.as_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(b'\n');
    }
    let end = Line::end(counts, &digest).spell();
    bytes.extend_from_slice(end.as_bytes());
    bytes.push(b'\n');
    bytes
}
