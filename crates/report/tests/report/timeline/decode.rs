//! A timeline, decoded: what a reader that sorts by time finds in it.

use super::proto::{Packet, SchedSwitch, Trace, kind};
use prost::Message;
use std::collections::BTreeMap;

/// A slice, or an instant (`end` is `begin`).
#[derive(Clone, Debug)]
pub struct Slice {
    pub track: u64,
    pub name: String,
    pub begin: u64,
    pub end: u64,
    pub numbers: BTreeMap<String, i64>,
}

/// A timeline.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Switches of each processor, by time.
    pub switches: BTreeMap<u32, Vec<(u64, SchedSwitch)>>,
    /// When somebody was woken: by whom, whom.
    pub wakes: Vec<(u64, u32, u32)>,
    pub slices: Vec<Slice>,
    pub instants: Vec<Slice>,
    /// The name of each track; that of a thread, for a thread's.
    pub tracks: BTreeMap<u64, String>,
    /// Arrows: the track that they leave and the one where they end.
    pub flows: BTreeMap<u64, (Option<u64>, Option<u64>)>,
}

impl Decoded {
    /// Panics on what is no well-formed timeline.
    pub fn new(bytes: &[u8]) -> Self {
        let trace = Trace::decode(bytes).unwrap();
        let mut decoded = Self::default();
        let mut names = BTreeMap::new();
        let mut events = Vec::new();
        for packet in trace.packets {
            if let Some(interned) = &packet.interned {
                // Whoever writes has numbers of its own.
                names.extend(
                    interned
                        .argument_names
                        .iter()
                        .map(|name| ((packet.sequence, name.number), name.name.clone())),
                );
            }
            if let Some(track) = &packet.track {
                let name = track
                    .thread
                    .as_ref()
                    .map(|thread| thread.name.clone())
                    .or(track.name.clone())
                    .unwrap_or_default();
                decoded.tracks.insert(track.id, name);
                assert!(
                    track.parent.is_none_or(|parent| decoded.tracks.contains_key(&parent)),
                    "a child before its parent"
                );
            }
            decoded.scheduling(&packet);
            if let Some(event) = packet.event {
                events.push((packet.timestamp.unwrap(), packet.sequence, event));
            }
        }
        for switches in decoded.switches.values_mut() {
            switches.sort_by_key(|(at, _)| *at);
        }
        decoded.wakes.sort_unstable();
        events.sort_by_key(|(at, ..)| *at);
        let mut open: BTreeMap<u64, Slice> = BTreeMap::new();
        for (at, sequence, event) in events {
            assert!(decoded.tracks.contains_key(&event.track), "an event on no track");
            for flow in &event.flows {
                decoded.flows.entry(*flow).or_default().0 = Some(event.track);
            }
            for flow in &event.ending_flows {
                decoded.flows.entry(*flow).or_default().1 = Some(event.track);
            }
            let numbers = event
                .arguments
                .iter()
                .filter_map(|argument| Some((names[&(sequence, argument.name)].clone(), argument.number?)))
                .collect();
            let slice = Slice {
                track: event.track,
                name: event.name.unwrap_or_default(),
                begin: at,
                end: at,
                numbers,
            };
            match event.kind {
                kind::INSTANT => decoded.instants.push(slice),
                kind::SLICE_BEGIN => {
                    assert!(open.insert(event.track, slice).is_none(), "two slices of a track overlap")
                }
                kind::SLICE_END => {
                    let slice = open.remove(&event.track).expect("an end without a begin");
                    decoded.slices.push(Slice { end: at, ..slice });
                }
                other => panic!("an event of kind {other}"),
            }
        }
        assert!(open.is_empty(), "a slice without an end");
        decoded
    }

    fn scheduling(&mut self, packet: &Packet) {
        if let Some(bundle) = &packet.ftrace {
            for event in &bundle.events {
                if let Some(switch) = &event.switch {
                    self.switches.entry(bundle.cpu).or_default().push((event.timestamp, switch.clone()));
                }
                if let Some(waking) = &event.waking {
                    self.wakes.push((event.timestamp, event.tid, waking.tid as u32));
                }
            }
        }
    }

    /// Stretches that threads ran; panics where a processor's switches do not follow from each other.
    pub fn runs(&self) -> Vec<super::machine::Run> {
        let mut runs = Vec::new();
        for (&cpu, switches) in &self.switches {
            let (mut tid, mut from) = (0, 0);
            for (at, switch) in switches {
                assert_eq!(
                    switch.prev_tid as u32, tid,
                    "a switch on processor {cpu} at {at} does not follow from the one before"
                );
                if tid != 0 {
                    runs.push(super::machine::Run { from, until: Some(*at), cpu, tid });
                }
                (tid, from) = (switch.next_tid as u32, *at);
            }
            if tid != 0 {
                runs.push(super::machine::Run { from, until: None, cpu, tid });
            }
        }
        runs.sort_unstable();
        runs
    }
}
