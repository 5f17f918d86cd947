//! Connections in a trace, which numbers channels and tasks: those that a probes file declares by name, and
//! those that were seen.

use super::doubts::noun;
use punctual_observe::flow::{Declared, InputPlaces};
use punctual_trace::flow::{About, Arming, Barrier, Connection, Input};
use std::collections::BTreeMap;

/// Most names to list.
const LISTED: usize = 12;

/// Inputs that were seen when they were notified.
pub struct Inputs {
    seen: BTreeMap<Connection, Option<Arming>>,
    /// Whether the program ran before, so that queues may hold pushes that nobody saw.
    is_late: bool,
}

/// A larger threshold is that of an input that is not set up.
const MOST_PUSHES: u32 = 1 << 20;

impl Inputs {
    pub fn new(is_late: bool) -> Inputs {
        Inputs { seen: BTreeMap::new(), is_late }
    }

    /// An input was notified. What the file does not say how to read is ignored.
    pub fn see(
        &mut self,
        connection: Connection,
        places: &InputPlaces,
        synchronised: bool,
        threshold: u32,
        is_final: bool,
    ) {
        let is_queue = synchronised
            && places.threshold.is_some()
            && (1..=MOST_PUSHES).contains(&threshold)
            && !self.is_late;
        let is_newest = !synchronised && places.synchronised.is_some() && places.overwrites;
        let optional = places.threshold.is_some() && threshold == 0;
        let threshold = if is_queue { threshold } else { 1 };
        let arming = Arming { threshold, synchronised, optional, is_final, pending: 0 };
        self.seen.insert(connection, (is_queue || is_newest).then_some(arming));
    }

    /// All inputs: how declared ones count is what the file says, if it does.
    pub fn with(&self, declared: Vec<Input>, barriers: &BTreeMap<u16, Barrier>) -> Vec<Input> {
        let mut known = declared;
        for (connection, arming) in &self.seen {
            // A barrier holds no value that could be overwritten.
            let arming =
                arming.filter(|arming| arming.synchronised || !barriers.contains_key(&connection.channel));
            match known.iter_mut().find(|input| input.connection == *connection) {
                Some(input) => input.arming = input.arming.or(arming),
                None => known.push(Input { connection: *connection, arming }),
            }
        }
        known
    }
}

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
