//! Traces of ROS 2 (ros2_tracing, CARET) as traces of dataflow programs. Callbacks are tasks, topics
//! channels, a publication a push; each activation is told which push it takes. docs/design/ros2.md has the
//! mapping.

mod calls;
mod follow;
mod graph;
mod messages;
mod open;
mod output;
mod program;
mod survey;
mod table;

use super::account::{self, missing};
use super::error::Error;
use super::lttng::has_kernel;
use super::notes::Notes;
use crate::ctf18::{Extent, Item, Lost, Reader, Totals};
use calls::Kinds;
use follow::{Follow, Out, Producer, Step};
use graph::Graph;
use punctual_model::Instant;
use punctual_trace::account::{Account, Lack, Use};
use punctual_trace::damage::Damage;
use std::path::{Path, PathBuf};
use survey::Survey;

pub use output::Written;

/// Publications without time stamps.
const NO_STAMPS: Lack = Lack::events(
    Use::Messages,
    "time stamps of publications",
    "a message is assumed to be the last one published on its topic before its own stamp, and no chain \
     through it is end-to-end; ros2_tracing of Jazzy, Cyclone DDS (dds:write) and CARET have stamps",
);
const NO_EXECUTORS: Lack = Lack::events(
    Use::Callbacks,
    "ros2:rclcpp_executor_*",
    "responses of services are not followed: nothing shows which callback took one",
);
const NO_KERNEL: Lack = Lack::events(
    Use::ExecutionTimes,
    "sched_switch and sched_waking of the kernel",
    "whether a callback ran or waited is not known",
);
const NO_VARIABLES: Lack = Lack::fact(
    Use::Messages,
    "data that pass within a node",
    "chains through nodes with several callbacks rest on what --variable declares",
);

/// Records all that is read.
const COMMAND: &str = "ros2 trace -k sched_switch sched_waking -u 'ros2*' 'dds:*'";

/// From which callback to which data goes within a node, without a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Variables {
    /// From callbacks that publish nothing to those of the same node that publish.
    #[default]
    Assumed,
    /// These, by names of tasks: writer and reader.
    Declared(Vec<(String, String)>),
}

/// Takes what happened: with the item that showed it, when, who, what.
type Each<'a> = &'a mut dyn FnMut(&Item<'_>, Instant, Producer, Step) -> Result<(), Error>;

/// A trace of ROS 2.
pub struct Trace {
    path: PathBuf,
    reader: Reader,
    kinds: Kinds,
}

/// What came of following a trace.
struct Passed {
    totals: Totals,
    follow: Follow,
    /// How many events there were of each class.
    counts: Vec<u64>,
}

/// Whether a trace has events of ROS 2.
pub fn is_ros(reader: &Reader) -> bool {
    reader.classes().iter().any(calls::is_ros)
}

impl Trace {
    /// Takes an opened trace.
    pub fn new(path: &Path, reader: Reader) -> Result<Trace, Error> {
        let kinds = Kinds::new(&reader).map_err(|why| Error::malformed(path, why))?;
        for needed in ["callback_start", "callback_end"] {
            if !kinds.has(needed) {
                let why = format!("it has no events ros2:{needed}, without which there are no callbacks");
                return Err(Error::malformed(path, why));
            }
        }
        Ok(Trace { path: path.to_owned(), reader, kinds })
    }

    /// Bytes to read, in two passes.
    pub fn bytes(&self) -> u64 {
        2 * self.reader.bytes()
    }

    /// What the trace lacks, without writing anything.
    pub fn lacks(&self) -> Result<Vec<String>, Error> {
        let passed = self.pass(&mut Graph::default(), &mut |_, _, _, _| Ok(()), &mut |_| {})?;
        let mut notes = Notes::default();
        self.say(&mut notes, &passed);
        Ok(notes.into_list())
    }

    /// Writes the dataflow trace into a folder that is new or empty. `progress` gets the bytes read.
    pub fn write(
        &self,
        folder: &Path,
        variables: &Variables,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Written, Error> {
        let mut graph = Graph::default();
        let mut survey = Survey::default();
        let passed = self.pass(
            &mut graph,
            &mut |item, _, producer, step| {
                survey.step(producer, step);
                if let Item::Event(event) = item {
                    survey.thread(producer.0, || self.kinds.procname(event));
                }
                Ok(())
            },
            progress,
        )?;
        let mut notes = Notes::default();
        self.say(&mut notes, &passed);
        let half = self.reader.bytes();
        graph.rewind();
        let mut output = output::Output::create(
            folder,
            &self.path,
            self,
            (&graph, survey, &passed.follow),
            variables,
            passed.totals.discarded,
            &mut notes,
        )?;
        self.pass(&mut graph, &mut |_, at, producer, step| output.step(at, producer, step), &mut |bytes| {
            progress(half + bytes);
        })?;
        Ok(Written { account: self.account(&passed.counts), ..output.finish(notes)? })
    }

    /// Follows the trace from its beginning to its end.
    fn pass(&self, graph: &mut Graph, each: Each, progress: &mut dyn FnMut(u64)) -> Result<Passed, Error> {
        let zero = i64::try_from(self.reader.clock().1).unwrap_or(0);
        let mut follow =
            if self.kinds.has_stamps() { Follow::default() } else { Follow::without_stamps(zero) };
        let mut failed = None;
        self.lose_beginning(&mut follow, &mut |at, producer, step| {
            let lost = Lost { at, until: at, trace: 0, events: 0, packets: 1 };
            if failed.is_none() {
                failed = each(&Item::Lost(lost), at, producer, step).err();
            }
        })?;
        let mut counts = vec![0_u64; self.reader.classes().len()];
        // Of the kernel's trace.
        let (mut events, mut packets) = (0_u64, 0_u64);
        let mut totals = self.reader.read(
            &mut |item| {
                let out: Out = &mut |at, producer, step| {
                    if failed.is_none() {
                        failed = each(item, at, producer, step).err();
                    }
                };
                let has_room = match item {
                    Item::Event(event) => {
                        counts[event.class] += 1;
                        self.kinds.call(event, &self.reader).is_none_or(|(thread, call)| {
                            graph.declare(thread, &call) && follow.call(event.at, thread, &call, graph, out)
                        })
                    }
                    // The kernel's losses do not matter to callbacks.
                    Item::Lost(lost) if self.is_kernel(lost.trace) => {
                        events = events.saturating_add(lost.events);
                        packets = packets.saturating_add(lost.packets);
                        true
                    }
                    Item::Lost(lost) => {
                        follow.lose(lost.at, lost.until, (lost.events, lost.packets), out);
                        true
                    }
                };
                if !has_room && failed.is_none() {
                    let why = "it has more nodes, topics, callbacks or threads than one system can have";
                    failed = Some(Error::malformed(&self.path, why));
                }
                failed.is_none()
            },
            progress,
        )?;
        follow.finish();
        totals.discarded = totals.discarded.saturating_sub(events);
        totals.packets = totals.packets.saturating_sub(packets);
        match failed {
            Some(error) => Err(error),
            None => Ok(Passed { totals, follow, counts }),
        }
    }

    /// What was in the traces of the program.
    fn account(&self, counts: &[u64]) -> Account {
        let classes = self.reader.classes().iter().zip(counts).enumerate();
        let of_program = classes.filter(|(_, (class, _))| !self.is_kernel(class.trace));
        let kinds =
            of_program.map(|(place, (class, count))| (&*class.name, *count, self.kinds.used_for(place)));
        let lacks = [
            (self.kinds.has_stamps(), NO_STAMPS),
            (self.kinds.has("rclcpp_executor_get_next_ready"), NO_EXECUTORS),
            (has_kernel(&self.reader), NO_KERNEL),
            (false, NO_VARIABLES),
        ];
        account::of(kinds, missing(lacks), COMMAND)
    }

    fn is_kernel(&self, trace: usize) -> bool {
        self.reader.env(trace, "domain") == Some("kernel")
    }

    /// Streams whose first packets are not there: written over by a flight recorder, or not copied.
    fn beheaded(&self) -> Result<Vec<Extent>, Error> {
        let mut extents = self.reader.extents()?;
        extents.retain(|extent| extent.is_cut && !self.is_kernel(extent.trace));
        Ok(extents)
    }

    /// Up to where the last of them begins, events may be missing.
    fn lose_beginning(&self, follow: &mut Follow, out: Out) -> Result<(), Error> {
        let begin = self.beheaded()?.iter().filter_map(|extent| extent.begin).max();
        if let Some(begin) = begin {
            follow.lose(Instant::from_ns(0), begin, (0, 1), out);
        }
        Ok(())
    }

    /// What was lost, and what could not be followed.
    fn say(&self, notes: &mut Notes, Passed { totals, follow, .. }: &Passed) {
        for damage in &totals.damages {
            notes.say(damage.to_string());
        }
        let count = |notes: &mut Notes, count: u64, what: &str| {
            if count > 0 {
                notes.say(format!("{count} × {what}"));
            }
        };
        for extent in self.beheaded().unwrap_or_default() {
            let what = "its first packets are missing (written over, or not copied); data up to where it \
                        begins is not followed";
            notes.say(Damage::new(&extent.name, 0, what).to_string());
        }
        totals.say_copies(|note| notes.say(note));
        let unknown = &follow.unknown;
        let follow::Unknown { publishers, subscriptions, callbacks, messages, .. } = *unknown;
        // Where events are missing, so may be these.
        let made = match follow.open.has_losses {
            true => "whose making is not among the events that are there",
            false => "that were made before the trace began",
        };
        count(notes, totals.discarded, "events that the tracer discarded; data around them is not followed");
        count(notes, totals.packets, "packets that are missing or damaged; data around them is not followed");
        count(notes, publishers, &format!("publications by publishers {made}: left out"));
        count(notes, subscriptions, &format!("messages taken by subscriptions {made}: left out"));
        count(notes, callbacks, &format!("callbacks called {made}: named by address"));
        count(notes, messages, "messages taken whose publication is not in the trace: not followed");
        count(
            notes,
            unknown.without_message,
            "callbacks of subscriptions or services called without a message",
        );
        count(notes, unknown.without_callback, "messages taken for which no callback was called");
        count(notes, unknown.ends, "ends or starts of callbacks without the other");
        count(
            notes,
            unknown.responses,
            "responses taken within a callback, or by a thread of which no executor tells: not followed",
        );
    }
}
