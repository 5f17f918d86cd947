//! A page in the browser: its reports, its script, keys and mouse.

use crate::devtools::{Chromium, Event, PATIENCE};
use crate::{Result, ensure, fail};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The folder where each test leaves a picture at its end, if any.
fn pictures() -> Option<PathBuf> {
    std::env::var_os("BROWSER_PICTURES").map(PathBuf::from)
}

/// An open page; closed when the test ends.
pub struct Opened<'a> {
    chromium: &'a Chromium,
    target: String,
    session: String,
    /// The document that was loaded, as the protocol names it.
    document: Value,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // A page that cannot be closed ends with the browser.
        let _ = self.chromium.close(&self.target, &self.session);
    }
}

impl<'a> Opened<'a> {
    /// Opens a file in a window of this size.
    pub fn new(chromium: &'a Chromium, page: &Path, width: u32, height: u32) -> Result<Self> {
        let target = chromium.call(None, "Target.createTarget", json!({ "url": "about:blank" }))?;
        let target = id(&target, "targetId")?;
        let attach = json!({ "targetId": target, "flatten": true });
        let session = id(&chromium.call(None, "Target.attachToTarget", attach)?, "sessionId")?;
        let mut opened = Opened { chromium, target, session, document: Value::Null };
        for domain in ["Inspector", "Log", "Runtime", "Network", "Page"] {
            opened.call(&format!("{domain}.enable"), json!({}))?;
        }
        opened.call("Page.setLifecycleEventsEnabled", json!({ "enabled": true }))?;
        opened.window(width, height)?;
        opened.call("Page.bringToFront", json!({}))?;
        let url = format!("file://{}", page.display());
        let mut navigated = opened.call("Page.navigate", json!({ "url": url }))?;
        ensure!(navigated["errorText"].is_null(), "{url}: {}", navigated["errorText"]);
        opened.document = navigated["loaderId"].take();
        opened.wait_until("load")?;
        Ok(opened)
    }

    fn call(&self, method: &str, parameters: Value) -> Result<Value> {
        self.chromium.call(Some(&self.session), method, parameters)
    }

    /// Waits for an event in the life of the document.
    fn wait_until(&self, name: &str) -> Result {
        self.chromium.wait_for(&self.session, &format!("event {name:?} of the page"), |event| {
            event.method == "Page.lifecycleEvent"
                && event.parameters["name"] == name
                && event.parameters["loaderId"] == self.document
        })
    }

    /// Waits until nothing has been requested for half a second since the page was loaded.
    pub fn wait_until_idle(&self) -> Result {
        self.wait_until("networkIdle")
    }

    /// Resizes the window.
    pub fn window(&self, width: u32, height: u32) -> Result {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size)?;
        Ok(())
    }

    /// Sets the system's colours to dark or light, or the medium to paper.
    pub fn system(&self, medium: &str, colours: &str) -> Result {
        let features = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": medium, "features": features }))?;
        Ok(())
    }

    /// The value of an expression.
    pub fn ask(&self, expression: &str) -> Result<Value> {
        // By value, whatever it is: as JSON.
        let wrapped = format!("(async () => JSON.stringify(await ({expression}) ?? null))()");
        let asked = json!({ "expression": wrapped, "awaitPromise": true });
        let answer = self
            .call("Runtime.evaluate", asked)
            .map_err(|failure| format!("{expression}: {}", failure.message))?;
        let text = answer["result"]["value"]
            .as_str()
            .ok_or_else(|| format!("{expression}: {}", answer["result"]["description"]))?;
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
        let limit = PATIENCE.as_millis() / 2;
        let found = self.ask(&format!(
            "(async () => {{
                const end = performance.now() + {limit};
                while (!({condition})) {{
                    if (performance.now() > end) return 'not within {limit} ms';
                    await new Promise(requestAnimationFrame);
                }}
                return true;
            }})().catch((error) => error.message)"
        ))?;
        ensure!(found == true, "never so: {condition}: {found}");
        Ok(())
    }

    /// Checks that an expression is true.
    pub fn expect(&self, condition: &str) -> Result {
        match self.ask(condition)? {
            Value::Bool(true) => Ok(()),
            other => fail(format!("{condition}: {other}")),
        }
    }

    /// Scrolls an element into view and waits until the page knows what is in view: its observers are told in
    /// the same frame as this one. Until then it draws nothing, and nothing is there to wait for.
    pub fn scroll_to(&self, selector: &str) -> Result {
        self.ask(&format!(
            "new Promise((done) => {{
                const element = document.querySelector({selector:?});
                element.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const observer = new IntersectionObserver(() => {{
                    observer.disconnect();
                    done();
                }});
                observer.observe(element);
            }})"
        ))?;
        Ok(())
    }

    /// Presses a key as a person would.
    pub fn press(&self, key: &str) -> Result {
        let (code, number) = on_keyboard(key).ok_or_else(|| format!("no key is known as {key:?}"))?;
        let text = match key {
            "Enter" => "\r",
            _ if key.chars().count() == 1 => key,
            _ => "",
        };
        for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
            let text = if kind == "keyUp" { "" } else { text };
            self.call(
                "Input.dispatchKeyEvent",
                json!({
                    "type": kind,
                    "key": key,
                    "code": code,
                    "text": text,
                    "windowsVirtualKeyCode": number,
                    "nativeVirtualKeyCode": number,
                }),
            )?;
        }
        Ok(())
    }

    /// Types a text as a person would.
    pub fn write(&self, text: &str) -> Result {
        text.chars().try_for_each(|character| self.press(character.encode_utf8(&mut [0; 4])))
    }

    /// Clicks in the middle of an element.
    pub fn click(&self, selector: &str) -> Result {
        let at = self.place(selector, 0.5, 0.5)?;
        self.click_at(at, 1)
    }

    /// Double-clicks in the middle of an element.
    pub fn double_click(&self, selector: &str) -> Result {
        let at = self.place(selector, 0.5, 0.5)?;
        self.click_at(at, 1)?;
        self.click_at(at, 2)
    }

    /// Points at a place of an element, given as shares of its width and height.
    pub fn hover(&self, selector: &str, across: f64, down: f64) -> Result {
        self.mouse("mouseMoved", self.place(selector, across, down)?, 0)
    }

    /// Drags the mouse from one place of an element to another, at half its height.
    pub fn drag(&self, selector: &str, from: f64, until: f64) -> Result {
        self.hover(selector, from, 0.5)?;
        self.mouse("mousePressed", self.place(selector, from, 0.5)?, 1)?;
        for step in 1..=4 {
            self.hover(selector, from + (until - from) * f64::from(step) / 4.0, 0.5)?;
        }
        self.mouse("mouseReleased", self.place(selector, until, 0.5)?, 1)
    }

    fn place(&self, selector: &str, across: f64, down: f64) -> Result<(f64, f64)> {
        let place = self.ask(&format!(
            "(() => {{
                const box = document.querySelector({selector:?}).getBoundingClientRect();
                return [box.left + box.width * {across}, box.top + box.height * {down}];
            }})()"
        ))?;
        Ok(serde_json::from_value(place)?)
    }

    fn click_at(&self, at: (f64, f64), clicks: u32) -> Result {
        self.mouse("mousePressed", at, clicks)?;
        self.mouse("mouseReleased", at, clicks)
    }

    fn mouse(&self, kind: &str, (x, y): (f64, f64), clicks: u32) -> Result {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        self.call(
            "Input.dispatchMouseEvent",
            json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": clicks }),
        )?;
        Ok(())
    }

    /// The browser's complaints so far: script errors, violations of the page's policy, console messages.
    pub fn complaints(&self) -> Vec<String> {
        let complaint = |event: Event| match event.method.as_str() {
            "Runtime.exceptionThrown" => Some(event.parameters["exceptionDetails"].to_string()),
            "Log.entryAdded" => {
                let entry = &event.parameters["entry"];
                Some(format!("{}: {}", entry["level"], entry["text"]))
            }
            "Runtime.consoleAPICalled" => Some(format!("console: {}", event.parameters["args"])),
            _ => None,
        };
        self.chromium.events(&self.session).into_iter().filter_map(complaint).collect()
    }

    /// The addresses of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        let address = |event: Event| {
            let is_request = event.method == "Network.requestWillBeSent";
            is_request.then(|| event.parameters["request"]["url"].as_str().unwrap_or_default().to_owned())
        };
        self.chromium.events(&self.session).into_iter().filter_map(address).collect()
    }

    /// Saves a picture, if requested.
    pub fn picture(&self, name: &str) -> Result {
        let Some(folder) = pictures() else { return Ok(()) };
        let png = self.call("Page.captureScreenshot", json!({ "format": "png" }))?;
        std::fs::write(folder.join(format!("{name}.png")), bytes(&png)?)?;
        Ok(())
    }

    /// The page as printed.
    pub fn printed(&self) -> Result<Vec<u8>> {
        bytes(&self.call("Page.printToPDF", json!({}))?)
    }
}

/// A name that the browser gave.
fn id(answer: &Value, field: &str) -> Result<String> {
    Ok(answer[field].as_str().ok_or_else(|| format!("there is no {field} in {answer}"))?.into())
}

/// The bytes in an answer.
fn bytes(answer: &Value) -> Result<Vec<u8>> {
    Ok(BASE64_STANDARD.decode(id(answer, "data")?)?)
}

/// A key's place on a US keyboard, and its number.
fn on_keyboard(key: &str) -> Option<(String, u32)> {
    let (code, number) = match key {
        "Backspace" => (key, 8),
        "Tab" => (key, 9),
        "Enter" => (key, 13),
        "Escape" => (key, 27),
        " " => ("Space", 32),
        "End" => (key, 35),
        "Home" => (key, 36),
        "ArrowLeft" => (key, 37),
        "ArrowRight" => (key, 39),
        "+" => ("NumpadAdd", 107),
        "=" => ("Equal", 187),
        "<" => ("Comma", 188),
        ">" => ("Period", 190),
        _ => {
            let capital = key.to_ascii_uppercase();
            let character = capital.chars().next().filter(|_| key.len() == 1)?;
            let row = if character.is_ascii_digit() { "Digit" } else { "Key" };
            return character.is_ascii_alphanumeric().then(|| (format!("{row}{capital}"), character.into()));
        }
    };
    Some((code.into(), number))
}
