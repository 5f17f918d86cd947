//! Text from outside, in messages.

/// A text as it can stand in a message: control characters are escaped, so that it stays one line and does
/// nothing to a terminal.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(one_line("a\nb\u{1b}[1m\u{85} ä'"), "a\\nb\\u{1b}[1m\\u{85} ä'");
    }
}
