//! File names (section 2).

use super::*;

#[track_caller]
fn check(name: &str, expected: Option<SegmentName>) {
    assert_eq!(SegmentName::parse(name), expected, "{name}");
    if let Some(parsed) = expected {
        assert_eq!(parsed.file_name(), name);
        let summary = parsed.summary_name();
        assert_eq!(SegmentName::parse_summary(&summary), expected);
        assert_eq!(SegmentName::parse(&summary), None);
    }
}

#[test]
fn section_2_segment_names() {
    check("000000000001.seg", Some(SegmentName::Log { number: 1 }));
    check("999999999999.seg", Some(SegmentName::Log { number: 999_999_999_999 }));
    check("1000000000000.seg", Some(SegmentName::Log { number: 1_000_000_000_000 }));
    check("18446744073709551615.seg", Some(SegmentName::Log { number: u64::MAX }));
    let compacted = SegmentName::Compacted { first: 3, last: 12, generation: 2 };
    check("000000000003-000000000012.000000000002.seg", Some(compacted));
    assert_eq!((compacted.first(), compacted.last()), (3, 12));
    let one = SegmentName::Compacted { first: 3, last: 3, generation: 1 };
    check("000000000003-000000000003.000000000001.seg", Some(one));
    for name in [
        "",
        ".seg",
        "next",
        "reserve",
        "000000000000.seg",
        "1.seg",
        "00000000001.seg",
        "0000000000001.seg",
        "+00000000001.seg",
        "00000000000a.seg",
        "000000000001.SEG",
        "000000000001.seg.tmp",
        "000000000001.idx",
        " 000000000001.seg",
        "18446744073709551616.seg",
        "000000000012-000000000003.000000000001.seg",
        "000000000003-000000000012.000000000000.seg",
        "000000000000-000000000012.000000000001.seg",
        "000000000003-000000000012.seg",
        "000000000003-000000000012.1.seg",
        "000000000003-000000000012-000000000013.000000000001.seg",
        "000000000003.000000000012.seg",
    ] {
        check(name, None);
    }
}

#[test]
fn jr_9_quarantine_names() {
    let name = QuarantineName { segment: 7, frame: 0 };
    assert_eq!(name.tail_name(), "000000000007-000000000000.tail");
    assert_eq!(name.report_name(), "000000000007-000000000000.txt");
    assert_eq!(QuarantineName::parse(&name.tail_name()), Some(name));
    assert_eq!(QuarantineName::parse(&name.report_name()), Some(name));
    for other in
        ["000000000000-000000000000.tail", "7-0.tail", "000000000007.tail", "000000000007-000000000000"]
    {
        assert_eq!(QuarantineName::parse(other), None, "{other}");
    }
}
