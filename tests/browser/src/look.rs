//! The look of the page: light and dark, narrow, printed, without a recording, with many tasks.

use crate::browser::Opened;
use crate::{Result, Row, ensure};

const WIDE: (u32, u32) = (1400, 1000);
const NARROW: (u32, u32) = (360, 740);

pub const ALL: &[Row] = &[
    ("look: the header has the observation and its losses", WIDE, header),
    ("look: dark where the system is, light at a button, and back", WIDE, dark),
    ("look: text has contrast, in light and dark", WIDE, contrast),
    ("look: a narrow screen does not scroll sideways, tables do", NARROW, narrow),
    ("look: phases link to each other", WIDE, phases),
    ("look: prints every figure, in light colours", WIDE, printed),
    ("look: the keyboard reaches everything that the mouse does", WIDE, keyboard),
    ("look: the contents stay in view and mark the current section", WIDE, contents),
    ("look: all threads over time, with a mark that links to the worst job", WIDE, over_time),
    ("look: the worst job is named, and shown among others", WIDE, worst),
];

pub const WITHOUT: &[Row] =
    &[("look: without a recording, says which figures need one and how to get it", WIDE, without)];

pub const COMPARED: &[Row] =
    &[("look: a comparison has the same theme, and a button for it", WIDE, compared)];

pub const LARGE: &[Row] =
    &[("look: of many tasks only those in view are drawn, and a limited number kept", WIDE, many)];

fn header(page: &Opened) -> Result {
    page.expect("document.title.startsWith('plant.timing.json')")?;
    let text = page.text("document.querySelector('header').innerText")?;
    for part in
        ["15 s", "Linux 6.18.0-rt", "4 processors", "CLOCK_MONOTONIC", "1 record was lost", "skipped 2 runs"]
    {
        ensure!(text.contains(part), "{part} is not in the header:\n{text}");
    }
    Ok(())
}

/// Brightness of the page's background, 0 to 255.
fn lightness(page: &Opened) -> Result<f64> {
    page.number("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
}

/// The colour of the first line on the canvas of a figure.
fn colour_of_line(page: &Opened) -> Result<String> {
    page.scroll_to("figure[data-kind=wcet]")?;
    page.until("document.querySelector('figure[data-kind=wcet] .canvas[data-drawn]') !== null")?;
    page.text("figures.plots.get(document.querySelector('figure[data-kind=wcet]')).uplot.series[1].stroke()")
}

fn dark(page: &Opened) -> Result {
    ensure!(lightness(page)? > 200.0, "the page is not light at first");
    let light_line = colour_of_line(page)?;
    page.system("screen", "dark")?;
    page.until("document.getElementById('theme').textContent === 'Light'")?;
    ensure!(lightness(page)? < 60.0, "the page is not dark where the system is");
    ensure!(colour_of_line(page)? != light_line, "figures keep the colours of light");
    page.ask("document.getElementById('theme').click()")?;
    ensure!(lightness(page)? > 200.0, "the button does not make it light");
    ensure!(colour_of_line(page)? == light_line, "figures do not become light again");
    page.ask("document.getElementById('theme').click()")?;
    ensure!(lightness(page)? < 60.0, "the button does not make it dark");
    page.scroll_to("figure[data-kind=arrivals]")?;
    page.until("document.querySelector('figure[data-kind=arrivals] .canvas[data-drawn]') !== null")
}

/// The least contrast of text to its background, and where.
const LEAST_CONTRAST: &str = "(() => {
    const colours = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (colour) => {
        colours.clearRect(0, 0, 1, 1);
        colours.fillStyle = colour;
        colours.fillRect(0, 0, 1, 1);
        return [...colours.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([red, green, blue]) => {
        const part = (value) =>
            (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
    };
    const behind = (element) => {
        const colour = rgb(getComputedStyle(element).backgroundColor);
        return colour[3] > 0 || !element.parentElement ? colour : behind(element.parentElement);
    };
    let least = ['nothing', Infinity];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes]
            .some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
        if (!own || !element.checkVisibility() || element.disabled) continue;
        if (['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
        const [text, ground] = [rgb(getComputedStyle(element).color), behind(element)].map(luminance);
        const contrast = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
        const which = `${element.tagName} ${element.className}: ${element.textContent.slice(0, 40)}`;
        if (contrast < least[1]) least = [which, contrast];
    }
    return least;
})()";

/// Contrast of all visible text, light and dark.
pub fn contrast_of(page: &Opened) -> Result {
    for colours in ["light", "dark"] {
        page.system("screen", colours)?;
        page.until(&format!("matchMedia('(prefers-color-scheme: {colours})').matches"))?;
        let least = page.ask(LEAST_CONTRAST)?;
        ensure!(least[1].as_f64().is_some_and(|contrast| contrast >= 4.5), "{colours}: {least}");
    }
    Ok(())
}

fn contrast(page: &Opened) -> Result {
    colour_of_line(page)?;
    contrast_of(page)
}

fn narrow(page: &Opened) -> Result {
    page.expect("document.documentElement.clientWidth === 360")?;
    for selector in [
        "#tasks",
        "figure[data-kind=raster]",
        "figure[data-kind=arrivals]",
        "figure[data-kind=request]",
        ".patterns",
        "#transitions",
    ] {
        page.scroll_to(selector)?;
        page.until("[...figures.visible].every((figure) => figure.querySelector('.canvas[data-drawn]'))")?;
        let widest = page.ask("[document.documentElement.scrollWidth, document.body.scrollWidth]")?;
        ensure!(widest == serde_json::json!([360, 360]), "at {selector} the page is {widest} wide");
    }
    page.expect(
        "document.querySelector('#tasks .scroll').scrollWidth > document.querySelector('#tasks \
                 .scroll').clientWidth",
    )?;
    page.expect("[...document.querySelectorAll('canvas')].every((canvas) => canvas.clientWidth <= 360)")?;
    // A window that is made wider has wider figures.
    page.scroll_to("figure[data-kind=raster]")?;
    page.until("document.querySelector('figure[data-kind=raster] .canvas[data-drawn]') !== null")?;
    page.window(1000, 740)?;
    page.until("document.querySelector('figure[data-kind=raster] canvas').clientWidth > 800")?;
    page.window(360, 740)?;
    page.until("document.querySelector('figure[data-kind=raster] canvas').clientWidth < 360")?;
    page.scroll_to("figure[data-kind=raster]")
}

fn phases(page: &Opened) -> Result {
    page.scroll_to("#transitions")?;
    let text = page.text("document.getElementById('transitions').innerText")?;
    for part in ["its policy changed", "records were lost", "the observation ended", "FIFO 41", "OTHER"] {
        ensure!(text.contains(part), "{part} is not among the transitions:\n{text}");
    }
    page.expect("document.querySelectorAll('#transitions tbody tr').length === 4")?;
    page.scroll_to(".phases")?;
    page.expect("document.querySelector('.phases').querySelectorAll('a').length === 3")?;
    page.click(".phases a")?;
    page.until("document.querySelector(location.hash).getBoundingClientRect().top < 200")
}

fn printed(page: &Opened) -> Result {
    page.system("screen", "dark")?;
    page.until("document.getElementById('theme').textContent === 'Light'")?;
    page.ask(
        "addEventListener('beforeprint', () => (window.printing = [
            [...document.querySelectorAll('figure.plot')]
                .filter((figure) => figure.checkVisibility())
                .every((figure) => figure.querySelector('.canvas[data-drawn]')),
            document.documentElement.dataset.theme,
            [...document.querySelectorAll('details.words')].every((details) => details.open),
        ]))",
    )?;
    let pdf = page.printed()?;
    ensure!(pdf.starts_with(b"%PDF") && pdf.len() > 50_000, "the printed page has {} bytes", pdf.len());
    let found = page.ask("window.printing")?;
    ensure!(found == serde_json::json!([true, "light", true]), "{found}");
    // And dark again afterwards.
    page.expect("document.documentElement.dataset.theme === undefined")?;
    ensure!(lightness(page)? < 60.0, "it stays light after printing");
    page.scroll_to("figure[data-kind=arrivals]")?;
    page.until("document.querySelector('figure[data-kind=arrivals] .canvas[data-drawn]') !== null")?;
    page.expect(
        "document.querySelector('figure[data-kind=arrivals] canvas').clientWidth === \
                 document.querySelector('figure[data-kind=arrivals] .canvas').clientWidth",
    )
}

fn keyboard(page: &Opened) -> Result {
    page.press("Tab")?;
    page.expect(
        "document.activeElement.className === 'skip' && \
                 document.activeElement.getBoundingClientRect().left >= 0",
    )?;
    page.press("Tab")?;
    page.expect("document.activeElement.id === 'theme'")?;
    page.press("Enter")?;
    ensure!(lightness(page)? < 60.0, "Enter on the button does not make it dark");
    page.press("Tab")?;
    page.expect("document.activeElement.closest('.contents') !== null")?;
    page.ask("document.getElementById('filter').focus()")?;
    page.press("Tab")?;
    page.expect("document.activeElement.id === 'folded'")?;
    page.press("Tab")?;
    page.expect("document.activeElement.className === 'scroll'")?;
    page.press("Tab")?;
    page.expect("document.activeElement.closest('th') !== null")?;
    // Everything that takes a click takes the focus.
    page.expect(
        "[...document.querySelectorAll('a, button, summary, input, .canvas')].every((one) => \
                 one.tabIndex === 0)",
    )
}

fn contents(page: &Opened) -> Result {
    page.expect("document.querySelectorAll('.contents .threads a').length === 7")?;
    let random = "[...document.querySelectorAll('section.task')].find((task) => task.querySelector('h2 \
                  bdi').textContent === 'random')";
    page.ask(&format!("{random}.scrollIntoView({{ block: 'start', behavior: 'instant' }})"))?;
    page.until(
        "document.querySelector('.contents [aria-current]')?.querySelector('bdi')?.textContent === 'random'",
    )?;
    page.expect("document.querySelector('.contents').getBoundingClientRect().top >= 0")?;
    page.expect("document.querySelector('.contents').getBoundingClientRect().bottom <= innerHeight")?;
    page.click(".contents .threads li:first-child a")?;
    page.until("document.querySelector(location.hash + ' h2 bdi').textContent === 'control'")
}

fn over_time(page: &Opened) -> Result {
    page.expect("document.querySelectorAll('#time li').length === 7")?;
    page.expect("document.querySelectorAll('#time path.busy').length >= 7")?;
    page.expect(
        "[...document.querySelectorAll('#time path.busy')].every((area) => area.getBBox().height >= 1)",
    )?;
    page.scroll_to("#time li:nth-child(4)")?;
    page.click("#time li:nth-child(4) svg a .worst")?;
    page.until("location.hash.endsWith('-worst')")?;
    page.until("document.querySelector(location.hash).getBoundingClientRect().top < innerHeight")?;
    page.expect(
        "document.querySelector(location.hash).closest('section').querySelector('h2 \
                 bdi').textContent === 'random'",
    )
}

fn worst(page: &Opened) -> Result {
    page.ask(
        "[...document.querySelectorAll('section.task')].find((task) => task.querySelector('h2 \
         bdi').textContent === 'control')
            .querySelector('.worst').id = 'wanted'",
    )?;
    page.scroll_to("#wanted")?;
    let job = page.text("document.querySelector('#wanted button.show').textContent")?;
    let at = page.number("Number(document.querySelector('#wanted button.show').dataset.atUs) * 1000")?;
    page.expect("document.querySelector('#wanted tbody').rows.length === 3")?;
    page.click("#wanted button.show")?;
    let shown =
        "document.querySelector('#wanted').closest('section').querySelector('figure[data-kind=responses]')";
    page.until(&format!("{shown}.querySelector('.canvas[data-drawn]') !== null"))?;
    let edge = |name: &str| page.number(&format!("figures.plots.get({shown}).uplot.scales.x.{name}"));
    let (from, until) = (edge("min")?, edge("max")?);
    ensure!(from < at && at < until && until - from < 1e9, "{job} at {at} is not in {from} to {until}");
    page.expect(&format!("figures.streams[{shown}.dataset.stream].mark.name === {job:?}"))
}

fn compared(page: &Opened) -> Result {
    ensure!(lightness(page)? > 200.0, "the page is not light at first");
    page.system("screen", "dark")?;
    page.until("document.getElementById('theme').textContent === 'Light'")?;
    ensure!(lightness(page)? < 60.0, "the page is not dark where the system is");
    page.click("#theme")?;
    ensure!(lightness(page)? > 200.0, "the button does not make it light");
    page.system("screen", "light")?;
    page.expect("document.querySelectorAll('.contents a').length >= 2")?;
    contrast_of(page)
}

fn without(page: &Opened) -> Result {
    page.expect("document.getElementById('recording').textContent.includes('punctual record -o DIR')")?;
    page.expect(
        "document.querySelector('figure[data-kind=raster], figure[data-kind=cost], \
                 figure[data-kind=response]') === null",
    )?;
    page.expect("document.querySelectorAll('.missing a[href=\"#recording\"]').length >= 4")?;
    page.scroll_to("figure[data-kind=arrivals]")?;
    page.until("document.querySelector('figure[data-kind=arrivals] .canvas[data-drawn]') !== null")
}

fn many(page: &Opened) -> Result {
    page.expect("document.querySelectorAll('section.task').length === 150")?;
    page.expect("document.querySelectorAll('canvas').length < 12")?;
    // Through the whole page, one screen after the other.
    let height = page.number("document.documentElement.scrollHeight")?;
    let mut at = 0.0;
    while at < height {
        page.ask(&format!("scrollTo({{ top: {at}, behavior: 'instant' }})"))?;
        page.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")?;
        at += 20_000.0;
    }
    page.until(
        "figures.visible.size > 0 && [...figures.visible].every((figure) => \
                figure.querySelector('.canvas[data-drawn]'))",
    )?;
    let canvases = page.number("document.querySelectorAll('canvas').length")?;
    ensure!(canvases <= 60.0, "{canvases} figures stay drawn");
    // Back at the first, which may have been thrown away.
    page.scroll_to("figure.plot")?;
    page.until("document.querySelector('figure.plot .canvas[data-drawn]') !== null")
}
