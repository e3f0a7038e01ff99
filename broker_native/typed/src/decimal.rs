//! Decimals as `java.math.BigDecimal` reads them, fitted to a column as Spark does: rounded half up to the scale, refused beyond the precision.

/// Digits of the largest decimal.
const MOST_DIGITS: usize = 38;

/// The number that `text` says, times ten to the power of `scale`; `None` for what is no number, or has more than `precision` digits then.
pub fn parse(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (number, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (text.get(..at)?, exponent(text.get(at + 1..)?)?),
        None => (text, 0),
    };
    let (whole, fraction) = match number.iter().position(|byte| *byte == b'.') {
        Some(at) => (number.get(..at)?, number.get(at + 1..)?),
        None => (number, &[][..]),
    };
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let digits = || whole.iter().chain(fraction);
    if !digits().all(u8::is_ascii_digit) {
        return None;
    }
    // How many digits, from the first one on, stand before what is rounded away.
    let kept = whole.len() as i64 + exponent + i64::from(scale);
    let mut value: i128 = 0;
    let mut significant = 0;
    for digit in digits().take(usize::try_from(kept).unwrap_or(0)) {
        significant += usize::from(significant > 0 || *digit != b'0');
        if significant > MOST_DIGITS {
            return None;
        }
        value = value * 10 + i128::from(digit - b'0');
    }
    let missing = kept - (whole.len() + fraction.len()) as i64;
    if value != 0 && missing > 0 {
        let power = u32::try_from(missing).ok().and_then(|missing| 10_i128.checked_pow(missing))?;
        value = value.checked_mul(power)?;
    }
    let next = usize::try_from(kept).ok().and_then(|kept| digits().nth(kept));
    if next.is_some_and(|digit| *digit >= b'5') {
        value += 1;
    }
    let limit = 10_i128.checked_pow(u32::from(precision))?;
    (value < limit).then_some(if negative { -value } else { value })
}

/// Java refuses exponents that do not fit into an int.
fn exponent(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let number: i32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(number.into())
}

/// A decimal as `java.math.BigDecimal.toString` writes it: with an exponent only where it is far below 1.
pub fn show(unscaled: i128, scale: i8) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let sign = if unscaled < 0 { "-" } else { "" };
    let scale = usize::try_from(scale).unwrap_or(0);
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    // The exponent of the first digit.
    let exponent = digits.len() as i64 - 1 - scale as i64;
    if exponent < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E{exponent}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_rounded_half_up_to_the_scale_and_refused_beyond_the_precision() {
        for (text, precision, scale, wanted) in [
            ("1.005", 5, 2, Some(101)),
            ("-1.005", 5, 2, Some(-101)),
            ("1.0049", 5, 2, Some(100)),
            ("1e2", 5, 2, Some(10_000)),
            ("1234.5", 5, 2, None),
            ("999.995", 5, 2, None),
            ("1e-1", 5, 2, Some(10)),
            ("0.5", 10, 0, Some(1)),
            ("2.5", 10, 0, Some(3)),
            ("0.4", 10, 0, Some(0)),
            ("-0.05", 10, 0, Some(0)),
            ("1e-20", 38, 10, Some(0)),
            ("0e50", 38, 10, Some(0)),
            ("1e1000000", 38, 10, None),
            ("1e99999999999", 38, 10, None),
            ("1e28", 38, 10, None),
            ("1e27", 38, 10, Some(10_i128.pow(37))),
            ("00000000000000000000000000000000000000000000000001", 5, 2, Some(100)),
            (".5", 5, 2, Some(50)),
            ("5.", 5, 2, Some(500)),
            ("+5", 5, 2, Some(500)),
            ("", 5, 2, None),
            (".", 5, 2, None),
            ("x", 5, 2, None),
            (" 1", 5, 2, None),
            ("1e", 5, 2, None),
            ("--1", 5, 2, None),
        ] {
            assert_eq!(parse(text.as_bytes(), precision, scale), wanted, "{text}");
        }
    }

    #[test]
    fn a_decimal_is_shown_as_by_java() {
        for (unscaled, scale, wanted) in [
            (1, 0, "1"),
            (1, 10, "1E-10"),
            (-123, 10, "-1.23E-8"),
            (1_234_500, 4, "123.4500"),
            (0, 10, "0E-10"),
            (0, 2, "0.00"),
            (-500, 2, "-5.00"),
            (5, 2, "0.05"),
            (1, 6, "0.000001"),
            (1, 7, "1E-7"),
        ] {
            assert_eq!(show(unscaled, scale), wanted);
        }
    }
}
