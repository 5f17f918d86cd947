//! What a person sees of a live observation and does with keys: order, filter, selection, pages, freezing.

use super::Live;
use punctual_model::Instant;
use punctual_report::figures::{LIVE, Unit, Value};
use punctual_report::live::{Body, Details, Foot, Head, LiveTask, Screen, Tab, Tasks, Trend, rows_on};
use std::cmp::Ordering;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// F1.
    Help,
    /// Ctrl-C.
    Interrupt,
}

/// What a terminal reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// Nothing for a while, or its size changed: time to draw.
    Redraw,
    /// It is gone.
    Closed,
}

/// What a key asks for beyond another view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// To end.
    Quit,
    /// To save the timing model.
    Save,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Tasks,
    Details { tid: u32, tab: Tab },
    Help,
}

/// What is shown of an observation, and how.
pub struct View {
    target: String,
    page: Page,
    head: Head,
    /// All threads, in order.
    tasks: Vec<LiveTask>,
    /// Those shown, as places in `tasks`.
    shown: Vec<usize>,
    details: Option<Details>,
    sorted_by: usize,
    is_descending: bool,
    trend: Trend,
    shows_all: bool,
    filter: String,
    is_typing: bool,
    selected: Option<u32>,
    /// The first line on the screen: of threads, and of the page above them.
    first: usize,
    scrolled: usize,
    /// Lines on the screen, and its width.
    rows: usize,
    width: u16,
    is_frozen: bool,
    has_ended: bool,
    message: Option<String>,
    colour: bool,
}

impl View {
    /// All threads, closest to their deadlines first. `target` names what is watched.
    pub fn new(target: String, colour: bool) -> View {
        let first = LIVE.iter().position(|entry| entry.figure.field == "of_deadline");
        View {
            head: Head { target: target.clone(), ..Head::default() },
            target,
            page: Page::Tasks,
            tasks: Vec::new(),
            shown: Vec::new(),
            details: None,
            sorted_by: first.unwrap_or(0),
            is_descending: true,
            trend: Trend::default(),
            shows_all: false,
            filter: String::new(),
            is_typing: false,
            selected: None,
            first: 0,
            scrolled: 0,
            rows: 1,
            width: 80,
            is_frozen: false,
            has_ended: false,
            message: None,
            colour,
        }
    }

    /// The screen has another size.
    pub fn resize(&mut self, width: u16, height: u16) {
        (self.width, self.rows) = (width, rows_on(height).max(1));
        self.keep_in_sight();
    }

    /// The target has ended.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Shows this in place of the keys, until the next key.
    pub fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    /// Takes what there is now, unless what is shown is frozen.
    pub fn update(&mut self, live: &Live, now: Instant) {
        if self.is_frozen {
            return;
        }
        self.head = Head { has_ended: self.has_ended, ..live.head(&self.target, now) };
        self.tasks = live.tasks(now);
        if let Page::Details { tid, .. } = self.page {
            // Of a thread that is gone, the last that was known stays.
            self.details = live.details(tid, now, self.width).or(self.details.take());
        }
        self.arrange();
    }

    /// Whether the details of a thread are to be shown that are not there yet, although nothing else changes.
    pub fn wants_details(&self) -> Option<(u32, u16)> {
        match self.page {
            Page::Details { tid, .. } if self.details.is_none() => Some((tid, self.width)),
            _ => None,
        }
    }

    /// Takes the details that were wanted.
    pub fn take_details(&mut self, details: Option<Details>) {
        if details.is_none() {
            self.page = Page::Tasks;
            self.say("This thread is gone.".into());
        }
        self.details = details;
    }

    /// What is on the screen.
    pub fn screen(&self) -> Screen<'_> {
        let body = match (&self.page, &self.details) {
            (Page::Help, _) => Body::Help(self.scrolled),
            (Page::Details { tab, .. }, Some(details)) => Body::Details(details, *tab, self.scrolled),
            _ => Body::Tasks(self.tasks_shown()),
        };
        let foot = match (&self.message, self.is_typing) {
            (_, true) => Foot::Filter(&self.filter),
            (Some(message), false) => Foot::Message(message),
            (None, false) => Foot::Keys,
        };
        Screen { head: &self.head, body, foot, colour: self.colour }
    }

    fn tasks_shown(&self) -> Tasks<'_> {
        let last = (self.first + self.rows).min(self.shown.len());
        let rows: Vec<&LiveTask> = self.shown[self.first..last].iter().map(|&at| &self.tasks[at]).collect();
        Tasks {
            selected: rows.iter().position(|task| Some(task.tid) == self.selected),
            rows,
            sorted_by: self.sorted_by,
            is_descending: self.is_descending,
            trend: self.trend,
            total: self.shown.len(),
            above: self.first,
            without_jobs: match self.shows_all {
                true => 0,
                false => self.tasks.iter().filter(|task| !has_jobs(task)).count(),
            },
            filter: &self.filter,
        }
    }

    /// Sorts and filters, and keeps the selected thread in sight.
    fn arrange(&mut self) {
        let entry = &LIVE[self.sorted_by];
        let is_text = matches!(entry.figure.unit, Unit::Words);
        self.tasks.sort_by_cached_key(|task| (rank(task), task.pid, task.tid));
        self.tasks.sort_by(|a, b| {
            let order = match ((entry.value)(a), (entry.value)(b)) {
                (None, None) => Ordering::Equal,
                // What is unknown comes last, in either order.
                (None, Some(_)) => return Ordering::Greater,
                (Some(_), None) => return Ordering::Less,
                (Some(Value::Text(a)), Some(Value::Text(b))) if is_text => a.cmp(&b),
                (Some(a), Some(b)) => a.number().cmp(&b.number()),
            };
            if self.is_descending { order.reverse() } else { order }
        });
        let wanted = self.filter.to_lowercase();
        let is_shown = |task: &LiveTask| {
            (self.shows_all || has_jobs(task))
                && (task.name.to_lowercase().contains(&wanted) || task.tid.to_string().contains(&wanted))
        };
        self.shown = (0..self.tasks.len()).filter(|&at| is_shown(&self.tasks[at])).collect();
        self.keep_in_sight();
    }

    /// Where the selected thread is among those shown.
    fn place(&self) -> Option<usize> {
        self.shown.iter().position(|&at| Some(self.tasks[at].tid) == self.selected)
    }

    fn keep_in_sight(&mut self) {
        let last_page = self.shown.len().saturating_sub(self.rows);
        if let Some(place) = self.place() {
            self.first = self.first.clamp((place + 1).saturating_sub(self.rows), place);
        }
        self.first = self.first.min(last_page);
    }

    fn select(&mut self, place: usize) {
        let place = place.min(self.shown.len().saturating_sub(1));
        self.selected = self.shown.get(place).map(|&at| self.tasks[at].tid);
        self.keep_in_sight();
    }

    /// Obeys a key.
    pub fn key(&mut self, key: Key) -> Action {
        self.message = None;
        if key == Key::Interrupt {
            return Action::Quit;
        }
        if self.is_typing {
            self.type_filter(key);
            return Action::None;
        }
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char('s') => return Action::Save,
            Key::Char(' ') => self.freeze(),
            Key::Char('?' | 'h') | Key::Help => (self.page, self.scrolled) = (Page::Help, 0),
            _ => match self.page {
                Page::Tasks => self.key_on_tasks(key),
                Page::Details { .. } | Page::Help => self.key_on_page(key),
            },
        }
        Action::None
    }

    fn freeze(&mut self) {
        self.is_frozen = !self.is_frozen;
        self.head.is_frozen = self.is_frozen;
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.filter.push(c),
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
        self.arrange();
    }

    fn key_on_tasks(&mut self, key: Key) {
        let place = self.place();
        match key {
            // The first key selects what is in sight.
            Key::Up | Key::Down | Key::Char('j' | 'k') if place.is_none() => self.select(self.first),
            Key::Up | Key::Char('k') => self.select(place.unwrap_or(0).saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select(place.unwrap_or(0) + 1),
            Key::PageUp => self.select(place.unwrap_or(self.first).saturating_sub(self.rows)),
            Key::PageDown => self.select(place.unwrap_or(self.first) + self.rows),
            Key::Home | Key::Char('g') => self.select(0),
            Key::End | Key::Char('G') => self.select(usize::MAX),
            Key::Left | Key::Char('<') => self.sort_by(self.sorted_by + LIVE.len() - 1),
            Key::Right | Key::Char('>') => self.sort_by(self.sorted_by + 1),
            Key::Char('r') => {
                self.is_descending = !self.is_descending;
                self.arrange();
            }
            Key::Char('a') => {
                self.shows_all = !self.shows_all;
                self.arrange();
            }
            Key::Char('t') => {
                self.trend = match self.trend {
                    Trend::Response => Trend::Cost,
                    Trend::Cost => Trend::Response,
                };
            }
            Key::Char('/') => self.is_typing = true,
            Key::Escape => {
                self.filter.clear();
                self.arrange();
            }
            Key::Enter => self.open(),
            _ => {}
        }
    }

    fn sort_by(&mut self, figure: usize) {
        self.sorted_by = figure % LIVE.len();
        // Names from A, numbers from the greatest, priorities from the most urgent.
        self.is_descending = LIVE[self.sorted_by].figure.unit.is_number();
        self.arrange();
    }

    fn open(&mut self) {
        if self.place().is_none() {
            self.select(self.first);
        }
        if let Some(tid) = self.selected {
            self.page = Page::Details { tid, tab: Tab::default() };
            (self.details, self.scrolled) = (None, 0);
        }
    }

    fn key_on_page(&mut self, key: Key) {
        match (key, &mut self.page) {
            (Key::Escape | Key::Backspace, page) => {
                *page = Page::Tasks;
                (self.details, self.scrolled) = (None, 0);
            }
            (Key::Tab | Key::Right, Page::Details { tab, .. }) => {
                *tab = beside(*tab, 1);
                self.scrolled = 0;
            }
            (Key::Left, Page::Details { tab, .. }) => {
                *tab = beside(*tab, Tab::ALL.len() - 1);
                self.scrolled = 0;
            }
            (Key::Up | Key::Char('k'), _) => self.scrolled = self.scrolled.saturating_sub(1),
            (Key::Down | Key::Char('j'), _) => self.scroll(1),
            (Key::PageUp, _) => self.scrolled = self.scrolled.saturating_sub(self.rows),
            (Key::PageDown, _) => self.scroll(self.rows),
            (Key::Home | Key::Char('g'), _) => self.scrolled = 0,
            (Key::End | Key::Char('G'), _) => self.scroll(usize::MAX),
            _ => {}
        }
    }

    /// Not beyond the last page.
    fn scroll(&mut self, lines: usize) {
        let last =
            punctual_report::live::lines(&self.screen(), self.width, self.rows).saturating_sub(self.rows);
        self.scrolled = self.scrolled.saturating_add(lines).min(last);
    }
}

fn beside(tab: Tab, by: usize) -> Tab {
    let place = Tab::ALL.iter().position(|it| *it == tab).unwrap_or(0);
    Tab::ALL[(place + by) % Tab::ALL.len()]
}

/// Two jobs make a stream; a thread that never waits has none.
fn has_jobs(task: &LiveTask) -> bool {
    task.jobs >= 2 || task.never_waits
}

/// The most urgent first.
fn rank(task: &LiveTask) -> u64 {
    Value::Policy(task.policy, task.priority, task.nice).number().unwrap_or(u64::MAX)
}
