//! The page around the tasks: header, contents, caveats.

use super::data;
use super::flow::{self, States};
use super::head::{THEME, head, theme};
use super::jobs::Jobs;
use super::latency;
use super::overview::{order, table};
use super::task::{section, transitions};
use super::time;
use crate::number::{agreeing, count, counted};
use crate::overview::how_long;
use crate::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use punctual_model::{Platform, Section, Span, Threads, TimingModel};

const STYLES: [&str; 2] = [include_str!("assets/uplot/uPlot.min.css"), include_str!("assets/page.css")];
const SCRIPTS: [&str; 7] = [
    THEME,
    include_str!("assets/uplot/uPlot.iife.min.js"),
    include_str!("assets/figures.js"),
    include_str!("assets/curves.js"),
    include_str!("assets/plot.js"),
    include_str!("assets/kinds.js"),
    include_str!("assets/page.js"),
];

/// The page of a timing model, with the jobs that it was made from and the states of a dataflow program where
/// a recording of them is given.
pub fn page(model: &TimingModel, jobs: Option<&Jobs>, states: Option<&States>, title: &str) -> String {
    let (title, order) = (visible(title), order(model));
    let has_threads = model.threads.is_some();
    let streams = model.tasks().iter().map(|task| task.streams.len()).sum();
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, &STYLES, &SCRIPTS))
            body {
                (skip_link(model))
                (header(model, jobs, &title))
                (contents(model, &order, has_threads))
                main {
                    @if has_threads {
                        (time::section(model, &order, jobs))
                        (table(model, &order))
                        (transitions(model, &order))
                    }
                    (flow::sections(model, states, streams))
                    @if let Some(section) = &model.latency { (latency::sections(section)) }
                    @for &position in &order {
                        (section(model, position, jobs))
                    }
                }
                (footer())
                script #data type="application/json" { (PreEscaped(data::json(model, jobs))) }
                @for script in SCRIPTS {
                    script { (PreEscaped(script)) }
                }
            }
        }
    };
    markup.into_string()
}

/// The first link: past everything that is before the first section.
fn skip_link(model: &TimingModel) -> Markup {
    let (id, title) = match (&model.threads, &model.dataflow) {
        (Some(_), _) => ("tasks", "To the table of tasks"),
        (None, Some(_)) => ("dataflow", "To the dataflow program"),
        (None, None) => ("latency", "To the scheduling latency"),
    };
    html! { a.skip href={ "#" (id) } { (title) } }
}

/// Where everything is: a list that stays in view.
fn contents(model: &TimingModel, order: &[usize], has_threads: bool) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol {
                @if has_threads {
                    @if !order.is_empty() { li { a href="#time" { "Over time" } } }
                    li { a href="#tasks" { "All tasks" } }
                }
                @if model.dataflow.is_some() {
                    @for (id, title) in [
                        ("dataflow", "Dataflow program"), ("flow-chains", "Chains"), ("flow-tasks", "Tasks"),
                        ("flow-states", "Tasking graph"), ("flow-activations", "Activations"),
                    ] {
                        li { a href={ "#" (id) } { (title) } }
                    }
                }
                @if let Some(section) = &model.latency { (latency::contents(section)) }
            }
            @if has_threads { (time::contents(model, order)) }
        }
    }
}

fn header(model: &TimingModel, jobs: Option<&Jobs>, title: &str) -> Markup {
    let mut facts = Vec::new();
    if let Some(threads) = &model.threads {
        facts.extend(of_threads(model, threads));
    }
    if let Some(program) = &model.dataflow {
        if model.threads.is_none() {
            facts.push(("Observed", how_long(model).trim_start_matches("Observed ").to_owned()));
            facts.push(clock(model, program.span()));
        }
        facts.extend(flow::facts(program));
    }
    if let (Some(section), None, None) = (&model.latency, &model.threads, &model.dataflow) {
        facts.push(("Observed", how_long(model).trim_start_matches("Observed ").to_owned()));
        facts.push(clock(model, section.span()));
    }
    let has_lost_records = model.threads.as_ref().is_some_and(|threads| threads.lost_records > 0);
    let is_lossy = model.dataflow.as_ref().is_some_and(|program| !program.losses().is_empty());
    let lost = |name: &str| name == "Lost" && has_lost_records || name == "Lost of the trace" && is_lossy;
    html! {
        header.page {
            div.headline {
                h1 { bdi { (title) } }
                (theme())
            }
            dl.facts {
                @for (name, fact) in facts {
                    div class=[lost(name).then_some("lost")] { dt { (name) } dd { (fact) } }
                }
            }
            @let warnings = model.threads.as_ref().map(incomplete).unwrap_or_default();
            @if !warnings.is_empty() {
                div.note.warning role="note" {
                    h2 { "Missing" }
                    ul { @for warning in warnings { li { (warning) } } }
                }
            }
            @if model.threads.is_some() { (recording(jobs)) }
            noscript { p.note.warning { "Scripts are off. Curves, histograms and release rasters need one; \
                                         text, tables and all other figures are complete." } }
        }
    }
}

/// What is known of the observation of threads.
fn of_threads(model: &TimingModel, seen: &Threads) -> Vec<(&'static str, String)> {
    // Other tools' traces do not always say.
    let unknown = Platform::default();
    let platform = model.platform.as_ref().unwrap_or(&unknown);
    let or_unknown = |known: bool, text: String| if known { text } else { "unknown".into() };
    let machine = format!("{}, {}", visible(&platform.machine), counted(platform.cpus.into(), "processor"));
    let lost = if seen.lost_records == 0 { "nothing".into() } else { counted(seen.lost_records, "record") };
    vec![
        ("Machine", or_unknown(!platform.machine.is_empty(), machine)),
        ("Kernel", or_unknown(!platform.kernel.is_empty(), format!("Linux {}", visible(&platform.kernel)))),
        ("Observed", how_long(model).trim_start_matches("Observed ").to_owned()),
        clock(model, seen.span()),
        ("Tasks", count(seen.tasks.len() as u64)),
        ("Records", count(seen.records)),
        ("Lost", lost),
    ]
}

fn clock(model: &TimingModel, span: Span) -> (&'static str, String) {
    let (from, until) = (count(span.from_ns.ns()), count(span.until_ns.ns()));
    ("Clock", format!("{}, from {from} ns to {until} ns", visible(&model.clock)))
}

/// What is missing, and what that means for the figures.
fn incomplete(seen: &Threads) -> Vec<String> {
    let mut text = Vec::new();
    if seen.lost_records > 0 {
        text.push(format!(
            "{} {} lost. Where a record is missing, the thread's task ends and another begins: no figure \
             spans a gap.",
            counted(seen.lost_records, "record"),
            agreeing(seen.lost_records, "was", "were"),
        ));
    }
    if seen.untracked_threads > 0 {
        text.push(format!(
            "{} could not be observed for lack of room.",
            counted(seen.untracked_threads, "thread")
        ));
    }
    if seen.skipped_events > 0 {
        text.push(format!(
            "The kernel skipped {} of the observing programs. Missing events were reconstructed; where that \
             was not exact, releases are windows.",
            counted(seen.skipped_events, "run")
        ));
    }
    if let Some(stolen) = crate::overview::stolen(seen) {
        text.push(format!(
            "{stolen} Jobs that were due then are late or took longer; costs are never too small."
        ));
    }
    if seen.omitted_tasks > 0 {
        text.push(format!("{} left out because there were too many.", counted(seen.omitted_tasks, "task")));
    }
    text
}

/// How to get the jobs, where they are missing.
fn recording(jobs: Option<&Jobs>) -> Markup {
    html! {
        @match jobs {
            None => div.note role="note" id="recording" {
                p {
                    "This page was made from a timing model alone. Release rasters and histograms need the \
                     jobs, which are in a recording. To make one and draw it:"
                }
                pre { code {
                    "punctual record -o DIR\n"
                    "punctual replay DIR -o FILE.timing.json\n"
                    "punctual report FILE.timing.json DIR -o report.html"
                } }
            },
            Some(jobs) => @if jobs.unknown() > 0 {
                div.note.warning role="note" {
                    p {
                        (counted(jobs.unknown(), "job")) " of what was recorded " (agreeing(jobs.unknown(), "belongs", "belong"))
                        " to no task of the model and " (agreeing(jobs.unknown(), "is", "are")) " not shown."
                    }
                }
            },
        }
    }
}

fn footer() -> Markup {
    html! {
        footer {
            p {
                "Figures are rounded to four digits towards the safe side: upper bounds up, lower bounds \
                 down. Curves are drawn to within 0.05 % (more only beyond 2,000 corners), on the safe side \
                 too. The exact figures are in the model file."
            }
            p { "Made by Punctual " (env!("CARGO_PKG_VERSION")) ". Plots: uPlot 1.6.32, © Leon Sorokin, MIT license." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{best_effort_phase, model, task};
    use punctual_model::{Duration, Instant, Job, Release, Window};

    /// A thread may be called anything: at most 15 bytes, but a command line is long.
    fn hostile() -> TimingModel {
        let mut hostile = task("</script><img", 7, 80);
        hostile.command = "</script><img src=x onerror=alert(1)> \"'& <!--\u{202e}\u{1b}[31m".into();
        hostile.primary_reason = Some("<b>".into());
        hostile.affinity = "<i>".into();
        let mut model = model(vec![hostile.clone(), best_effort_phase(hostile)]);
        model.platform = Some(Platform { kernel: "<u>".into(), machine: "<u>".into(), cpus: 2 });
        model.clock = "<u>".into();
        model
    }

    #[test]
    fn names_are_escaped_everywhere() {
        let page = page(&hostile(), None, None, "</title><script>alert(1)</script>");
        for tag in ["<img", "<b>", "<i>", "<u>", "<!--", "</title><script>"] {
            assert!(!page.contains(tag), "{tag}");
        }
        assert!(
            page.contains("&lt;/script&gt;&lt;img")
                && page.contains("\\u{1b}[31m")
                && !page.contains('\u{1b}')
        );
        // The scripts of the page itself, its data, and no other.
        assert_eq!(page.matches("<script").count(), SCRIPTS.len() + 1);
        assert_eq!(page.matches("</script").count(), SCRIPTS.len() + 1);
    }

    #[test]
    fn the_section_of_a_task_has_slips_typical_jitter_and_percentiles() {
        let mut odd = task("ctl", 7, 80);
        odd.streams[0].arrival.periodic = Some(crate::example::disturbed());
        odd.streams[0].percentiles = Some(crate::example::percentiles());
        let model = model(vec![odd]);
        let mut jobs = Jobs::new(&model);
        let at = Instant::from_ns(1_000_000_000);
        let release = Release { arrival: None, window: Window::at(at) };
        let job = Job { release, start: at, end: at, cost: Duration::ZERO, suspended: Duration::ZERO };
        jobs.job(7, 0, &model.tasks()[0].streams[0].separator, 0, &job);
        let page = page(&model, Some(&jobs), None, "report");
        for part in [
            ">16 µs</td><td class=\"figure\" data-v=\"30326000\">30.33 ms</td>",
            "<dt>Jitter</dt><dd>16 µs</dd>",
            "<dt>Max jitter <var>J</var></dt><dd>30.33 ms</dd>",
            "3 skipped, 2 left out",
            "<th scope=\"row\">Lateness</th><td class=\"figure\">6 µs</td><td class=\"figure\">12 µs</td>",
            "one 30 ms later than that (the machine stood still)",
            "\"slips\":[{\"at_us\":500004,\"value\":1},{\"at_us\":800002,\"value\":2}]",
            "\"left_out\":[{\"at_us\":1999690,\"value\":-310000},{\"at_us\":3030016,\"value\":30016000}]",
            "\"is_dense\":false",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(!page.contains("extra:"));
    }

    #[test]
    fn the_page_fetches_nothing_and_runs_only_its_own_script() {
        let page = page(&hostile(), None, None, "report");
        assert!(page.contains("default-src 'none'; script-src 'sha256-"));
        assert!(!page.contains("unsafe") && !page.contains(" style=\"") && !page.contains(" onclick="));
        for script in SCRIPTS {
            // What ends or comments out a script element would make it another than the one with the hash.
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }

    #[test]
    fn a_model_without_tasks_has_a_page() {
        let page = page(&model(vec![]), None, None, "empty");
        assert!(page.contains("No task was seen.") && !page.contains("id=\"overview\""));
    }

    /// The table of all tasks, that of transitions, and the sections.
    #[test]
    fn tasks_are_in_the_same_order_everywhere() {
        let (low, high) = (task("low", 7, 10), task("high", 8, 80));
        let model = model(vec![low.clone(), high.clone(), best_effort_phase(low), best_effort_phase(high)]);
        let page = page(&model, None, None, "report");
        let places = |what: &str| -> Vec<usize> {
            (0..4).filter_map(|task| page.find(&what.replace('N', &task.to_string()))).collect()
        };
        for what in ["<section class=\"task\" id=\"task-N\"", "<th scope=\"row\"><a href=\"#task-N\""] {
            let places = places(what);
            assert!(
                places.len() == 4 && places[1] < places[3] && places[3] < places[0] && places[0] < places[2],
                "{what}: {places:?}"
            );
        }
        let (_, transitions) = page.split_once("id=\"transitions\"").expect("transitions");
        assert!(transitions.find("#task-1") < transitions.find("#task-0"));
    }

    #[test]
    fn without_a_recording_the_page_says_what_is_missing() {
        let model = model(vec![task("ctl", 7, 80)]);
        assert!(page(&model, None, None, "report").contains("punctual record -o DIR"));
        let unknown = page(&model, Some(&Jobs::new(&model)), None, "report");
        assert!(
            !unknown.contains("punctual record")
                && unknown.contains("none of the recordings has a job of this stream")
        );
    }

    #[test]
    fn losses_are_explained() {
        let mut lossy = model(vec![task("ctl", 7, 80)]);
        let threads = lossy.threads.as_mut().expect("threads");
        (threads.lost_records, threads.skipped_events) = (3, 2);
        let page = page(&lossy, None, None, "report");
        assert!(
            page.contains("3 records were lost")
                && page.contains("no figure spans a gap")
                && page.contains("skipped 2 runs")
        );
    }
}
