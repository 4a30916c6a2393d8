//! The canonical text of a number.
//!
//! Owns the rule that equal decimal values have one text and different values never share one. Where a double holds
//! the literal's value exactly enough that ECMAScript would print the same decimal value, the text is ECMAScript's;
//! elsewhere it is the literal's own digits in the same layout. Since ECMAScript prints normalised digits too, both
//! cases are one: lay out the literal's normalised digits. Must never convert digits through a float.

use super::CanonicalError;

/// Largest decimal exponent, either way, of a number that is not zero, in scientific notation with one digit before
/// the point. Far beyond a double above, and far below it only to keep the arithmetic on places exact. It bounds the
/// value and not its spelling, so that every spelling of a number is accepted or none.
const EXPONENT_MAX: i64 = 1_000_000_000;

/// Largest exponent that is read. Digits shift it by less than the length of a text, which is far below the difference.
const WRITTEN_EXPONENT_MAX: i64 = 4 * EXPONENT_MAX;

/// Appends the canonical text of a literal that is a JSON number.
pub(super) fn put_canonical(out: &mut String, literal: &str) -> Result<(), CanonicalError> {
    let (negative, unsigned) = match literal.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let leading_zeros = digits.len() - digits.trim_start_matches('0').len();
    let significant = digits.trim_matches('0');
    if significant.is_empty() {
        out.push('0');
        return Ok(());
    }
    if !literal.parse::<f64>().is_ok_and(f64::is_finite) {
        return Err(CanonicalError::NumberRange);
    }
    // Digits before the decimal point when the first significant digit leads: 1 for `1.5`, 0 for `0.15`.
    let point = exponent_value(exponent)? + places(whole.len())? - places(leading_zeros)?;
    if (point - 1).abs() > EXPONENT_MAX {
        return Err(CanonicalError::NumberRange);
    }
    if negative {
        out.push('-');
    }
    put_layout(out, significant, point);
    Ok(())
}

/// The layout of ECMAScript's Number::toString for the digits k and the exponent n.
fn put_layout(out: &mut String, digits: &str, point: i64) {
    match (usize::try_from(point), usize::try_from(-point)) {
        (Ok(point @ 1..=21), _) if digits.len() <= point => {
            out.push_str(digits);
            out.extend(core::iter::repeat_n('0', point - digits.len()));
        }
        (Ok(point @ 1..=21), _) => {
            let (whole, fraction) = digits.split_at(point);
            out.push_str(whole);
            out.push('.');
            out.push_str(fraction);
        }
        (_, Ok(zeros @ 0..=5)) => {
            out.push_str("0.");
            out.extend(core::iter::repeat_n('0', zeros));
            out.push_str(digits);
        }
        _ => {
            let (first, others) = digits.split_at(1);
            out.push_str(first);
            if !others.is_empty() {
                out.push('.');
                out.push_str(others);
            }
            out.push_str(if point > 0 { "e+" } else { "e-" });
            out.push_str(&(point - 1).unsigned_abs().to_string());
        }
    }
}

/// The value of an exponent's text. An exponent too long to read is beyond every bound.
fn exponent_value(exponent: Option<&str>) -> Result<i64, CanonicalError> {
    let Some(text) = exponent else { return Ok(0) };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    let value = digits.parse::<i64>().ok().filter(|value| *value <= WRITTEN_EXPONENT_MAX);
    let value = value.ok_or(CanonicalError::NumberRange)?;
    Ok(if negative { -value } else { value })
}

fn places(count: usize) -> Result<i64, CanonicalError> {
    i64::try_from(count).map_err(|_| CanonicalError::NumberRange)
}
