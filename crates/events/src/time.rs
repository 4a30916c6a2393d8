//! Times: milliseconds since 1970 in, ISO 8601 text in UTC out.
//!
//! Owns the text form. Must never ask a clock.

use core::fmt;

/// A moment: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(pub u64);

const DAY_MS: u64 = 86_400_000;

impl fmt::Display for Timestamp {
    /// `2026-01-01T00:00:00.000Z`. Years after 9999 print with a sign and at least six digits, as ECMAScript does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / DAY_MS);
        let rest = self.0 % DAY_MS;
        let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
        let (second, milli) = (rest / 1000 % 60, rest % 1000);
        if year > 9999 {
            write!(f, "+{year:06}")?;
        } else {
            write!(f, "{year:04}")?;
        }
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Year, month and day of a day number counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Counts in years that begin on March 1st, so that the leap day is the last day of its year.
const fn civil(day_number: u64) -> (u64, u64, u64) {
    // Days from 0000-03-01 to 1970-01-01; 146 097 days make one 400-year cycle.
    let days = day_number + 719_468;
    let cycle = days / 146_097;
    let of_cycle = days % 146_097;
    let year_of_cycle = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) =
        if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (cycle * 400 + year_of_cycle + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, civil};

    #[track_caller]
    fn check(ms: u64, expected: &str) {
        assert_eq!(Timestamp(ms).to_string(), expected);
    }

    #[test]
    fn text_form() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(1_767_225_600_000, "2026-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
        check(253_402_300_799_999, "9999-12-31T23:59:59.999Z");
        check(253_402_300_800_000, "+010000-01-01T00:00:00.000Z");
        check(8_640_000_000_000_000, "+275760-09-13T00:00:00.000Z");
        check(u64::MAX, "+584556019-04-03T14:25:51.615Z");
    }

    #[test]
    fn days_follow_each_other() {
        let month_days = |year: u64, month: u64| match month {
            2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut expected = (1970, 1, 1);
        for day_number in 0..300_000 {
            assert_eq!(civil(day_number), expected, "day {day_number}");
            let (year, month, day) = expected;
            expected = match (month, day == month_days(year, month)) {
                (_, false) => (year, month, day + 1),
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
            };
        }
    }
}
