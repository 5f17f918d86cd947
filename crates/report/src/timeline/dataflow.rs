//! Dataflow programs: the raster of states of tasks and channels ("Tasking graph"; Jungmann et al., ERTS
//! 2024, Figure 4), and who executed what.
//!
//! A task's row shows its instances, queued and executing; a channel's the pushes; a producer's what it
//! executed. An arrow leads from a push to the activation that it made. A chain's rows show the way of each
//! datum from its source's activation to its sink's end.

use super::Error;
use super::packets::{Argument, Flow, Packets};
use super::passages::Passages;
use super::proto::{BY_RANK, Track};
use crate::jobs::Passage;
use punctual_model::{Instant, Platform};
use punctual_trace::About as OfThreads;
use punctual_trace::flow::{About, Event, Item, Kind};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;

/// Instances of a task that wait at the same time, as far as they are kept; of more, the first are left out.
const MOST_WAITING: usize = 1024;

/// Ways of data of one chain that are shown at the same time.
pub const MOST_PASSAGES: usize = super::passages::MOST_ROWS;

/// What such a timeline shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Executions, from start to stop.
    pub executions: u64,
    /// Pushes.
    pub pushes: u64,
    /// Ways of data from source to sink.
    pub passages: u64,
    /// Starts, stops and activations whose counterpart is not in the trace.
    pub left_out: u64,
    /// Ways of data for which there was no row.
    pub passages_left_out: u64,
}

/// Writes a timeline, event by event.
pub struct Dataflow<W: Write> {
    packets: Packets<W>,
    about: About,
    groups: [u64; 4],
    tasks: BTreeMap<u16, Task>,
    channels: BTreeMap<u16, u64>,
    producers: BTreeMap<u32, Producer>,
    passages: Passages,
    counts: Counts,
}

struct Task {
    /// Rows of one name; instances that wait while another one does get one more.
    rows: Vec<Row>,
    waiting: VecDeque<(u64, Instant)>,
}

struct Row {
    track: u64,
    free: Instant,
}

struct Producer {
    track: u64,
    running: Option<Event>,
    /// The push that it makes now.
    push: Option<Event>,
}

impl<W: Write> Dataflow<W> {
    /// An empty timeline of the trace that `about` tells of, which begins at `from`.
    pub fn new(out: W, about: &About, from: Instant) -> Result<Self, Error> {
        let clock = OfThreads {
            platform: Platform { kernel: String::new(), machine: String::new(), cpus: 0 },
            host: String::new(),
            source: String::new(),
            clock: about.clock.clone(),
            clock_zero: about.clock_zero.and_then(|zero| i64::try_from(zero).ok()),
            from,
            switches: false,
            latency: false,
        };
        Dataflow::begin(Packets::new(out, &clock)?, about, from)
    }

    /// The same behind a timeline of threads that `out` has taken, on the same clock: one timeline of both.
    pub fn behind_threads(out: W, about: &About, from: Instant) -> Result<Self, Error> {
        Dataflow::begin(Packets::behind(out, &about.clock)?, about, from)
    }

    fn begin(mut packets: Packets<W>, about: &About, from: Instant) -> Result<Self, Error> {
        let mut groups = [0; 4];
        let names = [("Tasks", 0), ("Channels", 1), ("Executors", 2), ("Chains", 3)];
        for (group, (name, rank)) in groups.iter_mut().zip(names) {
            *group = packets.new_track();
            let track = Track {
                id: *group,
                name: Some(name.into()),
                child_ordering: Some(BY_RANK),
                rank: Some(rank),
                ..Track::default()
            };
            packets.track(from, track)?;
        }
        let (tasks, channels, producers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self {
            packets,
            about: about.clone(),
            groups,
            tasks,
            channels,
            producers,
            passages: Passages::new(groups[3]),
            counts: Counts::default(),
        })
    }

    /// Takes what comes next.
    pub fn item(&mut self, item: &Item) -> Result<(), Error> {
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap(gap) => {
                let producer = self.producer(gap.producer, gap.from)?;
                (producer.running, producer.push) = (None, None);
                Ok(())
            }
            Item::Count(_) | Item::Take(_) => Ok(()),
        }
    }

    /// Takes the way of a datum, or of the newest one that a sink read. They come in the order of their ends.
    pub fn passage(&mut self, passage: &Passage<'_>) -> Result<(), Error> {
        if self.passages.show(passage, &mut self.packets)? {
            self.counts.passages += 1;
        } else {
            self.counts.passages_left_out += 1;
        }
        Ok(())
    }

    /// Ends it. What still waits or runs is left out.
    pub fn finish(self) -> Result<(W, Counts), Error> {
        let mut counts = self.counts;
        counts.left_out += self.tasks.values().map(|task| task.waiting.len() as u64).sum::<u64>();
        counts.left_out +=
            self.producers.values().filter(|producer| producer.running.is_some()).count() as u64;
        Ok((self.packets.finish()?, counts))
    }

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        match event.kind {
            Kind::Push => {
                let track = self.channel(event.object, event.at)?;
                self.producer(event.producer, event.at)?.push = Some(*event);
                self.counts.pushes += 1;
                let number = vec![Argument::number("push", event.number)];
                self.packets.instant(track, "push", "push".into(), event.at, number, None)
            }
            Kind::Activation => self.activation(event),
            Kind::Start => self.start(event),
            Kind::Stop => self.stop(event),
        }
    }

    fn activation(&mut self, event: &Event) -> Result<(), Error> {
        let push = self.producer(event.producer, event.at)?.push;
        let task = self.task(event.object, event.at)?;
        task.waiting.push_back((event.number, event.at));
        let too_many = task.waiting.len() > MOST_WAITING && task.waiting.pop_front().is_some();
        self.counts.left_out += u64::from(too_many);
        let Some(push) = push else { return Ok(()) };
        let (from, to) = (self.channel(push.object, push.at)?, self.row(event.object, event.at)?);
        let flow = self.packets.new_flow();
        let name = || Vec::new();
        self.packets.instant(
            from,
            "activates",
            self.about.task(event.object),
            push.at,
            name(),
            Some(Flow::From(flow)),
        )?;
        self.packets.instant(
            to,
            "activated",
            self.about.channel(push.object),
            event.at,
            name(),
            Some(Flow::To(flow)),
        )
    }

    fn start(&mut self, event: &Event) -> Result<(), Error> {
        let task = self.task(event.object, event.at)?;
        // Instances of a task start in the order of their activations; those before have lost their start.
        let place = task.waiting.iter().position(|(number, _)| *number == event.number);
        let activated = place.and_then(|place| {
            task.waiting.drain(..place);
            task.waiting.pop_front()
        });
        self.counts.left_out += place.unwrap_or_default() as u64;
        match activated {
            Some((_, at)) => self.show(event.object, "queued", (at, event.at), event)?,
            None => self.counts.left_out += 1,
        }
        let producer = self.producer(event.producer, event.at)?;
        producer.push = None;
        let unended = producer.running.replace(*event).is_some();
        self.counts.left_out += u64::from(unended);
        Ok(())
    }

    fn stop(&mut self, event: &Event) -> Result<(), Error> {
        let producer = self.producer(event.producer, event.at)?;
        producer.push = None;
        let track = producer.track;
        let begun = producer
            .running
            .take()
            .filter(|begun| (begun.object, begun.number) == (event.object, event.number));
        let Some(begun) = begun else {
            self.counts.left_out += 1;
            return Ok(());
        };
        self.counts.executions += 1;
        self.show(event.object, "executes", (begun.at, event.at), event)?;
        let instance = vec![Argument::number("instance", event.number)];
        self.packets.slice(track, "execution", self.about.task(event.object), (begun.at, event.at), instance)
    }

    /// A state of an instance, in the first row where there is room.
    fn show(
        &mut self,
        object: u16,
        state: &'static str,
        (begin, end): (Instant, Instant),
        event: &Event,
    ) -> Result<(), Error> {
        let name = self.about.task(object);
        let group = self.groups[0];
        let task = self.tasks.get_mut(&object).expect("its event made it");
        let row = match task.rows.iter().position(|row| row.free <= begin) {
            Some(row) => row,
            None => {
                let track = self.packets.new_track();
                let shown = Track {
                    id: track,
                    parent: Some(group),
                    name: Some(name),
                    rank: Some(object.into()),
                    ..Track::default()
                };
                self.packets.track(begin, shown)?;
                task.rows.push(Row { track, free: begin });
                task.rows.len() - 1
            }
        };
        task.rows[row].free = end;
        let track = task.rows[row].track;
        let instance = vec![
            Argument::number("instance", event.number),
            Argument::number("producer", event.producer.into()),
        ];
        self.packets.slice(track, state, state.into(), (begin, end), instance)
    }

    fn task(&mut self, object: u16, at: Instant) -> Result<&mut Task, Error> {
        if !self.tasks.contains_key(&object) {
            let track = self.packets.new_track();
            let name = Some(self.about.task(object));
            self.packets.track(
                at,
                Track {
                    id: track,
                    parent: Some(self.groups[0]),
                    name,
                    rank: Some(object.into()),
                    ..Track::default()
                },
            )?;
            self.tasks.insert(
                object,
                Task { rows: vec![Row { track, free: Instant::from_ns(0) }], waiting: VecDeque::new() },
            );
        }
        Ok(self.tasks.get_mut(&object).expect("it was made above"))
    }

    fn row(&mut self, object: u16, at: Instant) -> Result<u64, Error> {
        Ok(self.task(object, at)?.rows[0].track)
    }

    fn channel(&mut self, object: u16, at: Instant) -> Result<u64, Error> {
        if let Some(&track) = self.channels.get(&object) {
            return Ok(track);
        }
        let track = self.packets.new_track();
        let name = Some(self.about.channel(object));
        self.packets.track(
            at,
            Track {
                id: track,
                parent: Some(self.groups[1]),
                name,
                rank: Some(object.into()),
                ..Track::default()
            },
        )?;
        self.channels.insert(object, track);
        Ok(track)
    }

    fn producer(&mut self, number: u32, at: Instant) -> Result<&mut Producer, Error> {
        if !self.producers.contains_key(&number) {
            let track = self.packets.new_track();
            let name =
                self.about.producers.get(&number).cloned().unwrap_or_else(|| format!("producer {number}"));
            let rank = i32::try_from(number).unwrap_or(i32::MAX);
            self.packets.track(
                at,
                Track {
                    id: track,
                    parent: Some(self.groups[2]),
                    name: Some(name),
                    rank: Some(rank),
                    ..Track::default()
                },
            )?;
            self.producers.insert(number, Producer { track, running: None, push: None });
        }
        Ok(self.producers.get_mut(&number).expect("it was made above"))
    }
}
