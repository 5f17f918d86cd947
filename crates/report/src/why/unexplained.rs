//! Late jobs without a section `causes`: how to get one.

use crate::derived::primary;
use crate::number::counted;
use crate::shape::Shape;
use crate::visible;
use punctual_model::{Task, TimingModel};

/// Threads that are named.
const MOST_NAMED: usize = 3;

/// What explains the late jobs of a model that does not say why they were late; `None` if it has none, or
/// explains them.
pub fn unexplained(model: &TimingModel) -> Option<String> {
    let mut late: Vec<String> =
        model.tasks().iter().filter(|task| is_late(task)).map(|task| visible(&task.name)).collect();
    late.sort();
    late.dedup();
    if late.is_empty() || model.causes.is_some() {
        return None;
    }
    let others = late.len().saturating_sub(MOST_NAMED);
    late.truncate(MOST_NAMED);
    if others > 0 {
        late.push(counted(others as u64, "other thread"));
    }
    let are_ordinary = model.tasks().iter().any(|task| is_late(task) && !task.policy.is_real_time());
    let option = if are_ordinary { "--include-best-effort " } else { "" };
    Some(format!(
        "Jobs took longer than their period: {}. To see why: punctual why {option}-o FILE -- COMMAND, or a \
         recording made with --detail switches --all-threads; then punctual report FILE.",
        late.join(", ")
    ))
}

/// Whether a job of the task certainly took longer than its period.
fn is_late(task: &Task) -> bool {
    primary(task).is_some_and(|stream| match Shape::new(stream) {
        Shape::Periodic(periodic) => stream.certain_response() > Some(periodic.period_ns),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{disturbed, model, task};
    use punctual_model::causes::Causes;
    use punctual_model::{Duration, Response};

    /// A task of 1 ms whose longest response is this.
    fn responding(name: &str, response: Duration) -> Task {
        let mut task = task(name, 7, 80);
        task.streams[0].arrival.periodic = Some(disturbed());
        task.streams[0].uncertain_releases = 0;
        task.streams[0].response = Some(Response { max_ns: response, certain_max_ns: None, mean_ns: None });
        task
    }

    #[test]
    fn only_what_is_late_and_not_explained() {
        let (late, punctual) = (Duration::from_us(1_001), Duration::from_us(1_000));
        let of = |tasks: Vec<Task>| unexplained(&model(tasks));
        assert_eq!(of(vec![responding("a", punctual)]), None);
        let advice = of(vec![responding("a", punctual), responding("b\u{1b}", late)]).expect("b is late");
        assert!(
            advice.contains(": b\\u{1b}. ") && advice.contains("punctual why -o FILE -- COMMAND"),
            "{advice}"
        );
        let many = of(["a", "b", "c", "d", "e"].map(|name| responding(name, late)).into());
        assert!(many.is_some_and(|advice| advice.contains(": a, b, c, 2 other threads.")));
        let mut explained = model(vec![responding("a", late)]);
        explained.causes = Some(Causes::default());
        assert_eq!(unexplained(&explained), None);
    }
}
