//! The page around the sections: header, contents, footer.

use super::data;
use super::drawn::{Drawn, Fact};
use super::flow::States;
use super::head::{THEME, head, theme};
use super::jobs::Jobs;
use super::overview::order;
use super::task::section;
use super::threads;
use crate::dispatched::Dispatched;
use crate::number::{count, counted};
use crate::overview::how_long;
use crate::{sections, visible};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use punctual_model::{Platform, Span, TimingModel};

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
    markup(&Drawn { model, order: order(model), jobs, states, dispatched: None }, title)
}

/// The page of a table, with what a dispatcher did with it.
pub fn dispatched_page(model: &TimingModel, dispatched: &Dispatched, title: &str) -> String {
    let dispatched = Some(dispatched);
    markup(&Drawn { model, order: order(model), jobs: None, states: None, dispatched }, title)
}

fn markup(drawn: &Drawn<'_>, title: &str) -> String {
    let (title, model, jobs) = (visible(title), drawn.model, drawn.jobs);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, &STYLES, &SCRIPTS))
            body {
                (skip_link(model))
                (header(drawn, &title))
                (contents(drawn))
                main {
                    @for view in sections::shown(model) { ((view.page)(drawn)) }
                    @for &position in &drawn.order {
                        (section(model, position, jobs))
                    }
                }
                (footer(model))
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
    html! {
        @if let Some(view) = sections::shown(model).next() {
            a.skip href={ "#" (view.anchor.0) } { (view.anchor.1) }
        }
    }
}

/// Where everything is: a list that stays in view.
fn contents(drawn: &Drawn<'_>) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol { @for view in sections::shown(drawn.model) { ((view.contents)(drawn)) } }
            (threads::list(drawn))
        }
    }
}

fn header(drawn: &Drawn<'_>, title: &str) -> Markup {
    let model = drawn.model;
    let mut facts = machine(model);
    facts.extend(observation(model));
    facts.extend(sections::shown(model).flat_map(|view| (view.facts)(model)));
    html! {
        header.page {
            div.headline {
                h1 { bdi { (title) } }
                (theme())
            }
            dl.facts {
                @for fact in facts {
                    div class=[fact.is_loss.then_some("lost")] { dt { (fact.name) } dd { (fact.text) } }
                }
            }
            (threads::notes(drawn))
            noscript { p.note.warning { "Scripts are off. Curves, histograms and release rasters need one; \
                                         text, tables and all other figures are complete." } }
        }
    }
}

/// When the first section was observed: the others say so themselves where it matters.
fn observation(model: &TimingModel) -> Vec<Fact> {
    let span = model.spans().first().map(|(_, span)| *span);
    let observed = how_long(model).trim_start_matches("Observed ").to_owned();
    span.map_or_else(Vec::new, |span| vec![Fact::new("Observed", observed), clock(model, span)])
}

/// Where threads or latencies were observed.
fn machine(model: &TimingModel) -> Vec<Fact> {
    if model.threads.is_none() && model.latency.is_none() {
        return Vec::new();
    }
    // Other tools' traces do not always say.
    let unknown = Platform::default();
    let platform = model.platform.as_ref().unwrap_or(&unknown);
    let or_unknown = |known: bool, text: String| if known { text } else { "unknown".into() };
    let machine = format!("{}, {}", visible(&platform.machine), counted(platform.cpus.into(), "processor"));
    vec![
        Fact::new("Machine", or_unknown(!platform.machine.is_empty(), machine)),
        Fact::new(
            "Kernel",
            or_unknown(!platform.kernel.is_empty(), format!("Linux {}", visible(&platform.kernel))),
        ),
    ]
}

fn clock(model: &TimingModel, span: Span) -> Fact {
    let (from, until) = (count(span.from_ns.ns()), count(span.until_ns.ns()));
    Fact::new("Clock", format!("{}, from {from} ns to {until} ns", visible(&model.clock)))
}

fn footer(model: &TimingModel) -> Markup {
    html! {
        footer {
            @if model.sections() != ["latency"] {
                p {
                    "Figures are rounded to four digits towards the safe side: upper bounds up, lower bounds \
                     down. Curves are drawn to within 0.05 % (more only beyond 2,000 corners), on the safe \
                     side too. The exact figures are in the model file."
                }
            }
            @if model.latency.is_some() {
                p { "Figures of the scheduling latency are not rounded, except means." }
            }
            p { "Made by Punctual " (env!("CARGO_PKG_VERSION")) ". Plots: uPlot 1.6.32, © Leon Sorokin, MIT \
             license." }
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
        lossy.threads.as_mut().expect("threads").lost_records = 0;
        let page = super::page(&lossy, None, None, "report");
        assert!(page.contains("2 skipped events"), "{page}");
    }
}
