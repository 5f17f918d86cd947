//! The page of scheduling latency, all of which is there without a script: the numbers of the paper's Figure
//! 24.

use crate::browser::Opened;
use crate::{Result, Row, ensure, fail, look};
use punctual_model::TimingModel;
use punctual_report::html::page as html;

const WIDE: (u32, u32) = (1400, 1000);
const NARROW: (u32, u32) = (360, 740);

pub const ALL: &[Row] = &[
    ("latency: bars are as long as their bounds, and stacked by cause", WIDE, bars),
    ("latency: the parts of each bar are named below it", WIDE, named),
    ("latency: the measured maximum stands beside each bar", WIDE, measured),
    ("latency: stacks and staircases open", WIDE, opened),
    ("latency: text has contrast, in light and dark", WIDE, look::contrast_of),
    ("latency: a narrow screen does not scroll sideways", NARROW, narrow),
];

pub fn page() -> Result<String> {
    let text = include_str!("../../../crates/cli/tests/data/figure-24.timing.json");
    let model = TimingModel::from_json(text).or_else(|error| fail(error.to_string()))?;
    Ok(html(&model, None, None, "figure-24"))
}

/// Where the parts of a model's bar end, as a share of the drawing.
const ENDS: &str = "(model) => {
    const row = document.querySelector(`[data-model=${model}] svg.bars`);
    const all = row.getBoundingClientRect();
    return [...row.querySelectorAll('.cause')]
        .map((part) => (part.getBoundingClientRect().right - all.left) / all.width);
}";

fn bars(page: &Opened) -> Result {
    // In nanoseconds; the longest bar is that of worst execution times, 118,469.
    for (model, ends) in [
        ("none", vec![22_510.0, 42_212.0]),
        ("worst_single", vec![22_510.0, 42_212.0, 62_940.0]),
        ("sliding_window", vec![22_510.0, 42_212.0, 59_126.0, 73_714.0, 94_743.0, 98_042.0]),
    ] {
        let found: Vec<f64> = serde_json::from_value(page.ask(&format!("({ENDS})({model:?})"))?)?;
        ensure!(found.len() == ends.len(), "{model}: {found:?}");
        for (found, end) in found.iter().zip(ends) {
            ensure!((found - end / 118_469.0).abs() < 0.005, "{model}: {found} of {end}");
        }
    }
    page.expect("document.querySelector('[data-model=sporadic]').textContent.includes('does not converge')")?;
    page.expect("document.querySelectorAll('[data-model=sporadic] .cause').length === 0")
}

/// Below each bar, without a mouse: as many names as parts.
fn named(page: &Opened) -> Result {
    page.expect(
        "[...document.querySelectorAll('[data-model]')].every((row) => {
            const names = [...row.querySelectorAll('.parts li')];
            return names.length === row.querySelectorAll('svg.bars .cause').length
                && names.every((name) => name.checkVisibility() && name.textContent.trim().length > 5);
        })",
    )?;
    page.expect(
        "document.querySelector('[data-model=sliding_window] .parts').textContent
            .includes('irq 33 nvme0q1 16.914 µs')",
    )
}

fn measured(page: &Opened) -> Result {
    page.expect(
        "[...document.querySelectorAll('[data-model] svg.bars')].every((row) => {
            const all = row.getBoundingClientRect();
            const line = row.querySelector('.measured').getBoundingClientRect();
            const share = ((line.left + line.right) / 2 - all.left) / all.width;
            return Math.abs(share - 27000 / 118469) < 0.005;
        })",
    )?;
    page.expect("document.querySelector('#latency').textContent.includes('27.54 % of its bound')")
}

fn opened(page: &Opened) -> Result {
    for (details, inside) in [("details.stack", "li"), ("details.curves", "svg.steps.arrivals path")] {
        page.scroll_to(&format!("{details} summary"))?;
        page.expect(&format!("!document.querySelector('{details} {inside}').checkVisibility()"))?;
        page.click(&format!("{details} summary"))?;
        page.until(&format!("document.querySelector('{details} {inside}').checkVisibility()"))?;
    }
    page.expect("document.querySelector('details.stack').textContent.includes('wake_up_new_task+0x1c5')")?;
    // A staircase goes up from the left to the right of its drawing.
    page.expect(
        "(() => {
            const steps = document.querySelector('details.curves[open] svg.steps');
            const path = steps.querySelector('path').getBoundingClientRect();
            const all = steps.getBoundingClientRect();
            return path.height > all.height / 2 && Math.abs(path.width - all.width) < 4;
        })()",
    )
}

fn narrow(page: &Opened) -> Result {
    for selector in ["#latency", "#latency-cpu-1", ".latency-bars", "details.curves"] {
        page.scroll_to(selector)?;
        let widest = page.ask("[document.documentElement.scrollWidth, document.body.scrollWidth]")?;
        ensure!(widest == serde_json::json!([360, 360]), "at {selector} the page is {widest} wide");
    }
    Ok(())
}
