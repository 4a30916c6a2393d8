//! Varints (section 5.2) and the bounds of reading.

use super::*;

#[track_caller]
fn check(bytes: &[u8], expected: Result<u64, Why>) {
    let mut cursor = Cursor::new(bytes);
    let read = cursor.varint("number");
    assert_eq!(read.map_err(|error| error.why), expected);
    if let Ok(value) = expected {
        assert_eq!(cursor.remaining(), 0);
        let mut again = Vec::new();
        push_varint(&mut again, value);
        assert_eq!(again, bytes);
    }
}

#[test]
fn varints_have_one_spelling() {
    check(&[0], Ok(0));
    check(&[0x7f], Ok(127));
    check(&[0x80, 1], Ok(128));
    check(&[0xff, 0x7f], Ok(16_383));
    check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Ok(u64::MAX));
    check(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], Ok(1 << 63));
    check(&[0x80, 0], Err(Why::NotMinimal));
    check(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], Err(Why::NotMinimal));
    check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], Err(Why::OutOfRange));
    check(&[0x80; 11], Err(Why::TooLong));
    check(&[], Err(Why::Short));
    check(&[0x80], Err(Why::Short));
    check(&[0x80; 9], Err(Why::Short));
}

#[test]
fn counts_and_lengths_are_checked_against_what_is_there() {
    let why = |result: Result<usize, FormatError>| result.map_err(|error| error.why);
    assert_eq!(why(Cursor::new(&[2, 0, 0, 0, 0]).count(2, "count")), Ok(2));
    assert_eq!(why(Cursor::new(&[3, 0, 0, 0, 0]).count(2, "count")), Err(Why::Short));
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(why(Cursor::new(&huge).count(1, "count")), Err(Why::Short));
    let sized = |bytes: &[u8]| Cursor::new(bytes).sized(4, "length").map(<[u8]>::len);
    assert_eq!(why(sized(&[4, 1, 2, 3, 4])), Ok(4));
    assert_eq!(why(sized(&[4, 1, 2, 3])), Err(Why::Short));
    assert_eq!(why(sized(&[5, 1, 2, 3, 4, 5])), Err(Why::TooLong));
    assert_eq!(why(sized(&huge)), Err(Why::TooLong));
}

#[test]
fn padding_is_short_and_zero() {
    assert_eq!(Cursor::new(&[0; 63]).padding(64), Ok(()));
    assert_eq!(Cursor::new(&[0; 64]).padding(64), Err(Why::Trailing.of("padding", 0)));
    assert_eq!(Cursor::new(&[0, 0, 9]).padding(64), Err(Why::NotZero.of("padding", 2)));
}
