//! Opens the HTML report in headless Chromium and uses it as a person would, with mouse and keys.
//!
//! Every row of a table is a test. Without a browser each says so and counts as ignored. No test asserts how
//! long something takes. With `BROWSER_PICTURES=FOLDER` each leaves a picture.

mod browser;
mod devtools;
mod figures;
mod flow;
mod latency;
mod look;
mod plant;
mod table;

use browser::Opened;
use devtools::Chromium;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use plant::Plant;
use punctual_model::Task;
pub use punctual_test_support::{Result, ensure, fail};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// A row of a table: a name, the size of the window, and the test.
pub type Row = (&'static str, (u32, u32), fn(&Opened) -> Result);

/// The pages that tests open, written once, and the browser that opens them.
pub struct Pages {
    chromium: Chromium,
    folder: tempfile::TempDir,
    /// The model of the small page.
    plant: Plant,
}

/// Made by the first test that needs them; deleted with the browser after the last.
static PAGES: Mutex<Option<Arc<Pages>>> = Mutex::new(None);

/// The pages.
pub fn pages() -> Result<Arc<Pages>> {
    let mut pages = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pages) = &*pages {
        return Ok(pages.clone());
    }
    let (folder, plant) = (tempfile::tempdir()?, Plant::small());
    let large = Plant::large(150);
    for (name, text) in [
        ("small", plant.page()),
        ("without", plant.page_without_recording()),
        ("large", large.page()),
        ("flow", flow::page()?),
        ("latency", latency::page()?),
        ("compared", plant.compared()?),
    ] {
        std::fs::write(folder.path().join(format!("{name}.html")), text)?;
    }
    Ok(pages.insert(Arc::new(Pages { chromium: Chromium::start()?, folder, plant })).clone())
}

impl Pages {
    /// A task of the small page's model.
    pub fn task(&self, name: &str) -> Result<&Task> {
        Ok(self
            .plant
            .model
            .tasks()
            .iter()
            .find(|task| task.name == name)
            .ok_or_else(|| format!("there is no task {name}"))?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.html"))
    }
}

/// Opens a page, runs a test on it, and checks that the browser has no complaints.
fn run(name: &str, page: &str, (width, height): (u32, u32), test: fn(&Opened) -> Result) -> Result {
    let pages = pages()?;
    let opened = Opened::new(&pages.chromium, &pages.path(page), width, height)?;
    let result = test(&opened);
    opened.picture(name)?;
    result?;
    opened.wait_until_idle()?;
    let complaints = opened.complaints();
    ensure!(complaints.is_empty(), "the browser complains:\n{}", complaints.join("\n"));
    let (own, asked): (Vec<String>, Vec<String>) =
        opened.requests().into_iter().partition(|url| url.ends_with(&format!("/{page}.html")));
    ensure!(!own.is_empty(), "the browser does not report requests");
    ensure!(asked.is_empty(), "the page asked for {}", asked.join(", "));
    Ok(())
}

fn trial(page: &'static str, (name, size, test): Row) -> Trial {
    Trial::ignorable_test(name, move || {
        if devtools::installed().is_none() {
            return Ok(Completion::ignored_with(
                "there is no Chromium: install the package chromium, or set CHROMIUM to where it is",
            ));
        }
        run(name, page, size, test)
            .map(|()| Completion::Completed)
            .map_err(|failure| Failed::from(failure.message))
    })
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // A page that is not in front is not drawn, and browsers are large.
    arguments.test_threads = Some(1);
    let tables = [
        ("small", table::ALL),
        ("small", figures::ALL),
        ("small", look::ALL),
        ("without", look::WITHOUT),
        ("large", look::LARGE),
        ("flow", flow::ALL),
        ("latency", latency::ALL),
        ("compared", look::COMPARED),
    ];
    let trials =
        tables.into_iter().flat_map(|(page, rows)| rows.iter().map(move |row| trial(page, *row))).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(PAGES.lock().unwrap_or_else(PoisonError::into_inner).take());
    conclusion.exit_code()
}
