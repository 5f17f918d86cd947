//! The figures: drawn, pointed at, zoomed, by mouse and by keys; their values are those of the model.

use crate::browser::Opened;
use crate::{Result, Row, ensure, pages};
use punctual_model::{Duration, Stream, request};

const WIDE: (u32, u32) = (1400, 1000);

pub const ALL: &[Row] = &[
    ("figures: every kind is drawn, in ink", WIDE, drawn),
    ("figures: a stream that is opened is drawn", WIDE, opened),
    ("figures: pointing shows values", WIDE, hover),
    ("figures: dragging zooms, a double click shows all again", WIDE, zoom),
    ("figures: buttons zoom, and scales become logarithmic", WIDE, buttons),
    ("figures: a series can be hidden", WIDE, hidden),
    ("figures: a bound far above the curves leaves the curves readable", WIDE, cut),
    ("figures: keys move the cursor, zoom and show all again", WIDE, keys),
    ("figures: bounds are those of the model", WIDE, bounds),
    ("figures: histograms count every job, however they are zoomed", WIDE, counts),
    ("figures: the raster has the extremes, and windows", WIDE, raster),
    ("figures: response times have the longest, and the period", WIDE, responses),
    ("figures: the raster marks slips, and releases left out", WIDE, marks),
];

/// The first figure of this kind for the task with this name.
fn figure(page: &Opened, task: &str, kind: &str) -> Result<String> {
    page.ask(&format!(
        "[...document.querySelectorAll('section.task')].find((task) => task.querySelector('h2 \
         bdi').textContent === {task:?})
            .querySelector('figure[data-kind={kind}]').id = 'wanted-{kind}'"
    ))?;
    let selector = format!("#wanted-{kind}");
    page.scroll_to(&selector)?;
    page.until(&format!("document.querySelector('{selector} .canvas[data-drawn]') !== null"))?;
    page.scroll_to(&selector)?;
    Ok(selector)
}

/// The mouse position over the plot itself.
fn over(figure: &str) -> String {
    format!("{figure} .u-over")
}

/// Number of pixels of a canvas that are not transparent.
pub fn ink(page: &Opened, figure: &str) -> Result<f64> {
    page.number(&format!(
        "(() => {{
            const canvas = document.querySelector('{figure} canvas');
            const copy = new OffscreenCanvas(canvas.width, canvas.height)
                .getContext('2d', {{ willReadFrequently: true }});
            copy.drawImage(canvas, 0, 0);
            const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
            let ink = 0;
            for (let at = 3; at < pixels.length; at += 4) ink += pixels[at] > 0;
            return ink;
        }})()"
    ))
}

fn range(page: &Opened, figure: &str) -> Result<(f64, f64)> {
    let edge = |name: &str| {
        page.number(&format!("figures.plots.get(document.querySelector('{figure}')).uplot.scales.x.{name}"))
    };
    Ok((edge("min")?, edge("max")?))
}

fn place(page: &Opened, figure: &str) -> Result<String> {
    page.text(&format!("document.querySelector('{figure} .place').value"))
}

/// The values of the legend at the cursor.
fn legend(page: &Opened, figure: &str) -> Result<Vec<String>> {
    let values = page.ask(&format!(
        "[...document.querySelectorAll('{figure} .series output')].map((value) => value.value)"
    ))?;
    Ok(serde_json::from_value(values)?)
}

fn drawn(page: &Opened) -> Result {
    for (task, kinds) in [
        (
            "control",
            &["raster", "lateness", "arrivals", "cost", "wcet", "request", "responses", "response"][..],
        ),
        ("burst", &["raster", "lateness", "arrivals", "cost", "wcet", "request", "responses", "response"]),
        ("random", &["raster", "lateness", "arrivals", "cost", "wcet", "request", "responses", "response"]),
        ("suspending", &["raster", "request"]),
    ] {
        for kind in kinds {
            let figure = figure(page, task, kind)?;
            let ink = ink(page, &figure)?;
            ensure!(ink > 2_000.0, "{kind} of {task} has {ink} pixels of ink");
            page.expect(&format!("document.querySelector('{figure} h4').textContent.length > 10"))?;
            page.expect(&format!("document.querySelector('{figure} figcaption').textContent.length > 100"))?;
            page.expect(&format!(
                "figures.plots.get(document.querySelector('{figure}')).uplot.axes.every((axis) => \
                 axis.label.length > 3)"
            ))?;
            page.ask(&format!("document.querySelector('{figure}').id = ''"))?;
        }
    }
    page.expect(
        "document.querySelectorAll('svg.segments').length >= 2 && document.querySelector('svg.segments \
         rect.sleep').getBBox().width > 100",
    )
}

fn opened(page: &Opened) -> Result {
    page.ask(
        "[...document.querySelectorAll('section.task')].find((task) => task.querySelector('h2 \
         bdi').textContent === 'suspending')
            .querySelector('details:not(.words)').id = 'other'",
    )?;
    page.scroll_to("#other summary")?;
    page.expect("document.querySelector('#other .canvas') === null")?;
    page.click("#other summary")?;
    page.until("document.querySelector('#other .canvas[data-drawn]') !== null")?;
    page.expect(
        "document.querySelector('#other .canvas').clientWidth === document.querySelector('#other \
                 canvas').clientWidth",
    )
}

fn hover(page: &Opened) -> Result {
    let figure = figure(page, "control", "wcet")?;
    ensure!(place(page, &figure)?.is_empty(), "values are shown before anything is pointed at");
    page.hover(&over(&figure), 0.5, 0.5)?;
    page.until(&format!("document.querySelector('{figure} .place').value !== ''"))?;
    ensure!(place(page, &figure)?.contains("jobs in a row"), "{}", place(page, &figure)?);
    let values = legend(page, &figure)?;
    ensure!(values.len() == 2 && values.iter().all(|value| value.ends_with(" ms")), "{values:?}");
    page.hover(&format!("{figure} figcaption"), 0.5, 0.5)?;
    page.until(&format!("document.querySelector('{figure} .place').value === ''"))
}

fn zoom(page: &Opened) -> Result {
    let figure = figure(page, "control", "raster")?;
    let all = range(page, &figure)?;
    page.expect(&format!("document.querySelector('{figure} .tools button:last-child').disabled"))?;
    page.drag(&over(&figure), 0.25, 0.5)?;
    page.until(&format!("!document.querySelector('{figure} .tools button:last-child').disabled"))?;
    let (from, until) = range(page, &figure)?;
    let length = all.1 - all.0;
    let close = |found: f64, wanted: f64| (found - (all.0 + wanted * length)).abs() < length / 50.0;
    ensure!(close(from, 0.25) && close(until, 0.5), "{all:?} {from} {until}");
    page.double_click(&over(&figure))?;
    page.until(&format!("document.querySelector('{figure} .tools button:last-child').disabled"))?;
    ensure!(range(page, &figure)? == all, "a double click does not show all again");
    Ok(())
}

fn buttons(page: &Opened) -> Result {
    let figure = figure(page, "control", "arrivals")?;
    let all = range(page, &figure)?;
    let button = |number: u32| format!("{figure} .tools button:nth-child({number})");
    page.click(&button(2))?;
    let closer = range(page, &figure)?;
    ensure!((closer.1 - closer.0) * 2.0 - (all.1 - all.0) < 1.0, "{all:?} {closer:?}");
    // Out twice: beyond what is shown at first, but never below zero.
    page.click(&button(3))?;
    page.click(&button(3))?;
    let further = range(page, &figure)?;
    ensure!(further.0 == 0.0 && further.1 > all.1, "{all:?} {further:?}");
    page.click(&button(4))?;
    ensure!(range(page, &figure)? == all, "the button does not show all again");
    page.click(&button(1))?;
    page.expect(&format!("document.querySelector('{}').getAttribute('aria-pressed') === 'true'", button(1)))?;
    let (from, until) = range(page, &figure)?;
    ensure!(from > 0.0 && until > 10.0 * all.1, "{from} {until}");
    ensure!(ink(page, &figure)? > 2_000.0, "nothing is drawn on logarithmic scales");
    Ok(())
}

fn hidden(page: &Opened) -> Result {
    let figure = figure(page, "random", "request")?;
    let before = ink(page, &figure)?;
    let first = format!("{figure} .series li:first-child button");
    page.click(&first)?;
    page.until(&format!("document.querySelector('{first}').getAttribute('aria-pressed') === 'false'"))?;
    page.ask("new Promise(requestAnimationFrame)")?;
    ensure!(ink(page, &figure)? != before, "hiding a series changes nothing");
    page.click(&first)?;
    page.expect(&format!("document.querySelector('{first}').getAttribute('aria-pressed') === 'true'"))
}

/// Jobs 10 ms apart, once 2 ms: the sporadic bound is far above the curves.
fn cut(page: &Opened) -> Result {
    let figure = figure(page, "random", "arrivals")?;
    let plot = format!("figures.plots.get(document.querySelector('{figure}')).uplot");
    let top = || page.number(&format!("{plot}.scales.y.max"));
    let greatest = |label: &str| {
        page.number(&format!(
            "Math.max(...{plot}.data[{plot}.series.findIndex((one) => (one.label ?? \
                              '').startsWith({label:?}))])"
        ))
    };
    let (most, sporadic) = (greatest("most observed")?, greatest("sporadic bound")?);
    ensure!(sporadic > 2.5 * most, "this bound is not far above the curves: {sporadic}, {most}");
    ensure!(top()? < 2.5 * most, "the axis goes to {}, the curves to {most}", top()?);
    // Alone, or on a logarithmic scale, it is seen whole.
    let series = page.number(&format!("document.querySelectorAll('{figure} .series button').length"))? as u32;
    let toggle_others = || -> Result {
        for place in (1..=series).filter(|place| *place != 3) {
            page.click(&format!("{figure} .series li:nth-child({place}) button"))?;
        }
        page.ask("new Promise(requestAnimationFrame)")?;
        Ok(())
    };
    toggle_others()?;
    ensure!(top()? >= sporadic, "alone it is cut at {}", top()?);
    toggle_others()?;
    page.click(&format!("{figure} .tools button:nth-child(1)"))?;
    ensure!(top()? >= greatest("sporadic bound")?, "on a logarithmic scale it is cut at {}", top()?);
    page.click(&format!("{figure} .tools button:nth-child(1)"))
}

fn keys(page: &Opened) -> Result {
    let figure = figure(page, "control", "wcet")?;
    let all = range(page, &figure)?;
    page.expect(&format!("document.querySelector('{figure} .canvas').tabIndex === 0"))?;
    page.expect(&format!(
        "document.querySelector('{figure} .canvas').getAttribute('aria-label').includes('Arrow keys')"
    ))?;
    // From the last button on, the next stop is the plot.
    page.ask(&format!("document.querySelector('{figure} .tools button:nth-child(3)').focus()"))?;
    page.press("Tab")?;
    page.expect(&format!("document.activeElement === document.querySelector('{figure} .canvas')"))?;
    page.press("ArrowRight")?;
    ensure!(place(page, &figure)? == "Any job:", "{}", place(page, &figure)?);
    for _ in 0..4 {
        page.press("ArrowRight")?;
    }
    ensure!(place(page, &figure)? == "Any 5 jobs in a row:", "{}", place(page, &figure)?);
    page.press("ArrowLeft")?;
    ensure!(place(page, &figure)? == "Any 4 jobs in a row:", "{}", place(page, &figure)?);
    page.press("End")?;
    ensure!(place(page, &figure)? == "Any 1,000 jobs in a row:", "{}", place(page, &figure)?);
    page.press("Home")?;
    page.press("+")?;
    let closer = range(page, &figure)?;
    ensure!(closer.1 - closer.0 < all.1 - all.0, "{closer:?}");
    page.press("Escape")?;
    ensure!(range(page, &figure)? == all, "Escape does not show all again");
    Ok(())
}

/// "4.962 ms" and "12" as numbers: nanoseconds, or a count.
fn value(text: &str) -> Result<f64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let factor = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "µs" => 1e3,
        _ => 1.0,
    };
    let number: f64 = number.replace(',', "").parse().map_err(|_| format!("{text} is no value"))?;
    Ok(number * factor)
}

/// The page's script against the model's own code, for some intervals and numbers of jobs.
fn bounds(page: &Opened) -> Result {
    for name in ["control", "burst", "random"] {
        let pages = pages()?;
        let task = pages.task(name)?;
        let stream = task.primary.and_then(|index| task.streams.get(index)).ok_or("no stream")?;
        let arrivals = figure(page, name, "arrivals")?;
        let requests = figure(page, name, "request")?;
        let curve = stream.arrival.curve.as_ref().ok_or("no curve")?;
        // Shorter and longer than the table, and at its very entries.
        let horizon = curve.delta_min_ns.last().ok_or("no entry")?.ns();
        for span in
            [1, 1_999_999, 2_000_001, 40_000_000, 123_456_789, horizon, horizon + 77_777_777, 3 * horizon]
        {
            bounds_at(page, stream, &arrivals, &requests, Duration::from_ns(span))
                .map_err(|failure| format!("{name} at {span} ns: {}", failure.message))?;
        }
        for selector in [arrivals, requests] {
            page.ask(&format!("document.querySelector('{selector}').id = ''"))?;
        }
    }
    Ok(())
}

fn bounds_at(page: &Opened, stream: &Stream, arrivals: &str, requests: &str, span: Duration) -> Result {
    let (curve, execution) =
        (stream.arrival.curve.as_ref().ok_or("no curve")?, stream.execution.as_ref().ok_or("no costs")?);
    let value_at = |figure: &str, series: u32| -> Result<Option<f64>> {
        let kind = format!("figures.plots.get(document.querySelector('{figure}')).kind");
        Ok(page.ask(&format!("{kind}.series[{series}].of({})", span.ns()))?.as_f64())
    };
    // Drawn within half a per mille of the curve, on the safe side: so many releases more or fewer can be in
    // it.
    let near = |span: u64, factor: f64| Duration::from_ns((span as f64 * factor) as u64);
    let (least, most) = (
        curve.eta_max(span).ok_or("unbounded")? as f64,
        curve.eta_max(near(span.ns() + 2, 1.0011)).ok_or("unbounded")? as f64,
    );
    let drawn = value_at(arrivals, 0)?.ok_or("η⁺ is not drawn")?;
    ensure!(least <= drawn && drawn <= most, "η⁺ is {drawn}, not {least} to {most}");
    let (most, least) = (curve.eta_min(span) as f64, curve.eta_min(near(span.ns(), 0.9989)) as f64 - 1.0);
    let drawn = value_at(arrivals, 1)?.ok_or("η⁻ is not drawn")?;
    ensure!(least <= drawn && drawn <= most, "η⁻ is {drawn}, not {least} to {most}");

    let sporadic = stream.arrival.sporadic.as_ref().ok_or("no separation")?;
    let at = |span: Duration| {
        let arrivals =
            [request::curve_scalar(curve, execution, span), request::curve_wcet(curve, execution, span)];
        let numbers = [
            request::sporadic_scalar(sporadic, execution, span),
            request::sporadic_wcet(sporadic, execution, span),
        ];
        let drawn = if sporadic.min_separation_ns == Duration::ZERO { &numbers[..0] } else { &numbers[..] };
        [drawn, &arrivals[..]].concat()
    };
    for (series, (exact, most)) in at(span).into_iter().zip(at(near(span.ns() + 2, 1.0011))).enumerate() {
        let (exact, most) = (exact.ok_or("unbounded")?.ns() as f64, most.ok_or("unbounded")?.ns() as f64);
        let drawn = value_at(requests, series as u32)?.ok_or("it is not drawn")?;
        ensure!(
            exact <= drawn && drawn <= most * 1.0011 + 2.0,
            "request bound {series} is {drawn}, not {exact} to {most}"
        );
    }
    Ok(())
}

fn counts(page: &Opened) -> Result {
    for kind in ["cost", "lateness", "response"] {
        let figure = figure(page, "random", kind)?;
        let plot = format!("figures.plots.get(document.querySelector('{figure}'))");
        let jobs =
            page.number(&format!("{plot}.uplot.data[1].reduce((sum, count) => sum + (count ?? 0), 0)"))?;
        let pages = pages()?;
        let task = pages.task("random")?;
        // The first job has none before it that it could be apart from.
        let all = task.streams[task.primary.unwrap_or(0)].jobs - u64::from(kind == "lateness");
        ensure!(jobs == all as f64, "{kind}: {jobs} of {all} jobs");
        let bars = page.number(&format!("{plot}.uplot.data[1].filter((count) => count > 0).length"))?;
        ensure!(bars >= 10.0, "{kind}: {bars} bars");
        // Closer, bars are narrower, and count no job twice.
        page.ask(&format!("{plot}.show(0, {plot}.range[1] / 8)"))?;
        let closer =
            page.number(&format!("{plot}.uplot.data[1].reduce((sum, count) => sum + (count ?? 0), 0)"))?;
        ensure!(0.0 < closer && closer <= jobs, "{kind}: {closer} of {jobs} jobs");
    }
    Ok(())
}

fn responses(page: &Opened) -> Result {
    let figure = figure(page, "control", "responses")?;
    let data = format!("figures.plots.get(document.querySelector('{figure}')).uplot.data");
    let pages = pages()?;
    let stream = &pages.task("control")?.streams[0];
    let longest = stream.response.as_ref().ok_or("no response")?.max_ns.ns() as f64;
    let drawn = page.number(&format!("Math.max(...{data}[1])"))?;
    ensure!(drawn == longest, "{drawn}, and a longest response of {longest}");
    let period = stream.arrival.periodic.as_ref().ok_or("no period")?.period_ns.ns() as f64;
    page.expect(&format!("{data}[2].every((due) => due === {period})"))?;
    // Jobs at other separators are due at no time.
    page.expect(
        "[...document.querySelectorAll('details figure[data-kind=responses] figcaption')].every((text) => \
         !text.textContent.includes('was late'))",
    )
}

fn raster(page: &Opened) -> Result {
    let figure = figure(page, "control", "raster")?;
    let plot = format!("figures.plots.get(document.querySelector('{figure}'))");
    let pages = pages()?;
    let task = pages.task("control")?;
    let jitter = task.streams[0].arrival.periodic.as_ref().ok_or("no period")?.jitter_ns.ns() as f64;
    // Jitter is measured on the very releases that are drawn: the extremes touch it.
    let (least, most) = (
        page.number(&format!("Math.min(...{plot}.uplot.data[1])"))?,
        page.number(&format!("Math.max(...{plot}.uplot.data[2])"))?,
    );
    ensure!(least >= 0.0 && most == jitter, "{least} to {most}, and a jitter of {jitter}");
    let points = page.number(&format!("{plot}.uplot.data[0].length"))?;
    ensure!((1_000.0..=2_000.0).contains(&points), "{points} points");
    page.expect(&format!(
        "{plot}.uplot.data[2].filter((high, index) => high > {plot}.uplot.data[1][index]).length > 5"
    ))?;
    // No value is told that is not one.
    page.ask(&format!("document.querySelector('{figure} .canvas').focus()"))?;
    page.press("End")?;
    let values = legend(page, &figure)?;
    ensure!(value(&values[0])? >= 0.0 && value(&values[2])? >= jitter, "{values:?}");
    Ok(())
}

fn marks(page: &Opened) -> Result {
    let figure = figure(page, "skipping", "raster")?;
    let plot = format!("figures.plots.get(document.querySelector('{figure}'))");
    let task = "[...document.querySelectorAll('section.task')].find((task) => task.querySelector('h2 \
                bdi').textContent === 'skipping')";
    let labels = page.text(&format!(
        "[...document.querySelectorAll('{figure} .series button span')].map((it) => it.textContent).join('|')"
    ))?;
    ensure!(labels == "job|jitter|skipped or extra before it|left out", "{labels}");
    // Everything but the job left out is on the grid, before and after the activations that were skipped.
    let late =
        page.number(&format!("{plot}.uplot.data[1].filter((low) => low < 0 || low > 30_000).length"))?;
    ensure!(late == 1.0, "{late} points are off the grid");
    for (series, told_there) in [(3, "2 skipped"), (4, "late")] {
        let index =
            page.number(&format!("{plot}.uplot.data[{series}].findIndex((value) => value !== null)"))?;
        page.ask(&format!("{plot}.point({index})"))?;
        let values = legend(page, &figure)?;
        ensure!(values[series - 1].ends_with(told_there), "{values:?}");
        // Hidden, it is not drawn.
        let before = ink(page, &figure)?;
        page.click(&format!("{figure} .series li:nth-child({series}) button"))?;
        page.until(&format!("!{plot}.uplot.series[{series}].show"))?;
        let after = ink(page, &figure)?;
        ensure!(after < before, "{before} pixels with the mark, {after} without");
        page.click(&format!("{figure} .series li:nth-child({series}) button"))?;
    }
    page.expect(&format!("{task}.querySelector('.percentiles tbody').rows.length === 3"))?;
    page.expect(&format!("{task}.textContent.includes('the machine stood still')"))?;
    // Nothing bounds the releases of an interval from below where activations were skipped.
    let arrivals = self::figure(page, "skipping", "arrivals")?;
    let labels = page.text(&format!(
        "[...document.querySelectorAll('{arrivals} .series button span')].map((it) => \
                            it.textContent).join('|')"
    ))?;
    ensure!(labels.contains("⌈(Δ+J)/T⌉") && !labels.contains('⌊'), "{labels}");
    Ok(())
}
