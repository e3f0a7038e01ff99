//! Texts of dates and timestamps, as a cast of Spark reads them: `2026-1-2`, `2026-01-02 03:04:05.678`, a zone behind the seconds.
//!
//! A zone is `Z`, an offset, or `UTC`, `GMT`, `UT` with or without one; without a zone a timestamp is in UTC. Names of regions, and times
//! without a date (which Spark takes for today's), are not read.

const DAY_US: i64 = 86_400_000_000;
/// Java allows no offset beyond.
const OFFSET_MAX_S: i64 = 18 * 3600;

/// Days since 1970 that `text` says: `[+-]y..y`, `y-m`, `y-m-d`, with anything behind a day that is followed by `T` or a space.
pub fn date(text: &[u8]) -> Option<i32> {
    let text = text.trim_ascii();
    let (sign, mut rest) = signed(text);
    let mut parts = [1_i64; 3];
    for (part, stored) in parts.iter_mut().enumerate() {
        let (number, digits, behind) = number(rest)?;
        let fits = if part == 0 { (4..=7).contains(&digits) } else { (1..=2).contains(&digits) };
        if !fits {
            return None;
        }
        *stored = number;
        rest = match (part, behind) {
            (_, []) | (2, [b' ' | b'T', ..]) => break,
            (0 | 1, [b'-', behind @ ..]) => behind,
            _ => return None,
        };
    }
    let [year, month, day] = parts;
    days(sign * year, month, day)
}

/// Microseconds since 1970 that `text` says; without `with_zone` a zone is refused.
pub fn timestamp(text: &[u8], with_zone: bool) -> Option<i64> {
    let text = text.trim_ascii();
    let (sign, mut rest) = signed(text);
    let mut parts = [1_i64, 1, 1, 0, 0, 0];
    let (mut micros, mut offset_s) = (0, 0);
    for (part, stored) in parts.iter_mut().enumerate() {
        let (number, digits, behind) = number(rest)?;
        let fits = if part == 0 { (4..=6).contains(&digits) } else { (1..=2).contains(&digits) };
        if !fits {
            return None;
        }
        *stored = number;
        rest = match (part, behind) {
            (_, []) => break,
            (0 | 1, [b'-', behind @ ..]) | (2, [b' ' | b'T', behind @ ..]) | (3 | 4, [b':', behind @ ..]) => {
                behind
            }
            (5, _) => {
                let zone;
                (micros, zone) = fraction(behind);
                if !zone.is_empty() {
                    if !with_zone {
                        return None;
                    }
                    offset_s = offset(zone)?;
                }
                break;
            }
            _ => return None,
        };
    }
    let [year, month, day, hour, minute, second] = parts;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let day: i64 = days(sign * year, month, day)?.into();
    let seconds = (hour * 60 + minute) * 60 + second - offset_s;
    day.checked_mul(DAY_US)?.checked_add(seconds * 1_000_000 + micros)
}

/// Days since 1970 of a date of the proleptic Gregorian calendar; `None` when there is no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let total = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    i32::try_from(total).ok()
}

/// Year, month and day of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A day since 1970 as Java's formatter writes it: years beyond four digits have a sign.
pub fn show_date(days: i64) -> String {
    let (year, month, day) = civil(days);
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        10_000.. => format!("+{year}-{month:02}-{day:02}"),
        _ => format!("-{:04}-{month:02}-{day:02}", -year),
    }
}

/// A timestamp in whole milliseconds, with `zone` behind it.
pub fn show_timestamp(micros: i64, zone: &str) -> String {
    let date = show_date(micros.div_euclid(DAY_US));
    let ms = micros.rem_euclid(DAY_US) / 1000;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{:03}{zone}", ms % 1000)
}

fn signed(text: &[u8]) -> (i64, &[u8]) {
    match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    }
}

/// The number at the beginning of `text`, how many digits it has, and what is behind; `None` for one that is too long for any part.
fn number(text: &[u8]) -> Option<(i64, usize, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 9 {
        return None;
    }
    let (number, behind) = text.split_at(digits);
    Some((number.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')), digits, behind))
}

/// Microseconds of a fraction that begins with a point, further digits cut off; what is behind, which may be a zone.
fn fraction(text: &[u8]) -> (i64, &[u8]) {
    let Some(text) = text.strip_prefix(b".") else { return (0, text) };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, zone) = text.split_at(digits);
    let micros =
        (0..6).fold(0, |value, at| value * 10 + i64::from(fraction.get(at).map_or(0, |digit| digit - b'0')));
    (micros, zone)
}

/// Seconds east of UTC of a zone.
fn offset(zone: &[u8]) -> Option<i64> {
    let zone = zone.trim_ascii();
    if zone == b"Z" {
        return Some(0);
    }
    let named = [&b"UTC"[..], b"GMT", b"UT"].into_iter().find_map(|name| zone.strip_prefix(name));
    let rest = match named {
        Some([]) => return Some(0),
        Some(rest) => rest,
        None => zone,
    };
    let (sign, rest) = match rest {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => return None,
    };
    let two = |text: &[u8]| {
        text.iter().all(u8::is_ascii_digit).then(|| number(text)).flatten().map(|found| found.0)
    };
    let (hours, minutes, seconds) = match *rest {
        [h] => (two(&[h])?, 0, 0),
        [h, b':', m, n] => (two(&[h])?, two(&[m, n])?, 0),
        [h, i] => (two(&[h, i])?, 0, 0),
        [h, i, b':', n] => (two(&[h, i])?, two(&[n])?, 0),
        [h, i, b':', m, n] | [h, i, m, n] => (two(&[h, i])?, two(&[m, n])?, 0),
        [h, i, b':', m, n, b':', s, t] | [h, i, m, n, s, t] => (two(&[h, i])?, two(&[m, n])?, two(&[s, t])?),
        _ => return None,
    };
    let total = (hours * 60 + minutes) * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= OFFSET_MAX_S).then_some(sign * total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_by_a_cast() {
        for (text, wanted) in [
            ("1970-01-01", Some(0)),
            ("2020-01-01", Some(18_262)),
            ("2020", Some(18_262)),
            ("2020-02", Some(18_293)),
            ("2020-2-3", Some(18_295)),
            (" 2020-01-01 ", Some(18_262)),
            ("2020-01-01T", Some(18_262)),
            ("2020-01-01Txyz", Some(18_262)),
            ("2020-02-29", Some(18_321)),
            ("2100-02-29", None),
            ("2020-02-30", None),
            ("2020-13-01", None),
            ("0001-01-01", Some(-719_162)),
            ("-0001-01-01", Some(-719_893)),
            ("10000-01-01", Some(2_932_897)),
            ("020-01-01", None),
            ("2020-", None),
            ("2020-01-01x", None),
            ("2020T", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(date(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn timestamps_are_read_as_by_a_cast_with_offsets_for_zones() {
        let noon = 1_577_880_000_000_000;
        for (text, wanted) in [
            ("2020-01-01T12:00:00", Some(noon)),
            ("2020-01-01 12:00", Some(noon)),
            ("2020-01-01T12", Some(noon)),
            ("2020-01-01T12:00:00.", Some(noon)),
            ("2020-01-01T12:00:00.1234567", Some(noon + 123_456)),
            ("2020-01-01T12:00:00.5Z", Some(noon + 500_000)),
            ("2020-01-01T14:00:00+02:00", Some(noon)),
            ("2020-01-01T14:00:00+2", Some(noon)),
            ("2020-01-01T14:00:00GMT+2", Some(noon)),
            ("2020-01-01T12:00:00 UTC", Some(noon)),
            ("2020-01-01T13:30:00UTC+01:30", Some(noon)),
            ("2020-01-01T09:30:00-0230", Some(noon)),
            ("2020-01-01T12:00:00+19", None),
            ("2020-01-01T12:00:00z", None),
            ("2020-01-01T12:00Z", None),
            ("2020-01-01Z", None),
            ("2020-01-01T24:00:00", None),
            ("2020-01-01T12:00:60", None),
            ("2020-01-01T", None),
            ("2020-02-30", None),
            ("12:00:00", None),
            ("294247-01-10", Some(9_223_372_022_400_000_000)),
            ("294247-01-11", None),
            ("1234567", None),
            ("", None),
        ] {
            assert_eq!(timestamp(text.as_bytes(), true), wanted, "{text}");
        }
        assert_eq!(timestamp(b"2020-01-01T12:00:00Z", false), None);
        assert_eq!(timestamp(b"2020-01-01T12:00:00", false), Some(noon));
    }

    #[test]
    fn every_day_is_shown_as_it_is_read() {
        for day in (-3_000_000..4_000_000).step_by(977).chain([-719_163, -719_162, 0, 2_932_896, 2_932_897]) {
            assert_eq!(date(show_date(day.into()).as_bytes()), Some(day));
        }
        assert_eq!(show_timestamp(-500, "Z"), "1969-12-31T23:59:59.999Z");
    }
}
