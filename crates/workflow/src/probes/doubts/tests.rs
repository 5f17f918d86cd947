//! Programs as their probes see them, through right files and wrong ones.

use super::*;
use proptest::prelude::*;

const FILE: &str = "
[[probe]]
event = 'push'
symbol = 'push'
id = 'u32 at arg0+8'
[[probe]]
event = 'activation'
symbol = 'queue'
id = 'u32 at arg0+8'
[[probe]]
event = 'start'
symbol = 'run'
id = 'u32 at arg0+8'
[[probe]]
event = 'stop'
symbol = 'done'
id = 'u32 at arg0+8'
";

fn file(text: &str) -> ProbeFile {
    ProbeFile::parse(text.as_bytes()).unwrap()
}

/// What happens: the event, of which object, on which thread.
type Step = (Kind, u64, u32);

/// What is read as the id of an object, at one of its events.
type Reading = fn(Step, u64) -> u64;

/// Events of objects through a file that reads `reading` in the place of an id, numbered as the kernel side
/// does.
fn seen(steps: &[Step], reading: Reading) -> Doubts {
    let mut doubts = Doubts::default();
    let mut numbers: [HashMap<u64, u16>; 2] = Default::default();
    let mut counts: HashMap<(Kind, u64), u32> = HashMap::new();
    let mut running: HashMap<u32, (u64, u32)> = HashMap::new();
    for (at, &(kind, object, thread)) in steps.iter().enumerate() {
        let which = usize::from(kind != Kind::Push);
        let mut id = reading((kind, object, thread), at as u64);
        let number = match kind {
            Kind::Stop => match running.remove(&thread) {
                Some((task, number)) => {
                    id = task;
                    number
                }
                None => continue,
            },
            _ => {
                let count = counts.entry((kind, id)).or_default();
                *count += 1;
                *count - 1
            }
        };
        if kind == Kind::Start {
            running.insert(thread, (id, number));
        }
        let known = numbers[which].len() as u16;
        let number_of = *numbers[which].entry(id).or_insert(known);
        let place = 0x1000 + 0x100 * object + 8;
        doubts.event(Event { kind, object: number_of, id, thread, number, probe: kind as u32, place });
    }
    doubts
}

fn findings(steps: &[Step], reading: Reading) -> Vec<Finding> {
    seen(steps, reading).findings(&file(FILE), Counted::default(), [0, 0])
}

/// Two tasks in a row, `rounds` times, on two threads in turns; the second channel makes the second task
/// ready.
fn in_a_row(rounds: usize) -> Vec<Step> {
    use Kind::{Activation, Push, Start, Stop};
    let round = [
        (Push, 1, 1),
        (Activation, 1, 1),
        (Start, 1, 1),
        (Push, 2, 1),
        (Activation, 2, 1),
        (Stop, 1, 1),
        (Start, 2, 2),
        (Stop, 2, 2),
    ];
    round.repeat(rounds)
}

/// Two tasks that run at the same time.
fn side_by_side(rounds: usize) -> Vec<Step> {
    use Kind::{Activation, Push, Start, Stop};
    let round = [
        (Push, 1, 3),
        (Activation, 1, 3),
        (Activation, 2, 3),
        (Start, 1, 1),
        (Start, 2, 2),
        (Stop, 2, 2),
        (Stop, 1, 1),
    ];
    round.repeat(rounds)
}

#[test]
fn right_files_are_not_doubted() {
    for steps in [in_a_row(1), in_a_row(100), side_by_side(1), side_by_side(100)] {
        assert_eq!(findings(&steps, |(_, object, _), _| object), []);
        // An address is as good.
        assert_eq!(findings(&steps, |(_, object, _), _| 0x7000_0000 + object * 64), []);
    }
}

#[test]
fn values_that_are_not_ids_are_reported() {
    let rows: [(&str, Vec<Step>, Reading, bool, &str); 8] = [
        (
            "always 0",
            in_a_row(20),
            |_, _| 0,
            true,
            "all 40 pushes are of one channel, although its id was read at 2 places of memory",
        ),
        (
            "the tasks' always 0",
            in_a_row(20),
            |(kind, object, _), _| if kind == Kind::Push { object } else { 0 },
            false,
            "all 40 activations are of one task",
        ),
        (
            "always 0, at the same time",
            side_by_side(20),
            |_, _| 0,
            true,
            "20 starts of tasks that another thread was executing",
        ),
        (
            "a counter",
            in_a_row(20),
            |_, at| at,
            true,
            "the id of channels changes: 40 numbers at 2 places of memory; the",
        ),
        (
            "a counter of each",
            in_a_row(20),
            |_, at| at / 8,
            true,
            "the id of tasks changes: 20 numbers at 2 places of memory; the",
        ),
        (
            "a counter at starts",
            in_a_row(20),
            |(kind, object, _), at| if kind == Kind::Start { 1000 + at } else { object },
            true,
            "40 starts of tasks that were not activated",
        ),
        (
            "a state",
            in_a_row(20),
            |(kind, ..), _| kind as u64,
            true,
            "40 starts of tasks that were not activated",
        ),
        (
            "a thread",
            in_a_row(20),
            |(_, _, thread), _| u64::from(thread),
            true,
            "20 starts of tasks that were not activated",
        ),
    ];
    for (what, steps, reading, is_certain, expected) in rows {
        let findings = findings(&steps, reading);
        assert!(findings.iter().any(|it| it.text.contains(expected)), "{what}: {findings:?}");
        assert_eq!(findings.iter().any(|it| it.is_certain), is_certain, "{what}: {findings:?}");
    }
}

#[test]
fn missing_ends_are_reported() {
    let steps: Vec<Step> =
        in_a_row(20).into_iter().filter(|(kind, object, _)| *kind != Kind::Stop || *object != 1).collect();
    let findings = findings(&steps, |(_, object, _), _| object);
    assert!(
        findings[0].text.contains("19 starts while the same thread was executing another task")
            && findings[0].is_certain,
        "{findings:?}"
    );
    assert_eq!(findings.len(), 1, "{findings:?}");
    // Where the kernel side could not match them, that is the reason.
    let counts = Counted { unmatched: 20, ..Counted::default() };
    let findings = seen(&steps, |(_, object, _), _| object).findings(&file(FILE), counts, [0, 0]);
    assert!(
        findings.len() == 1 && findings[0].text.contains("20 stops of tasks that no thread was executing"),
        "{findings:?}"
    );
}

#[test]
fn losses_are_not_a_reason_to_doubt() {
    let steps: Vec<Step> = in_a_row(20).into_iter().filter(|(kind, ..)| *kind != Kind::Activation).collect();
    let doubts = seen(&steps, |(_, object, _), _| object);
    assert_eq!(doubts.findings(&file(FILE), Counted { lost: 40, ..Counted::default() }, [0, 0]), []);
    assert!(!doubts.findings(&file(FILE), Counted::default(), [0, 0]).is_empty());
}

#[test]
fn a_task_may_begin_elsewhere_before_a_function_has_returned() {
    use Kind::{Activation, Start, Stop};
    let steps =
        [(Activation, 1, 1), (Start, 1, 1), (Activation, 1, 1), (Start, 1, 2), (Stop, 1, 1), (Stop, 1, 2)]
            .repeat(10);
    let doubts = seen(&steps, |(_, object, _), _| object);
    let at_return = FILE.replace("symbol = 'done'\nid = 'u32 at arg0+8'", "symbol = 'run'\nat = 'return'");
    assert_eq!(doubts.findings(&file(&at_return), Counted::default(), [0, 0]), []);
    assert!(doubts.findings(&file(FILE), Counted::default(), [0, 0])[0].text.contains("parallel"));
}

#[test]
fn values_that_are_not_names_are_reported() {
    let mut doubts = seen(&in_a_row(2), |(_, object, _), _| object);
    doubts.name(true, 0, "image", None);
    doubts.name(true, 0, "image", Some("image"));
    doubts.name(false, 0, "\u{1}\u{fffd}", None);
    let findings = doubts.findings(&file(FILE), Counted { nameless: [1, 0], ..Counted::default() }, [0, 0]);
    let texts: Vec<&str> = findings.iter().map(|it| it.text.as_str()).collect();
    assert!(texts.len() == 2 && texts[0].starts_with("1 name of channels could not be read"), "{texts:?}");
    assert!(texts[1].starts_with("the name of 1 task is not UTF-8 text"), "{texts:?}");
    doubts.name(true, 0, "pose", Some("image"));
    let findings = doubts.findings(&file(FILE), Counted::default(), [0, 0]);
    assert!(
        findings
            .iter()
            .any(|it| it.is_certain && it.text.starts_with("a channel is called \"image\" and \"pose\"")),
        "{findings:?}"
    );
    // Ids that are to be names.
    let by_id = file(&FILE.replacen("id = 'u32 at arg0+8'", "id = 'u32 at arg0+8'\nname = 'id'", 1));
    let doubts = seen(&in_a_row(2), |(_, object, _), _| object);
    assert!(
        doubts.findings(&by_id, Counted::default(), [0, 0])[0]
            .text
            .contains("no id of 2 channels consists of characters")
    );
    assert_eq!(doubts.findings(&by_id, Counted::default(), [1, 0]), []);
}

#[test]
fn unreadable_values_are_reported_by_event() {
    let doubts = seen(&in_a_row(100), |(_, object, _), _| object);
    let findings =
        doubts.findings(&file(FILE), Counted { unreadable: [0, 3, 1, 0], ..Counted::default() }, [0, 0]);
    assert!(
        findings[0].text.contains("could not be read at 3 activations, 1 start, which")
            && !findings[0].is_certain,
        "{findings:?}"
    );
    let findings =
        doubts.findings(&file(FILE), Counted { unreadable: [0, 300, 1, 0], ..Counted::default() }, [0, 0]);
    assert!(findings[0].is_certain, "{findings:?}");
}

#[test]
fn undeclared_executors_are_reported() {
    let doubts = seen(&in_a_row(2), |(_, object, _), _| object);
    assert_eq!(doubts.findings(&file(&format!("executors = 2\n{FILE}")), Counted::default(), [0, 0]), []);
    let findings = doubts.findings(&file(&format!("executors = 1\n{FILE}")), Counted::default(), [0, 0]);
    assert_eq!(findings[0].text, "executors = 1, but 2 threads executed tasks");
}

proptest! {
    /// Tasks that wait for an executor each, in any order: whatever a right file sees, it is not doubted.
    #[test]
    fn valid_programs_raise_no_doubt(choices in prop::collection::vec((0_u64..6, 0_u32..3), 1..400)) {
        let mut steps = Vec::new();
        let (mut ready, mut threads) = (Vec::new(), [None; 3]);
        for (task, thread) in choices {
            match threads[thread as usize].take() {
                Some(done) => steps.push((Kind::Stop, done, thread)),
                None if !ready.is_empty() => {
                    let next = ready.remove(0);
                    steps.push((Kind::Start, next, thread));
                    threads[thread as usize] = Some(next);
                }
                None => {}
            }
            let is_idle = !ready.contains(&task) && !threads.contains(&Some(task));
            steps.push((Kind::Push, task, 9));
            if is_idle {
                steps.push((Kind::Activation, task, 9));
                ready.push(task);
            }
        }
        prop_assert_eq!(findings(&steps, |(_, object, _), _| object), []);
    }
}
