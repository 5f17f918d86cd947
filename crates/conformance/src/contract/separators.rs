//! Separators of contracts: which streams of a timing model they mean, and what to call one so that the next
//! run of the program has it, too.

use punctual_model::{Object, Separator, Stream, Task};

/// The stream of the separator that explains a task best.
pub fn primary(task: &Task) -> Option<&Stream> {
    task.streams.get(task.primary?)
}

/// Whether a separator is meant by the text of a contract.
pub fn separator_matcher(text: &str) -> impl Fn(Separator) -> bool + use<> {
    let pattern = glob::Pattern::new(text).ok();
    let text = text.to_owned();
    move |separator| {
        let name = separator.key().to_string();
        pattern.as_ref().map_or(name == text, |pattern| pattern.matches(&name))
    }
}

/// The streams of a task at the separator of a contract; if that names none, the primary stream.
pub fn meant<'a>(task: &'a Task, separator: Option<&str>) -> Vec<&'a Stream> {
    let Some(separator) = separator else { return primary(task).into_iter().collect() };
    let is_meant = separator_matcher(separator);
    task.streams.iter().filter(|stream| is_meant(stream.separator)).collect()
}

/// The same separator when the program runs again: descriptors and addresses have other numbers then. Exact
/// where other descriptors are in use with the same call; `None` where other addresses are.
pub fn separator_pattern<'a>(
    separator: Separator,
    mut tasks: impl Iterator<Item = &'a Task>,
) -> Option<String> {
    let key = separator.key();
    let exact = glob::Pattern::escape(&key.to_string());
    let call = glob::Pattern::escape(&key.call.to_string());
    let object = match key.object {
        Object::Address { .. } => "*".to_owned(),
        Object::Id(_) => "id *".to_owned(),
        Object::File { class, .. } => format!("{} fd *", glob::Pattern::escape(class.name())),
        Object::None | Object::Clock { .. } | Object::Others => return Some(exact),
    };
    let general = format!("{call} {object}");
    let is_meant = separator_matcher(&general);
    let streams = |task: &Task| task.streams.iter().filter(|it| is_meant(it.separator)).count();
    match tasks.all(|task| streams(task) <= 1) {
        true => Some(general),
        false => (!matches!(key.object, Object::Address { .. } | Object::Id(_))).then_some(exact),
    }
}
