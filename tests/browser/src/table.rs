//! The table of tasks: sorts, filters, leads to the tasks.

use crate::browser::Opened;
use crate::{Result, Row, ensure, plant};

const WIDE: (u32, u32) = (1400, 1000);

pub const ALL: &[Row] = &[
    ("table: all tasks, most urgent first, those with few jobs last", WIDE, all),
    ("table: sorts by figures, by words, and not at all", WIDE, sorts),
    ("table: sorts by keyboard", WIDE, sorts_by_key),
    ("table: filters by the typed text, and counts the remaining rows", WIDE, filters),
    ("table: a row links to its task", WIDE, leads),
    ("table: names are escaped", WIDE, hostile),
    ("table: fits beside the contents, notes and all", WIDE, fits),
];

/// Names of the rows that are shown, in order.
fn names(page: &Opened) -> Result<Vec<String>> {
    let names = page.ask(
        "[...document.querySelectorAll('#overview tbody tr')].filter((row) => !row.hidden).map((row) \
              => row.cells[0].querySelector('bdi').textContent)",
    )?;
    Ok(serde_json::from_value(names)?)
}

/// The head of a column.
fn head(page: &Opened, title: &str) -> Result<String> {
    page.ask(&format!(
        "[...document.querySelectorAll('#overview th button')].find((button) => button.textContent === \
         {title:?}).id = 'wanted'"
    ))?;
    Ok("#wanted".into())
}

const URGENT_FIRST: [&str; 11] = [
    "control",
    "suspending",
    "burst",
    "random",
    // Four phases, behind their sum.
    plant::HOSTILE,
    plant::HOSTILE,
    plant::HOSTILE,
    plant::HOSTILE,
    plant::HOSTILE,
    "skipping",
    "once",
];

fn all(page: &Opened) -> Result {
    // Not those that the terminal does not show: best effort, one job, or phases that are summed up.
    let found = names(page)?;
    ensure!(found.len() == 6 && !found.contains(&"once".into()), "{found:?}");
    page.expect("document.getElementById('shown').value === '6 of 11 rows'")?;
    page.click("#folded")?;
    let found = names(page)?;
    ensure!(found == URGENT_FIRST, "{found:?}");
    page.expect("document.getElementById('shown').value === '11 rows'")?;
    page.expect("document.querySelectorAll('#overview tbody tr.brief').length === 1")
}

fn fits(page: &Opened) -> Result {
    page.expect("[...document.querySelectorAll('#overview th[scope=col]')].at(-1).textContent === 'Notes'")?;
    let [wide, seen] = ["scrollWidth", "clientWidth"]
        .map(|side| page.number(&format!("document.querySelector('#tasks .scroll').{side}")));
    let (wide, seen) = (wide?, seen?);
    ensure!(wide <= seen, "the table is {wide} wide, and {seen} of it are in view");
    // Figures stand on one line, however many lines the notes beside them take.
    page.expect(
        "[...document.querySelectorAll('#overview td.figure')].every((cell) => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            return new Set([...text.getClientRects()].map((line) => line.top)).size <= 1;
        })",
    )
}

fn sorts(page: &Opened) -> Result {
    page.click("#folded")?;
    let jobs = head(page, "Jobs")?;
    page.expect(
        "[...document.querySelectorAll('#overview thead th')].every((head) => \
                 head.getAttribute('aria-sort') === 'none')",
    )?;
    page.click(&jobs)?;
    page.expect("document.querySelector('#wanted').parentElement.getAttribute('aria-sort') === 'ascending'")?;
    let ascending = names(page)?;
    ensure!(
        ascending.first().is_some_and(|name| name == "once")
            && ascending.last().is_some_and(|name| name == "control"),
        "{ascending:?}"
    );
    page.click(&jobs)?;
    page.expect(
        "document.querySelector('#wanted').parentElement.getAttribute('aria-sort') === 'descending'",
    )?;
    let descending = names(page)?;
    ensure!(descending.iter().eq(ascending.iter().rev()), "{ascending:?} {descending:?}");
    page.click(&jobs)?;
    ensure!(names(page)? == URGENT_FIRST, "the third click does not restore the order");

    // 5 ms comes before 20 ms, although its text does not; what has no period comes last.
    page.ask("document.getElementById('wanted').id = ''")?;
    let period = head(page, "Period or arrival")?;
    page.click(&period)?;
    let by_period = names(page)?;
    ensure!(
        by_period[..4] == ["random", "control", "skipping", plant::HOSTILE] && by_period[10] == "once",
        "{by_period:?}"
    );

    page.ask("document.getElementById('wanted').id = ''")?;
    let thread = head(page, "Thread")?;
    page.click(&thread)?;
    page.expect("document.querySelectorAll('[aria-sort=ascending], [aria-sort=descending]').length === 1")?;
    let by_name = names(page)?;
    ensure!(by_name[5..] == ["burst", "control", "once", "random", "skipping", "suspending"], "{by_name:?}");
    Ok(())
}

fn sorts_by_key(page: &Opened) -> Result {
    head(page, "Max cost")?;
    page.ask("document.getElementById('wanted').focus()")?;
    page.press("Enter")?;
    page.press("Enter")?;
    page.expect(
        "document.querySelector('#wanted').parentElement.getAttribute('aria-sort') === 'descending'",
    )?;
    let found = names(page)?;
    ensure!(found[0] == "random" && found[1] == "control", "{found:?}");
    Ok(())
}

fn filters(page: &Opened) -> Result {
    page.click("#filter")?;
    page.write("ST FIFO")?;
    let found = names(page)?;
    ensure!(found == ["burst"], "{found:?}");
    page.expect("document.getElementById('shown').value === '1 of 11 rows'")?;
    for _ in 0..7 {
        page.press("Backspace")?;
    }
    page.expect("document.getElementById('shown').value === '6 of 11 rows'")?;
    // The command line is not in the table, but is known.
    page.write("line=<2>")?;
    page.expect("document.getElementById('shown').value === '11 rows'")?;
    page.write(" nothing")?;
    page.expect("document.getElementById('shown').value === '0 of 11 rows'")
}

fn leads(page: &Opened) -> Result {
    page.click("#overview tbody tr:nth-child(2) a")?;
    page.until(
        "location.hash !== '' && document.querySelector(location.hash).getBoundingClientRect().top < \
                innerHeight / 2",
    )?;
    page.expect(
        "document.querySelector(location.hash).querySelector('h2 bdi').textContent === 'suspending'",
    )?;
    page.until("document.querySelector(location.hash + ' .canvas[data-drawn]') !== null")
}

fn hostile(page: &Opened) -> Result {
    page.expect("document.images.length === 0")?;
    page.expect(&format!(
        "[...document.querySelectorAll('h2 bdi')].filter((name) => name.textContent === {:?}).length === 4",
        plant::HOSTILE
    ))?;
    page.expect(
        "[...document.querySelectorAll('.task p')].some((line) => \
                 line.textContent.includes(\"--line=<2> & 'more'\"))",
    )
}
