//! Exact decimal values and JSON values made of them: the second opinion on what "equal" means. Shares no code with
//! the canonical form it judges; reads with serde_json, which keeps the text of a number.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// `digits` x 10^`exponent`, without a zero at either end of the digits; zero has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: String,
    exponent: i128,
}

impl Decimal {
    /// The value of a JSON number's text; `None` where it is not zero and its exponent does not fit 64 bits.
    pub fn of(literal: &str) -> Option<Decimal> {
        let (negative, unsigned) = literal.strip_prefix('-').map_or((false, literal), |rest| (true, rest));
        let at = unsigned.find(['e', 'E']);
        let (mantissa, exponent) = at.map_or((unsigned, "0"), |at| (&unsigned[..at], &unsigned[at + 1..]));
        let zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        let mut exponent = if zero { 0 } else { i128::from(exponent.parse::<i64>().ok()?) };
        let mut digits = String::with_capacity(mantissa.len());
        let mut behind_point = false;
        for character in mantissa.chars() {
            match character {
                '.' => behind_point = true,
                digit => {
                    digits.push(digit);
                    exponent -= i128::from(behind_point);
                }
            }
        }
        while digits.ends_with('0') {
            digits.pop();
            exponent += 1;
        }
        let digits = digits.trim_start_matches('0').to_owned();
        Some(if digits.is_empty() {
            Decimal { negative: false, digits, exponent: 0 }
        } else {
            Decimal { negative, digits, exponent }
        })
    }
}

/// A JSON value whose numbers are exact and whose members have no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exact {
    Null,
    Bool(bool),
    Number(Decimal),
    Text(String),
    List(Vec<Exact>),
    Members(BTreeMap<String, Exact>),
}

impl Exact {
    /// `None` for what is no JSON, or holds a number that [`Decimal::of`] refuses. Of equal members the last counts.
    pub fn of(text: &str) -> Option<Exact> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        Some(match text.as_bytes().first()? {
            b'n' => serde_json::from_str::<()>(text).ok().map(|()| Exact::Null)?,
            b't' | b'f' => Exact::Bool(serde_json::from_str(text).ok()?),
            b'"' => Exact::Text(serde_json::from_str(text).ok()?),
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                Exact::List(items.into_iter().map(|item| Exact::of(item.get())).collect::<Option<_>>()?)
            }
            b'{' => {
                let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                let exact = |(name, value): (String, &RawValue)| Some((name, Exact::of(value.get())?));
                Exact::Members(members.into_iter().map(exact).collect::<Option<_>>()?)
            }
            _ => {
                let number: &RawValue = serde_json::from_str(text).ok()?;
                Exact::Number(Decimal::of(number.get())?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, equal: bool) {
        let values = (Decimal::of(a).unwrap(), Decimal::of(b).unwrap());
        assert_eq!(values.0 == values.1, equal, "{a} {b}");
    }

    #[test]
    fn values_not_spellings_are_compared() {
        for (a, b) in [("1", "1.0"), ("1e3", "1000"), ("-0", "0"), ("0.10", "1e-1"), ("120E-1", "12.0")] {
            check(a, b, true);
        }
        for (a, b) in [("1", "-1"), ("1", "1.0000000000000001"), ("9007199254740993", "9007199254740992")] {
            check(a, b, false);
        }
    }

    #[test]
    fn members_have_no_order_and_items_have() {
        assert_eq!(Exact::of("{\"a\":1, \"b\":[2,3]}"), Exact::of("{\"b\":[2.0,3e0],\"a\":1}"));
        assert_ne!(Exact::of("[1,2]"), Exact::of("[2,1]"));
        assert_eq!(Exact::of("\"\\u0061\""), Exact::of("\"a\""));
        assert_eq!(Exact::of("[1,"), None);
    }
}
