//! The states of tasks in a stretch of a trace ("Tasking graph"; Jungmann et al., ERTS 2024, Figure 4):
//! collected event by event, then drawn.

use super::chains::name;
use crate::flow::since;
use crate::html::scale::{Scale, percent};
use crate::number::{about, agreeing, counted};
use crate::visible;
use maud::{Markup, html};
use punctual_model::dataflow::{Chain, Dataflow, WorstPath};
use punctual_model::{Duration, Instant};
use punctual_trace::flow::{About, Event, Gap, Item, Kind};
use std::collections::BTreeMap;

/// Events of a stretch: what is beyond is not drawn, so that the page stays small whatever the trace.
const MOST_EVENTS: u64 = 1_500;
/// Instances of a task that have not ended, as far as they are kept; of more, the first are left out.
const MOST_LIVE: usize = 1_024;
/// Rows that are drawn.
const MOST_ROWS: usize = 120;

/// What happened in a stretch of a trace. Memory does not grow with the trace.
#[derive(Clone, Debug)]
pub struct States {
    about: About,
    from: Instant,
    until: Instant,
    /// The chain whose worst case is in it.
    worst: Option<(String, WorstPath)>,
    events: u64,
    /// The last event in the stretch.
    last: Instant,
    /// Whether there was more in the stretch than is drawn.
    is_cut: bool,
    is_over: bool,
    tasks: BTreeMap<u16, Task>,
    channels: BTreeMap<u16, Vec<Instant>>,
    gaps: u64,
}

#[derive(Clone, Debug, Default)]
struct Task {
    live: BTreeMap<u64, Live>,
    spans: Vec<Span>,
}

/// An instance that has not ended.
#[derive(Clone, Copy, Debug)]
struct Live {
    is_started: bool,
    /// When its state began.
    since: Instant,
    producer: u32,
}

/// A state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    is_executing: bool,
    from: Instant,
    /// Nothing where it goes on beyond the stretch.
    until: Option<Instant>,
    instance: u64,
    producer: u32,
}

impl States {
    /// For a trace of this program: around the worst reaction of all its chains, or from the beginning where
    /// there is none.
    pub fn new(flow: &Dataflow, about: &About, begin: Instant) -> States {
        let reactions = flow.chains.iter().filter_map(|chain| Some((chain, chain.reaction.as_ref()?)));
        // The first of several.
        let worst = reactions.reduce(|worst, other| {
            if other.1.distribution.max_ns > worst.1.distribution.max_ns { other } else { worst }
        });
        let worst: Option<(&Chain, &WorstPath)> = worst.map(|(chain, latency)| (chain, &latency.worst));
        let (from, until) = match worst {
            Some((_, worst)) => {
                let margin = worst.total().ns() / 10;
                let from = Instant::from_ns(worst.from_ns.ns().saturating_sub(margin)).max(begin);
                (from, Instant::from_ns(worst.until_ns.ns().saturating_add(margin)))
            }
            None => (begin, Instant::from_ns(u64::MAX)),
        };
        States {
            about: about.clone(),
            from,
            until,
            worst: worst.map(|(chain, worst)| (name(chain), worst.clone())),
            events: 0,
            last: from,
            is_cut: false,
            is_over: false,
            tasks: BTreeMap::new(),
            channels: BTreeMap::new(),
            gaps: 0,
        }
    }

    /// Takes the next of the trace.
    pub fn item(&mut self, item: &Item) {
        if self.is_over {
            return;
        }
        match item {
            Item::Event(event) => self.event(event),
            Item::Gap(gap) => self.gap(gap),
            Item::Count(_) | Item::Take(_) => {}
        }
    }

    /// Events in the stretch so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn event(&mut self, event: &Event) {
        if event.at > self.until {
            self.is_over = true;
            return;
        }
        if event.at >= self.from {
            if self.events == MOST_EVENTS {
                (self.is_cut, self.is_over) = (true, true);
                return;
            }
            self.events += 1;
            self.last = event.at;
        }
        match event.kind {
            Kind::Push => {
                if event.at >= self.from {
                    self.channels.entry(event.object).or_default().push(event.at);
                }
            }
            Kind::Activation => {
                let live = &mut self.tasks.entry(event.object).or_default().live;
                live.insert(
                    event.number,
                    Live { is_started: false, since: event.at, producer: event.producer },
                );
                if live.len() > MOST_LIVE {
                    live.pop_first();
                }
            }
            Kind::Start => {
                let task = self.tasks.entry(event.object).or_default();
                if let Some(queued) = task.live.remove(&event.number).filter(|queued| !queued.is_started) {
                    task.show(self.from, event.number, &queued, Some(event.at));
                }
                // Instances of a task start in the order of their activations; those before have lost their
                // start.
                task.live.retain(|number, live| live.is_started || *number > event.number);
                task.live.insert(
                    event.number,
                    Live { is_started: true, since: event.at, producer: event.producer },
                );
            }
            Kind::Stop => {
                let task = self.tasks.entry(event.object).or_default();
                if let Some(executing) =
                    task.live.remove(&event.number).filter(|executing| executing.is_started)
                {
                    task.show(self.from, event.number, &executing, Some(event.at));
                }
            }
        }
    }

    /// What its producer was executing may have ended meanwhile.
    fn gap(&mut self, gap: &Gap) {
        if gap.until >= self.from && gap.from <= self.until {
            self.gaps += 1;
        }
        for task in self.tasks.values_mut() {
            task.live.retain(|_, live| !(live.is_started && live.producer == gap.producer));
        }
    }

    /// Until when it is drawn.
    fn end(&self) -> Instant {
        // Nothing may be behind the last event of a trace, or of what is drawn of it.
        if self.is_cut || self.until.ns() == u64::MAX { self.last } else { self.until }
    }

    /// The spans of a task, those that go on beyond the stretch too.
    fn spans(&self, task: &Task) -> Vec<Span> {
        let mut task = task.clone();
        for (number, live) in std::mem::take(&mut task.live) {
            task.show(self.from, number, &live, None);
        }
        task.spans
    }
}

impl Task {
    fn show(&mut self, from: Instant, instance: u64, live: &Live, until: Option<Instant>) {
        if until.is_none_or(|until| until >= from) {
            self.spans.push(Span {
                is_executing: live.is_started,
                from: live.since,
                until,
                instance,
                producer: live.producer,
            });
        }
    }
}

/// The figure.
pub(super) fn figure(states: &States, begin: Instant) -> Markup {
    let scale = Scale::linear(states.end().since(states.from));
    let rows = states.tasks.len() + states.channels.len();
    let tasks: Vec<(&u16, Vec<Span>)> = states
        .tasks
        .iter()
        .map(|(number, task)| (number, states.spans(task)))
        .filter(|(_, spans)| !spans.is_empty())
        .take(MOST_ROWS)
        .collect();
    let channels = states.channels.iter().take(MOST_ROWS.saturating_sub(tasks.len()));
    html! {
        figure.wide {
            h4 { "States of tasks, pushes on channels" }
            p.key {
                svg.sample width="32" height="14" aria-hidden="true" {
                    rect.state.queued x="2" y="4" width="28" height="6" {}
                }
                "Queued. "
                svg.sample width="32" height="14" aria-hidden="true" {
                    rect.state.executing x="2" y="1" width="28" height="12" {}
                }
                "Executing. "
                svg.sample width="32" height="14" aria-hidden="true" {
                    line.push x1="16" x2="16" y1="1" y2="13" {}
                }
                "Push. "
                @if states.worst.is_some() {
                    svg.sample width="32" height="14" aria-hidden="true" {
                        rect.state.executing.of-worst x="2" y="1" width="28" height="12" {}
                    }
                    "On the path of the slowest datum. "
                }
            }
            ol.raster {
                li { span { "since " (since(begin, states.from)) } (scale.axis()) }
                @for (number, spans) in tasks {
                    @let task = states.about.task(*number);
                    li {
                        span title=(visible(&task)) { bdi { (visible(&task)) } }
                        svg.states height="20" aria-hidden="true" {
                            (scale.grid())
                            @for span in spans { (state(states, &task, &span, &scale)) }
                        }
                    }
                }
                @for (number, pushes) in channels {
                    @let channel = visible(&states.about.channel(*number));
                    li {
                        span.channel title=(channel) { bdi { (channel) } }
                        svg.states height="20" aria-hidden="true" {
                            (scale.grid())
                            @for push in pushes {
                                @let at = percent(scale.percent(push.since(states.from)));
                                line.push x1=(at) x2=(at) y1="3" y2="17" {}
                            }
                        }
                    }
                }
            }
            figcaption { (caption(states, begin)) @if rows > MOST_ROWS { " The first " (MOST_ROWS) " rows \
             of " (rows) " are drawn." } }
        }
    }
}

fn caption(states: &States, begin: Instant) -> String {
    let (from, end) = (states.from, states.end());
    let length = about(end.since(from));
    let mut text = format!(
        "{length} of the trace from {} on, {}: ",
        since(begin, from),
        counted(states.events, "event")
    );
    text += &match &states.worst {
        Some((chain, worst)) => {
            format!("around the worst reaction time of {chain}, which took {}.", worst.total())
        }
        None => "its beginning.".to_owned(),
    };
    text += " Point at a state for its task and length. punctual timeline TRACE draws the whole trace.";
    if states.is_cut {
        text +=
            &format!(" This stretch has more than {}; the rest is not drawn.", counted(MOST_EVENTS, "event"));
    }
    if states.gaps > 0 {
        let gaps = agreeing(states.gaps, "a gap", "gaps");
        text += &format!(" Events are missing in it ({gaps}): executions there may be absent or too long.");
    }
    text
}

fn state(states: &States, task: &str, span: &Span, scale: &Scale) -> Markup {
    let end = span.until.unwrap_or(states.end());
    let (left, right) = (scale.percent(span.from.since(states.from)), scale.percent(end.since(states.from)));
    let is_of_worst = states.worst.as_ref().is_some_and(|(_, worst)| {
        worst.path.iter().any(|step| step.task == task && step.instance == span.instance)
    });
    let class = format!(
        "state {}{}",
        if span.is_executing { "executing" } else { "queued" },
        if is_of_worst { " of-worst" } else { "" }
    );
    let (top, height) = if span.is_executing { (3, 14) } else { (7, 6) };
    let length: Duration = end.since(span.from);
    let who = states
        .about
        .producers
        .get(&span.producer)
        .cloned()
        .unwrap_or_else(|| format!("producer {}", span.producer));
    let title = match (span.is_executing, span.until) {
        (true, Some(_)) => format!("#{}: executing for {length} by {}", span.instance, visible(&who)),
        (true, None) => format!("#{}: executing by {}, beyond what is drawn", span.instance, visible(&who)),
        (false, Some(_)) => format!("#{}: queued for {length}", span.instance),
        (false, None) => format!("#{}: queued beyond what is drawn", span.instance),
    };
    let width = percent((right - left).max(0.08));
    html! {
        rect class=(class) x=(percent(left)) y=(top) width=(width) height=(height) { title { (title) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, kind: Kind, object: u16, number: u64) -> Item {
        Item::Event(Event { at: Instant::from_ns(at), producer: 1, kind, object, number })
    }

    fn states(items: impl IntoIterator<Item = Item>) -> States {
        let mut states = States::new(&Dataflow::default(), &About::default(), Instant::from_ns(100));
        items.into_iter().for_each(|item| states.item(&item));
        states
    }

    #[test]
    fn instances_are_queued_and_then_execute() {
        use Kind::*;
        let states = states([
            event(50, Activation, 3, 0),
            event(110, Push, 9, 0),
            event(120, Start, 3, 0),
            event(130, Activation, 3, 1),
            event(150, Stop, 3, 0),
            event(160, Push, 9, 1),
        ]);
        let spans = states.spans(&states.tasks[&3]);
        let found: Vec<(bool, u64, Option<u64>, u64)> = spans
            .iter()
            .map(|span| (span.is_executing, span.from.ns(), span.until.map(Instant::ns), span.instance))
            .collect();
        assert_eq!(found, [(false, 50, Some(120), 0), (true, 120, Some(150), 0), (false, 130, None, 1)]);
        assert_eq!((states.events(), states.channels[&9].len(), states.end().ns()), (5, 2, 160));
        let page = figure(&states, Instant::from_ns(0)).into_string();
        assert_eq!(
            (page.matches("\"state executing\"").count(), page.matches("class=\"push\"").count()),
            (1 + 1, 2 + 1),
            "with those of the key"
        );
        assert!(
            page.contains("#0: executing for 30 ns by producer 1")
                && page.contains("#1: queued beyond what is drawn"),
            "{page}"
        );
    }

    #[test]
    fn a_long_stretch_is_cut_with_a_note() {
        let states = states((0..10 * MOST_EVENTS).map(|number| event(100 + number, Kind::Push, 1, number)));
        assert_eq!((states.events(), states.is_cut), (MOST_EVENTS, true));
        assert!(figure(&states, Instant::from_ns(0)).into_string().contains("the rest is not drawn"));
    }

    #[test]
    fn instances_that_never_end_do_not_pile_up() {
        let states = states((0..100_000).map(|number| event(number % 100, Kind::Activation, 1, number)));
        assert_eq!(states.tasks[&1].live.len(), MOST_LIVE);
    }

    #[test]
    fn a_state_does_not_extend_across_a_gap() {
        let gap = Gap {
            producer: 1,
            from: Instant::from_ns(130),
            until: Instant::from_ns(140),
            discarded: 3,
            packets: 0,
        };
        let states = states([event(120, Kind::Start, 3, 0), Item::Gap(gap), event(150, Kind::Push, 1, 0)]);
        assert!(states.spans(&states.tasks[&3]).is_empty());
        assert!(caption(&states, Instant::from_ns(0)).contains("Events are missing"));
    }
}
