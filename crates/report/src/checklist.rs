//! What works on this machine, one line each, and advice on what does not.

use crate::{Page, visible, wrapped};

/// Whether something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Works,
    /// It does not, but there is a workaround.
    Degraded,
    /// It does not.
    Missing,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// Whether it works.
    pub standing: Standing,
    /// The finding.
    pub detail: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// What needs it.
    pub needed_for: String,
}

/// The items, each with a mark, and advice under those that do not work.
pub fn checklist(items: &[Item], page: &Page) -> String {
    let widest = items.iter().map(|item| item.name.chars().count()).max().unwrap_or(0);
    let width = page.width.map_or(usize::MAX, usize::from).max(40);
    let mut text = String::new();
    for item in items {
        let (mark, colour) = match item.standing {
            Standing::Works => ("✓", "32"),
            Standing::Degraded => ("!", "33"),
            Standing::Missing => ("✗", "31"),
        };
        let mark = if page.colour { format!("\x1b[{colour}m{mark}\x1b[0m") } else { mark.into() };
        let indent = " ".repeat(widest + 4);
        let mut line = |lead: &str, words: &str| {
            let filled = crate::filled(words, wrapped(width.saturating_sub(widest + 4).max(24)));
            for (index, part) in filled.lines().enumerate() {
                text.push_str(if index == 0 { lead } else { &indent });
                text.push_str(part);
                text.push('\n');
            }
        };
        let padding = " ".repeat(widest - item.name.chars().count());
        line(&format!("{mark} {}{padding}  ", item.name), &visible(&item.detail));
        if item.standing != Standing::Works {
            line(&indent, &format!("needed for: {}", item.needed_for));
            if let Some(advice) = &item.advice {
                line(&indent, &format!("to do: {advice}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_items_come_with_advice() {
        let item = |name: &str, standing, detail: &str, advice: Option<&str>| Item {
            name: name.into(),
            standing,
            detail: detail.into(),
            advice: advice.map(Into::into),
            needed_for: "observing".into(),
        };
        let items = [
            item("kernel", Standing::Works, "Linux 6.18.44", None),
            item("privileges", Standing::Missing, "lacks CAP_BPF", Some("run as root")),
        ];
        assert_eq!(
            checklist(&items, &Page::default()),
            "\
✓ kernel      Linux 6.18.44
✗ privileges  lacks CAP_BPF
              needed for: observing
              to do: run as root
"
        );
        assert!(checklist(&items, &Page { width: None, colour: true }).contains("\x1b[31m✗"));
    }
}
