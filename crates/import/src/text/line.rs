//! A line of such a text: who, on which processor, when, which event.

use punctual_model::Instant;

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Event(Event<'a>),
    /// The tracer had no room for this many events, on this processor if the line names one.
    Lost {
        cpu: Option<u32>,
        events: u64,
    },
    /// An event with a number that is too large.
    Unreadable,
}

/// A number that is too large for what it says.
struct TooLarge;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The thread that ran there, and its process where the line has it; 0 if not.
    pub tid: i32,
    pub pid: i32,
    pub cpu: u32,
    /// Whether it came from an interrupt, if the line has flags.
    pub is_in_interrupt: Option<bool>,
    pub at: Instant,
    /// The event's name, without its subsystem.
    pub name: &'a str,
    pub fields: &'a str,
    pub style: Style,
    /// The buffer that has it, if the line names one; trace-cmd does if there are several.
    pub buffer: &'a str,
}

/// The tool that printed the text, known by how it names threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `name-tid`: ftrace, trace-cmd, systrace.
    Ftrace,
    /// `name tid` or `name pid/tid`: perf.
    Perf,
}

impl Style {
    pub fn tool(self) -> &'static str {
        match self {
            Style::Ftrace => "ftrace (text)",
            Style::Perf => "perf script",
        }
    }

    /// The command that records all that is read; its file need not be printed.
    pub fn command(self) -> &'static str {
        match self {
            Style::Ftrace => "trace-cmd record -C mono -e sched -e task -e raw_syscalls PROGRAM",
            Style::Perf => "perf record -a -k CLOCK_MONOTONIC -e 'sched:*,raw_syscalls:*' -- PROGRAM",
        }
    }

    pub fn clock(self) -> &'static str {
        match self {
            Style::Ftrace => "ftrace local",
            Style::Perf => "perf",
        }
    }
}

/// Whether it is the header of a text: of ftrace, trace-cmd report or perf script.
pub fn is_header(text: &str) -> bool {
    let cpus = text.strip_prefix("cpus=").is_some_and(is_number);
    cpus || text.starts_with("# tracer: ") || text.starts_with("# captured on")
}

/// Whether the kernel had overwritten events, by the header that counts those written and those still in the
/// buffer; `None` if the line is not that header.
pub fn is_overwritten(text: &str) -> Option<bool> {
    let (_, counts) = text.split_once("entries-in-buffer/entries-written:")?;
    let (kept, written) = counts.split_whitespace().next()?.split_once('/')?;
    Some(kept.parse::<u64>().ok()? < written.parse().ok()?)
}

/// Parses a line; `None` if it is not an event.
pub fn parse(text: &str) -> Option<Line<'_>> {
    let (_, line) = buffer(text);
    if let Some(lost) = line.trim_ascii_start().strip_prefix("CPU:") {
        return lost_events(lost);
    }
    if let Some((_, lost)) = text.split_once("PERF_RECORD_LOST") {
        return Some(Line::Lost {
            cpu: None,
            events: lost.trim_start_matches(" lost ").parse().unwrap_or(1),
        });
    }
    // A name may have brackets, too.
    text.match_indices('[').find_map(|(at, _)| event(&text[..at], &text[at + 1..]))
}

/// `3 [LOST 12 EVENTS]` of ftrace, `3 [12 EVENTS DROPPED]` of trace-cmd.
fn lost_events(text: &str) -> Option<Line<'_>> {
    let (cpu, rest) = text.split_once(" [")?;
    let rest = rest.strip_suffix(']')?;
    let events = rest.strip_prefix("LOST ").and_then(|rest| rest.strip_suffix(" EVENTS"));
    let events = events.or_else(|| rest.strip_suffix(" EVENTS DROPPED"))?;
    Some(Line::Lost { cpu: Some(cpu.trim_ascii().parse().ok()?), events: events.parse().unwrap_or(1) })
}

fn event<'a>(who: &'a str, rest: &'a str) -> Option<Line<'a>> {
    let (cpu, rest) = rest.split_once(']').filter(|(cpu, _)| is_number(cpu))?;
    let thread = thread(who.trim_ascii())?;
    let (mut time, mut rest) = word(rest)?;
    let mut flags = None;
    if !time.ends_with(':') {
        flags = Some(time);
        (time, rest) = word(rest)?;
    }
    let at = instant(time.strip_suffix(':')?)?;
    let (name, fields) = word(rest)?;
    let name = name.strip_suffix(':')?;
    let name = name.rsplit(':').next().filter(|name| !name.is_empty())?;
    let is_in_interrupt = flags.and_then(is_in_interrupt);
    let (Ok(cpu), Ok((tid, pid, style)), Ok(at)) = (cpu.parse(), thread, at) else {
        return Some(Line::Unreadable);
    };
    let buffer = if style == Style::Ftrace { buffer(who).0 } else { "" };
    let fields = fields.trim_ascii();
    Some(Line::Event(Event { tid, pid, cpu, is_in_interrupt, at, name, fields, style, buffer }))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The buffer in front of a line (`  NAME: `), and what follows.
fn buffer(text: &str) -> (&str, &str) {
    let begin = text.trim_ascii_start();
    let end = begin.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(begin.len());
    let (name, rest) = begin.split_at(end);
    match name.strip_suffix(':') {
        Some(name) if !name.is_empty() => (name, rest),
        _ => ("", text),
    }
}

/// Thread and process; `None` if it names none.
fn thread(who: &str) -> Option<Result<(i32, i32, Style), TooLarge>> {
    let (who, process) = match who.strip_suffix(')').and_then(|who| who.rsplit_once('(')) {
        Some((who, process)) => (who.trim_ascii_end(), process.trim_ascii()),
        None => (who, "0"),
    };
    let last = who.rsplit(' ').next()?;
    let (of_perf, tid) = last.split_once('/').unwrap_or(("0", last));
    let is_of_perf = |text: &str| is_number(text.strip_prefix('-').unwrap_or(text));
    let (tid, process, style) = match is_of_perf(of_perf) && is_of_perf(tid) && last.len() < who.len() {
        true => (tid, of_perf, Style::Perf),
        false => (who.rsplit_once('-')?.1, process, Style::Ftrace),
    };
    if !is_number(tid) && style == Style::Ftrace {
        return None;
    }
    // `(-----)` where the kernel did not know it.
    let process = if style == Style::Perf || is_number(process) { process } else { "0" };
    Some(match (tid.parse(), process.parse()) {
        (Ok(tid), Ok(process)) => Ok((tid, process, style)),
        _ => Err(TooLarge),
    })
}

fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_ascii_start();
    let end = text.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// `d.h2.`: the third letter.
fn is_in_interrupt(flags: &str) -> Option<bool> {
    let level = flags.as_bytes().get(2)?;
    Some(matches!(level, b'h' | b's' | b'H' | b'z' | b'Z'))
}

/// Seconds with a fraction; `None` if it is something else.
fn instant(text: &str) -> Option<Result<Instant, TooLarge>> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    if !is_number(seconds) || !is_number(fraction) {
        return None;
    }
    let fraction = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - digits);
    let seconds = seconds.parse::<u64>().ok();
    let ns = seconds.and_then(|it| it.checked_mul(1_000_000_000)?.checked_add(fraction));
    Some(ns.map(Instant::from_ns).ok_or(TooLarge))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told<'a> = ([i32; 2], u32, Option<bool>, u64, [&'a str; 2]);

    fn told(text: &str) -> Option<Told<'_>> {
        match parse(text)? {
            Line::Event(it) => {
                Some(([it.tid, it.pid], it.cpu, it.is_in_interrupt, it.at.ns(), [it.name, it.fields]))
            }
            Line::Lost { .. } | Line::Unreadable => None,
        }
    }

    #[test]
    fn lines_are_read_as_tools_write_them() {
        let at = 15_737_407_162_000;
        assert_eq!(
            told("            bash-6532    [001] d.h2. 15737.407162: sys_enter: NR 33 (b, 1)"),
            Some(([6532, 0], 1, Some(true), at, ["sys_enter", "NR 33 (b, 1)"]))
        );
        assert_eq!(
            told("  my-[x] 7-12 ( 1230) [003] ..... 15737.407162: sched_switch: a ==> b"),
            Some(([12, 1230], 3, Some(false), at, ["sched_switch", "a ==> b"]))
        );
        assert_eq!(
            told(
                "     migration/0-18    [000] 15737.407162: sched_switch:         x:18 [0] S ==> y:6315 [120]"
            ),
            Some(([18, 0], 0, None, at, ["sched_switch", "x:18 [0] S ==> y:6315 [120]"]))
        );
        assert_eq!(
            told("lto cgu.10  5022/5023 [000] 15737.407162042:      sched:sched_waking: comm=a pid=18"),
            Some(([5023, 5022], 0, None, at + 42, ["sched_waking", "comm=a pid=18"]))
        );
        for text in
            ["CPU:1 [LOST 12 EVENTS]", "CPU:1 [12 EVENTS DROPPED]", "  more: CPU:1 [12 EVENTS DROPPED]"]
        {
            assert_eq!(parse(text), Some(Line::Lost { cpu: Some(1), events: 12 }));
        }
        let buffer = |text| match parse(text) {
            Some(Line::Event(event)) => Some((event.buffer, event.tid)),
            _ => None,
        };
        assert_eq!(buffer("  more:   bash-6532  [001] 15.5: sched_waking: a"), Some(("more", 6532)));
        assert_eq!(buffer("          bash-6532  [001] 15.5: sched_waking: a"), Some(("", 6532)));
        assert_eq!(buffer("  kworker/0:1-12     [001] 15.5: sched_waking: a"), Some(("", 12)));
        let of_perf = "  swapper     0 [000]  1.5: PERF_RECORD_LOST lost 84";
        assert_eq!(parse(of_perf), Some(Line::Lost { cpu: None, events: 84 }));
        for other in ["", "# tracer: nop", "cpus=2", "a-1 [000] 1.5: func <-caller", "[", "x-1 [0] 1.x: y: z"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
        for large in [
            "a-99999999999 [0] 1.5: b: c",
            "a (99999999999)-9 [0]",
            "a-9 (99999999999) [0] 1.5: b:",
            "a 9/99999999999 [000] 1.5: b: c",
            "a-9 [4294967296] 1.5: b: c",
            "a-9 [0] 99999999999.0: b: c",
        ] {
            let expected = (!large.ends_with(']')).then_some(Line::Unreadable);
            assert_eq!(parse(large), expected, "{large}");
        }
        let counts =
            |counts: &str| is_overwritten(&format!("# entries-in-buffer/entries-written: {counts}   #P:4"));
        assert_eq!(["140080/250280", "5/5", "x"].map(counts), [Some(true), Some(false), None]);
    }
}
