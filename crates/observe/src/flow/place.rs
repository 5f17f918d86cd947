//! Where something lies in a traced program, as people write it: `u32 at arg0+8`, `string at [[arg1]+16]`.

use super::skeleton::types::flow_limits;
use std::str::FromStr;

/// How many pointers are followed at most.
pub const MOST_STEPS: usize = flow_limits::MOST_STEPS.0 as usize;
/// Arguments in registers.
const ARGUMENTS: u8 = 6;

/// From an argument of the function: `arg1` (no offsets), `arg1+8` (one), `[arg1]+8` (two: the first leads to
/// a pointer that is followed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The argument, from 0.
    pub argument: u8,
    /// Bytes from the argument, then from each pointer found.
    pub offsets: Vec<i32>,
}

/// A number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// How long it is.
    pub bytes: u8,
    /// Where.
    pub place: Place,
}

/// Text there, ended by a NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub Place);

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected u8, u16, u32 or u64 and where it is, such as \"u32 at arg0+8\", or an \
         argument itself, such as \"arg0\"";
        let Some((number, place)) = text.split_once(" at ") else {
            if !text.starts_with("arg") {
                return Err(expected.into());
            }
            let place: Place = text.parse()?;
            return if place.offsets.is_empty() {
                Ok(Number { bytes: 8, place })
            } else {
                Err(expected.into())
            };
        };
        let bytes = match number.trim() {
            "u8" => 1,
            "u16" => 2,
            "u32" => 4,
            "u64" => 8,
            other => {
                return Err(format!("'{other}' cannot be read; expected u8, u16, u32 or u64"));
            }
        };
        Ok(Number { bytes, place: address(place)? })
    }
}

impl FromStr for Text {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = text
            .strip_prefix("string at ")
            .ok_or("expected where the text is, such as \"string at [arg0+16]\"")?;
        Ok(Text(address(place)?))
    }
}

/// A place whose content is read, so with an offset, even if that is 0.
fn address(text: &str) -> Result<Place, String> {
    let mut place: Place = text.parse()?;
    let ends_in_offset = !text.trim_end().ends_with(']') && !place.offsets.is_empty();
    if !ends_in_offset {
        place.offsets.push(0);
    }
    if place.offsets.len() > MOST_STEPS {
        return Err(format!("more than {MOST_STEPS} steps"));
    }
    Ok(place)
}

impl FromStr for Place {
    type Err = String;

    /// `argN`, or a place in brackets (the pointer there), each with an offset or not.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (base, offset) = match text
            .rfind(']')
            .map_or_else(|| text.find(['+', '-']), |end| text[end..].find(['+', '-']).map(|at| end + at))
        {
            Some(at) => (text[..at].trim(), Some(offset(&text[at..])?)),
            None => (text, None),
        };
        let mut place = match base.strip_prefix('[') {
            Some(inner) => {
                let inner = inner
                    .strip_suffix(']')
                    .ok_or_else(|| format!("'{base}' has a bracket that is not closed"))?;
                address(inner)?
            }
            None => Place { argument: argument(base)?, offsets: Vec::new() },
        };
        place.offsets.extend(offset);
        if place.offsets.len() > MOST_STEPS {
            return Err(format!("more than {MOST_STEPS} steps"));
        }
        Ok(place)
    }
}

fn argument(text: &str) -> Result<u8, String> {
    let number =
        text.strip_prefix("arg").and_then(|number| number.parse().ok()).filter(|number| *number < ARGUMENTS);
    number.ok_or_else(|| format!("'{text}' is not an argument; expected arg0 to arg{}", ARGUMENTS - 1))
}

fn offset(text: &str) -> Result<i32, String> {
    let (sign, digits) = text.split_at(1);
    let digits = digits.trim();
    let number = match digits.strip_prefix("0x") {
        Some(hex) => i32::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let number = number
        .ok()
        .filter(|number| *number >= 0)
        .ok_or_else(|| format!("'{digits}' is not an offset; expected bytes, such as 8 or 0x10"))?;
    Ok(if sign == "-" { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(argument: u8, offsets: &[i32]) -> Place {
        Place { argument, offsets: offsets.to_vec() }
    }

    #[test]
    fn places_are_read() {
        for (text, bytes, expected) in [
            ("u32 at arg0+8", 4, place(0, &[8])),
            ("u8 at arg5", 1, place(5, &[0])),
            ("u64 at arg1-0x10", 8, place(1, &[-16])),
            ("u32 at [arg1+0]+8", 4, place(1, &[0, 8])),
            ("u32 at [arg1]+8", 4, place(1, &[0, 8])),
            ("u32 at [arg1+16]", 4, place(1, &[16, 0])),
            ("u16 at [[arg2 + 8] + 24] - 4", 2, place(2, &[8, 24, -4])),
            ("arg3", 8, place(3, &[])),
        ] {
            assert_eq!(text.parse(), Ok(Number { bytes, place: expected }), "{text}");
        }
        assert_eq!("string at [arg0+16]".parse(), Ok(Text(place(0, &[16, 0]))));
        assert_eq!("string at arg0+16".parse(), Ok(Text(place(0, &[16]))));
    }

    #[test]
    fn invalid_places_are_refused() {
        for text in [
            "",
            "u32",
            "u32 at",
            "u32 at arg6",
            "u32 at [arg0",
            "u32 at arg0]",
            "u32 at arg0+",
            "u32 at arg0+x",
            "u32 at [[[[arg0]]]]+1",
            "arg0+8",
            "u32 at 8",
        ] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
        assert!("arg0".parse::<Text>().is_err());
    }

    /// A mistake is named itself, not what would be read in its place.
    #[test]
    fn errors_name_the_mistake() {
        for (text, expected) in [
            ("u17 on arg9", "expected u8, u16, u32 or u64 and where it is"),
            ("u17 at arg0", "'u17' cannot be read"),
            ("u16 at arg9", "'arg9' is not an argument; expected arg0 to arg5"),
            ("arg9", "'arg9' is not an argument; expected arg0 to arg5"),
            ("arg0+8", "expected u8, u16, u32 or u64 and where it is"),
        ] {
            let what = text.parse::<Number>().unwrap_err();
            assert!(what.contains(expected), "{text}: {what}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[u0-9 at\\[\\]rg+x-]{0,40}") {
            let _ = text.parse::<Number>();
            let _ = text.parse::<Text>();
        }
    }
}
