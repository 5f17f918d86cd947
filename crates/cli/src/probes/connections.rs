//! Connections that a file declares by names, in a trace where they have numbers.

use super::doubts::what;
use punctual_observe::flow::Declared;
use punctual_trace::flow::{About, Connection, Input};
use std::collections::BTreeMap;

/// Names that are listed, at most.
const LISTED: usize = 12;

/// Those whose channel and task have been seen.
pub fn known(declared: &[Declared], about: &About) -> Vec<Input> {
    declared.iter().filter_map(|of| known_one(of, about).ok()).collect()
}

/// What becomes of those that are not known at the end, in a line.
pub fn unseen(declared: &[Declared], about: &About) -> Option<String> {
    let mut kinds = [false; 2];
    let unseen: Vec<String> = declared
        .iter()
        .filter_map(|of| {
            let (channel, why) = known_one(of, about).err()?;
            kinds[usize::from(!channel)] = true;
            Some(format!("{} ─► {} ({why})", of.channel, of.task))
        })
        .collect();
    let mut text = format!("declared and not in the trace: {}", unseen.join(", "));
    for (channel, is_meant) in [true, false].into_iter().zip(kinds) {
        let names = if channel { &about.channels } else { &about.tasks };
        if is_meant && !names.is_empty() {
            let more = if names.len() > LISTED { ", …" } else { "" };
            let names: Vec<&str> = names.values().map(String::as_str).take(LISTED).collect();
            text.push_str(&format!("; {}s that were seen: {}{more}", what(channel), names.join(", ")));
        }
    }
    (!unseen.is_empty()).then_some(text)
}

/// Or why it is not known, and whether that is for its channel.
fn known_one(of: &Declared, about: &About) -> Result<Input, (bool, String)> {
    let channel = number(&about.channels, true, &of.channel)?;
    let task = number(&about.tasks, false, &of.task)?;
    Ok(Input { connection: Connection { channel, task }, arming: of.arming })
}

fn number(names: &BTreeMap<u16, String>, channel: bool, name: &str) -> Result<u16, (bool, String)> {
    let mut numbers = names.iter().filter(|(_, known)| *known == name).map(|(number, _)| *number);
    match (numbers.next(), numbers.next()) {
        (Some(number), None) => Ok(number),
        (None, _) => Err((channel, format!("no such {}", what(channel)))),
        (Some(_), Some(_)) => Err((channel, format!("several {}s are called so", what(channel)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_when_they_are_known() {
        let of =
            |channel: &str, task: &str| Declared { channel: channel.into(), task: task.into(), arming: None };
        let declared = [of("image", "navi"), of("imgae", "navi"), of("image", "navy"), of("twice", "navi")];
        let mut about =
            About { channels: [(0, "tick".into()), (3, "image".into())].into(), ..About::default() };
        assert_eq!(known(&declared, &about), []);
        about.tasks.insert(2, "navi".into());
        about.channels.extend([(4, "twice".into()), (5, "twice".into())]);
        assert_eq!(known(&declared, &about), [Connection { channel: 3, task: 2 }.into()]);
        let said = unseen(&declared, &about).unwrap();
        assert_eq!(
            said,
            "declared and not in the trace: imgae ─► navi (no such channel), image ─► navy (no such task), twice ─► navi (several channels are called so); \
             channels that were seen: tick, image, twice, twice; tasks that were seen: navi"
        );
        assert_eq!(unseen(&declared[..1], &about), None);
    }
}
