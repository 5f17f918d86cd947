//! A browser with a page: its reports, its script, keys and mouse.

use crate::{Result, fail};
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::protocol::cdp::{Emulation, Input, Network, Page};
use headless_chrome::{Browser, LaunchOptions, Tab};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time limit of waits, far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Chromium: `CHROMIUM`, otherwise the one on the path.
pub fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

/// The folder where each test leaves a picture at its end, if any.
fn pictures() -> Option<PathBuf> {
    std::env::var_os("BROWSER_PICTURES").map(PathBuf::from)
}

/// One browser for all tests, with a tab for each: starting one takes longer than most tests.
pub struct Chromium(Browser);

impl Chromium {
    /// Starts it.
    pub fn start() -> Result<Self> {
        let options = LaunchOptions::default_builder()
            .path(chromium())
            // As root there is no sandbox.
            .sandbox(false)
            .idle_browser_timeout(PATIENCE * 10)
            .args(vec![OsStr::new("--force-color-profile=srgb"), OsStr::new("--hide-scrollbars")])
            .build()?;
        Ok(Chromium(Browser::new(options)?))
    }
}

/// An open page; closed when the test ends.
pub struct Opened {
    tab: Arc<Tab>,
    complaints: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A tab that cannot be closed ends with the browser.
        let _ = self.tab.close(false);
    }
}

impl Opened {
    /// Opens a file in a window of this size.
    pub fn new(chromium: &Chromium, page: &Path, width: u32, height: u32) -> Result<Self> {
        let tab = chromium.0.new_tab()?;
        tab.set_default_timeout(PATIENCE);
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (complained, requested) = (complaints.clone(), requests.clone());
        tab.add_event_listener(Arc::new(move |event: &Event| match event {
            Event::RuntimeExceptionThrown(thrown) => {
                push(&complained, format!("{:?}", thrown.params.exception_details))
            }
            Event::LogEntryAdded(added) => {
                push(&complained, format!("{:?}: {}", added.params.entry.level, added.params.entry.text))
            }
            Event::RuntimeConsoleAPICalled(called) => {
                push(&complained, format!("console: {:?}", called.params.args))
            }
            Event::NetworkRequestWillBeSent(sent) => push(&requested, sent.params.request.url.clone()),
            _ => {}
        }))?;
        tab.enable_log()?.enable_runtime()?;
        tab.call_method(Network::Enable {
            max_total_buffer_size: None,
            max_resource_buffer_size: None,
            max_post_data_size: None,
            report_direct_socket_traffic: None,
            enable_durable_messages: None,
        })?;
        let opened = Opened { tab, complaints, requests };
        opened.window(width, height)?;
        opened.tab.bring_to_front()?;
        opened.tab.navigate_to(&format!("file://{}", page.display()))?.wait_until_navigated()?;
        Ok(opened)
    }

    /// Resizes the window.
    pub fn window(&self, width: u32, height: u32) -> Result {
        self.tab.call_method(Emulation::SetDeviceMetricsOverride {
            width,
            height,
            device_scale_factor: 1.0,
            mobile: false,
            scale: None,
            screen_width: None,
            screen_height: None,
            position_x: None,
            position_y: None,
            dont_set_visible_size: None,
            screen_orientation: None,
            viewport: None,
            display_feature: None,
            device_posture: None,
        })?;
        Ok(())
    }

    /// Sets the system's colours to dark or light, or the medium to paper.
    pub fn system(&self, medium: &str, colours: &str) -> Result {
        let feature = Emulation::MediaFeature { name: "prefers-color-scheme".into(), value: colours.into() };
        self.tab.call_method(Emulation::SetEmulatedMedia {
            media: Some(medium.into()),
            features: Some(vec![feature]),
        })?;
        Ok(())
    }

    /// The value of an expression.
    pub fn ask(&self, expression: &str) -> Result<Value> {
        // By value, whatever it is: as JSON.
        let wrapped = format!("(async () => JSON.stringify(await ({expression}) ?? null))()");
        let object = self.tab.evaluate(&wrapped, true).map_err(|error| format!("{expression}: {error}"))?;
        let text = object
            .value
            .as_ref()
            .and_then(Value::as_str)
            .ok_or_else(|| format!("{expression}: {:?}", object.description))?;
        Ok(serde_json::from_str(text)?)
    }

    /// A text.
    pub fn text(&self, expression: &str) -> Result<String> {
        let value = self.ask(expression)?;
        Ok(value.as_str().map_or_else(|| value.to_string(), Into::into))
    }

    /// A number.
    pub fn number(&self, expression: &str) -> Result<f64> {
        let value = self.ask(expression)?;
        value.as_f64().ok_or_else(|| format!("{expression} is {value}, no number").into())
    }

    /// Waits, frame by frame, until an expression is true.
    pub fn until(&self, condition: &str) -> Result {
        let wait = format!(
            "new Promise((done, failed) => {{
                const end = performance.now() + {};
                const look = () => ({condition}) ? done(true)
                    : performance.now() > end ? failed(new Error('never so'))
                    : requestAnimationFrame(look);
                look();
            }})",
            PATIENCE.as_millis() / 2
        );
        self.ask(&wrap_failure(&wait))?
            .as_bool()
            .filter(|is_true| *is_true)
            .map(|_| ())
            .ok_or_else(|| format!("never so: {condition}").into())
    }

    /// Checks that an expression is true.
    pub fn expect(&self, condition: &str) -> Result {
        match self.ask(condition)? {
            Value::Bool(true) => Ok(()),
            other => fail(format!("{condition}: {other}")),
        }
    }

    /// Scrolls an element into view and waits until it is there.
    pub fn scroll_to(&self, selector: &str) -> Result {
        self.ask(&format!(
            "document.querySelector({selector:?}).scrollIntoView({{ block: 'center', behavior: 'instant' }})"
        ))?;
        Ok(())
    }

    /// Presses a key as a person would.
    pub fn press(&self, key: &str) -> Result {
        self.tab.press_key(key)?;
        Ok(())
    }

    /// Types a text as a person would.
    pub fn write(&self, text: &str) -> Result {
        self.tab.type_str(text)?;
        Ok(())
    }

    /// Clicks in the middle of an element.
    pub fn click(&self, selector: &str) -> Result {
        let (x, y) = self.place(selector, 0.5, 0.5)?;
        self.mouse(Input::DispatchMouseEventTypeOption::MousePressed, x, y, 1)?;
        self.mouse(Input::DispatchMouseEventTypeOption::MouseReleased, x, y, 1)
    }

    /// Double-clicks in the middle of an element.
    pub fn double_click(&self, selector: &str) -> Result {
        let (x, y) = self.place(selector, 0.5, 0.5)?;
        for clicks in 1..=2 {
            self.mouse(Input::DispatchMouseEventTypeOption::MousePressed, x, y, clicks)?;
            self.mouse(Input::DispatchMouseEventTypeOption::MouseReleased, x, y, clicks)?;
        }
        Ok(())
    }

    /// Points at a place of an element, given as shares of its width and height.
    pub fn hover(&self, selector: &str, across: f64, down: f64) -> Result {
        let (x, y) = self.place(selector, across, down)?;
        self.mouse(Input::DispatchMouseEventTypeOption::MouseMoved, x, y, 0)
    }

    /// Drags the mouse from one place of an element to another, at half its height.
    pub fn drag(&self, selector: &str, from: f64, until: f64) -> Result {
        self.hover(selector, from, 0.5)?;
        let (x, y) = self.place(selector, from, 0.5)?;
        self.mouse(Input::DispatchMouseEventTypeOption::MousePressed, x, y, 1)?;
        for step in 1..=4 {
            self.hover(selector, from + (until - from) * f64::from(step) / 4.0, 0.5)?;
        }
        let (x, y) = self.place(selector, until, 0.5)?;
        self.mouse(Input::DispatchMouseEventTypeOption::MouseReleased, x, y, 1)
    }

    fn place(&self, selector: &str, across: f64, down: f64) -> Result<(f64, f64)> {
        let rectangle = format!("document.querySelector({selector:?}).getBoundingClientRect()");
        let side = |name: &str| self.number(&format!("{rectangle}.{name}"));
        Ok((side("left")? + side("width")? * across, side("top")? + side("height")? * down))
    }

    fn mouse(&self, kind: Input::DispatchMouseEventTypeOption, x: f64, y: f64, clicks: u32) -> Result {
        let moved = kind == Input::DispatchMouseEventTypeOption::MouseMoved;
        self.tab.call_method(Input::DispatchMouseEvent {
            Type: kind,
            x,
            y,
            modifiers: None,
            timestamp: None,
            button: (!moved).then_some(Input::MouseButton::Left),
            buttons: None,
            click_count: Some(clicks),
            force: None,
            tangential_pressure: None,
            tilt_x: None,
            tilt_y: None,
            twist: None,
            delta_x: None,
            delta_y: None,
            pointer_Type: None,
        })?;
        Ok(())
    }

    /// The browser's complaints so far: script errors, violations of the page's policy, console messages.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Saves a picture, if requested.
    pub fn picture(&self, name: &str) -> Result {
        let Some(folder) = pictures() else { return Ok(()) };
        let png = self.tab.capture_screenshot(Page::CaptureScreenshotFormatOption::Png, None, None, true)?;
        std::fs::write(folder.join(format!("{name}.png")), png)?;
        Ok(())
    }

    /// The page as printed.
    pub fn printed(&self) -> Result<Vec<u8>> {
        Ok(self.tab.print_to_pdf(None)?)
    }
}

fn push(list: &Mutex<Vec<String>>, text: String) {
    list.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}

fn wrap_failure(promise: &str) -> String {
    format!("{promise}.catch((error) => error.message)")
}
