//! Separators of contracts: which streams of a timing model they mean, and what to call one so that the next
//! run of the program has it, too.

use super::group::LEAST_JOBS;
use punctual_model::{Object, Separator, Stream, Task};

/// The stream of the separator that explains a task best.
pub fn primary(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

/// The separators that the text of a contract means: a glob for their names.
pub struct Meant {
    text: String,
    pattern: Option<glob::Pattern>,
}

impl Meant {
    /// What `text` means.
    pub fn new(text: &str) -> Meant {
        Meant { text: text.to_owned(), pattern: glob::Pattern::new(text).ok() }
    }

    /// Whether a separator is one of them. One at an address may be called by the address, too.
    pub fn has(&self, separator: Separator) -> bool {
        let is_called = |separator: Separator| {
            let name = separator.to_string();
            self.pattern.as_ref().map_or(name == self.text, |pattern| pattern.matches(&name))
        };
        is_called(separator.lasting()) || (separator.object.name().is_some() && is_called(separator.key()))
    }

    /// Whether a separator could be one of them, but its address has no name.
    pub fn lacks_name(&self, separator: Separator) -> bool {
        let object = self.text.strip_prefix(separator.call.name()).and_then(|rest| rest.strip_prefix(' '));
        let is_unnamed = matches!(separator.object, Object::Address { name: None, .. });
        is_unnamed && object.is_some_and(|object| !object.starts_with("0x")) && !self.has(separator)
    }
}

/// The streams of a task at the separator of a contract; if that names none, the primary stream.
pub fn meant<'a>(task: &'a Task, separator: Option<&str>) -> Vec<&'a Stream> {
    let Some(separator) = separator else { return primary(task).into_iter().collect() };
    let meant = Meant::new(separator);
    task.streams.iter().filter(|stream| meant.has(stream.separator)).collect()
}

/// The same separator when the program runs again: descriptors and addresses have other numbers then. By the
/// name of its address, unless jobs of other tasks end at other addresses. Else exact where other descriptors
/// are in use with the same call; `None` where other addresses are.
pub fn separator_pattern<'a>(
    separator: Separator,
    mut tasks: impl Iterator<Item = &'a Task> + Clone,
) -> Option<String> {
    let key = separator.lasting();
    let exact = glob::Pattern::escape(&key.to_string());
    let call = glob::Pattern::escape(&key.call.to_string());
    let object = match key.object {
        Object::Address { .. } => "*".to_owned(),
        Object::Id(_) => "id *".to_owned(),
        Object::File { class, .. } => format!("{} fd *", glob::Pattern::escape(class.name())),
        Object::None | Object::Clock { .. } | Object::Others => return Some(exact),
    };
    let general = format!("{call} {object}");
    let (by_name, all) = (Meant::new(&exact), Meant::new(&general));
    let count = |task: &Task, meant: &Meant| task.streams.iter().filter(|it| meant.has(it.separator)).count();
    let ends_elsewhere =
        |task: &Task| primary(task).is_some_and(|it| it.jobs >= LEAST_JOBS && all.has(it.separator));
    let has_it = |task: &Task| count(task, &by_name) > 0 || !ends_elsewhere(task);
    if key.object.name().is_some() && tasks.clone().all(has_it) {
        return Some(exact);
    }
    match tasks.all(|task| count(task, &all) <= 1) {
        true => Some(general),
        false => (!matches!(key.object, Object::Address { .. } | Object::Id(_))).then_some(exact),
    }
}
