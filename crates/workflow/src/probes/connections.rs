//! Connections, which a probes file declares by name, in a trace, which numbers channels and tasks.

use super::doubts::noun;
use punctual_observe::flow::Declared;
use punctual_trace::flow::{About, Connection, Input};
use std::collections::BTreeMap;

/// Most names to list.
const LISTED: usize = 12;

/// The connections whose channel and task have been seen.
pub fn known(declared: &[Declared], about: &About) -> Vec<Input> {
    declared.iter().filter_map(|connection| resolve(connection, about).ok()).collect()
}

/// Describes the connections that were never seen, in one line.
pub fn unseen(declared: &[Declared], about: &About) -> Option<String> {
    let mut kinds = [false; 2];
    let unseen: Vec<String> = declared
        .iter()
        .filter_map(|connection| {
            let (channel, why) = resolve(connection, about).err()?;
            kinds[usize::from(!channel)] = true;
            Some(format!("{} ─► {} ({why})", connection.channel, connection.task))
        })
        .collect();
    let mut text = format!("declared but not in the trace: {}", unseen.join(", "));
    for (channel, is_meant) in [true, false].into_iter().zip(kinds) {
        let names = if channel { &about.channels } else { &about.tasks };
        if is_meant && !names.is_empty() {
            let more = if names.len() > LISTED { ", …" } else { "" };
            let names: Vec<&str> = names.values().map(String::as_str).take(LISTED).collect();
            text.push_str(&format!("; {}s seen: {}{more}", noun(channel), names.join(", ")));
        }
    }
    (!unseen.is_empty()).then_some(text)
}

/// The connection by numbers; or why it is unknown, and whether that is because of its channel.
fn resolve(connection: &Declared, about: &About) -> Result<Input, (bool, String)> {
    let channel = number(&about.channels, true, &connection.channel)?;
    let task = number(&about.tasks, false, &connection.task)?;
    Ok(Input { connection: Connection { channel, task }, arming: connection.arming })
}

fn number(names: &BTreeMap<u16, String>, channel: bool, name: &str) -> Result<u16, (bool, String)> {
    let mut numbers = names.iter().filter(|(_, known)| *known == name).map(|(number, _)| *number);
    match (numbers.next(), numbers.next()) {
        (Some(number), None) => Ok(number),
        (None, _) => Err((channel, format!("no such {}", noun(channel)))),
        (Some(_), Some(_)) => Err((channel, format!("several {}s have this name", noun(channel)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_resolved_once_both_ends_were_seen() {
        let declare =
            |channel: &str, task: &str| Declared { channel: channel.into(), task: task.into(), arming: None };
        let declared = [
            declare("image", "navi"),
            declare("imgae", "navi"),
            declare("image", "navy"),
            declare("twice", "navi"),
        ];
        let mut about =
            About { channels: [(0, "tick".into()), (3, "image".into())].into(), ..About::default() };
        assert_eq!(known(&declared, &about), []);
        about.tasks.insert(2, "navi".into());
        about.channels.extend([(4, "twice".into()), (5, "twice".into())]);
        assert_eq!(known(&declared, &about), [Connection { channel: 3, task: 2 }.into()]);
        let text = unseen(&declared, &about).unwrap();
        assert_eq!(
            text,
            "declared but not in the trace: imgae ─► navi (no such channel), image ─► navy (no such task), \
             twice ─► navi (several channels have this name); \
             channels seen: tick, image, twice, twice; tasks seen: navi"
        );
        assert_eq!(unseen(&declared[..1], &about), None);
    }
}
