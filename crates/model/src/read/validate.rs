//! Whether values that have the right shape make sense: what no type says.

use super::ReadError;
use crate::file::{
    Arrival, Curve, LeftOut, MAX_LEFT_OUT, MAX_SLIPS, Percentiles, Periodic, Slip, Stream, Suspension, Task,
    TimingModel,
};
use crate::time::{Duration, Instant};

pub(crate) type Checked = Result<(), ReadError>;

const GREATEST_PRIORITY: u32 = 99;

pub(super) fn model(model: &TimingModel) -> Checked {
    span("observation", model.observation.from_ns, model.observation.until_ns)?;
    if let Some(traced) = &model.observation.dataflow {
        span("observation.dataflow", traced.from_ns, traced.until_ns)?;
        if model.dataflow.is_none() {
            return Err(ReadError::value(
                "observation.dataflow",
                "nothing, as there is no dataflow program",
                "an object",
            ));
        }
    }
    model.tasks.iter().enumerate().try_for_each(|(index, value)| task(&format!("tasks[{index}]"), value))?;
    model.dataflow.iter().try_for_each(|value| crate::dataflow::check("dataflow", value))
}

fn task(path: &str, task: &Task) -> Checked {
    span(path, task.from_ns, task.until_ns)?;
    if task.priority > GREATEST_PRIORITY {
        return Err(ReadError::value(
            format!("{path}.priority"),
            format!("a real-time priority up to {GREATEST_PRIORITY}, or 0"),
            task.priority,
        ));
    }
    if let Some(reservation) = task.reservation {
        not_zero(&format!("{path}.reservation.period_ns"), reservation.period_ns.ns())?;
    }
    match (task.primary, task.streams.len()) {
        (Some(primary), 0) => {
            return Err(ReadError::value(
                format!("{path}.primary"),
                "nothing, as there are no streams",
                primary,
            ));
        }
        (Some(primary), streams) if primary >= streams => {
            let expected = format!("the index of a stream, up to {}", streams - 1);
            return Err(ReadError::value(format!("{path}.primary"), expected, primary));
        }
        _ => {}
    }
    task.streams
        .iter()
        .enumerate()
        .try_for_each(|(index, value)| stream(&format!("{path}.streams[{index}]"), value))
}

fn stream(path: &str, stream: &Stream) -> Checked {
    let counts = [
        ("jobs", stream.jobs, "releases", stream.releases),
        ("uncertain_releases", stream.uncertain_releases, "releases", stream.releases),
        ("back_to_back", stream.back_to_back, "uncertain_releases", stream.uncertain_releases),
    ];
    for (part, count, whole, limit) in counts {
        if count > limit {
            return Err(ReadError::value(
                format!("{path}.{part}"),
                format!("no more than `{whole}` ({limit})"),
                count,
            ));
        }
    }
    arrival(&format!("{path}.arrival"), &stream.arrival)?;
    if let Some(execution) = &stream.execution {
        let path = format!("{path}.execution.wcet_ns");
        if execution.wcet_ns.is_empty() {
            return Err(ReadError::value(path, "at least the WCET of one job", "an empty array"));
        }
        never_decreases(&path, &execution.wcet_ns)?;
    }
    stream.suspension.iter().try_for_each(|value| suspension(&format!("{path}.suspension"), value))?;
    stream.percentiles.iter().try_for_each(|value| percentiles(&format!("{path}.percentiles"), value))
}

pub(crate) fn arrival(path: &str, arrival: &Arrival) -> Checked {
    if let Some(value) = &arrival.periodic {
        periodic(&format!("{path}.periodic"), value)?;
    }
    arrival.curve.iter().try_for_each(|value| curve(&format!("{path}.curve"), value))
}

fn periodic(path: &str, periodic: &Periodic) -> Checked {
    let period = periodic.period_ns.ns();
    not_zero(&format!("{path}.period_ns"), period)?;
    if let Some(exact) = periodic.period_exact {
        not_zero(&format!("{path}.period_exact.numerator"), exact.numerator)?;
        not_zero(&format!("{path}.period_exact.denominator"), exact.denominator)?;
        let whole = u128::from(period) * u128::from(exact.denominator);
        if whole.abs_diff(exact.numerator.into()) > exact.denominator.into() {
            return Err(ReadError::value(
                format!("{path}.period_exact"),
                format!("a fraction within 1 ns of `period_ns` ({period})"),
                format!("{}/{}", exact.numerator, exact.denominator),
            ));
        }
    }
    slips(path, periodic)?;
    periodic
        .typical
        .iter()
        .try_for_each(|typical| left_out(&format!("{path}.typical.left_out"), &typical.left_out))
}

/// The first places, in order of time: all of them, if there are fewer than can be listed.
fn slips(path: &str, periodic: &Periodic) -> Checked {
    let slips = &periodic.slips;
    at_most(&format!("{path}.slips"), slips.len(), MAX_SLIPS)?;
    in_order(&format!("{path}.slips"), slips.iter().map(|slip: &Slip| slip.at_ns))?;
    if let Some(index) = slips.iter().position(|slip| slip.activations == 0) {
        return Err(ReadError::value(
            format!("{path}.slips[{index}].activations"),
            "a number other than zero",
            0,
        ));
    }
    let sum = |sign: i128| {
        slips.iter().map(|slip| sign * i128::from(slip.activations)).filter(|slips| *slips > 0).sum::<i128>()
    };
    for (name, count, listed) in [("skipped", periodic.skipped, sum(1)), ("extra", periodic.extra, sum(-1))] {
        let expected = match slips.len() < MAX_SLIPS {
            true if listed != count.into() => format!("as many as in `slips` ({listed})"),
            false if listed > count.into() => format!("no fewer than in `slips` ({listed})"),
            _ => continue,
        };
        return Err(ReadError::value(format!("{path}.{name}"), expected, count));
    }
    Ok(())
}

fn left_out(path: &str, left_out: &[LeftOut]) -> Checked {
    in_order(path, left_out.iter().map(|release| release.at_ns))?;
    if let Some(index) = left_out.iter().position(|release| release.off_ns == 0) {
        return Err(ReadError::value(format!("{path}[{index}].off_ns"), "a number other than zero", 0));
    }
    let early = left_out.iter().filter(|release| release.off_ns < 0).count();
    at_most(path, early.max(left_out.len() - early), MAX_LEFT_OUT)
}

fn percentiles(path: &str, percentiles: &Percentiles) -> Checked {
    let all = [
        ("lateness", &percentiles.lateness),
        ("cost", &percentiles.cost),
        ("response", &percentiles.response),
    ];
    let all = all.into_iter().filter_map(|(name, quantiles)| Some((name, quantiles.as_ref()?)));
    for (name, quantiles) in all {
        let names = ["p50_ns", "p90_ns", "p99_ns", "p999_ns"];
        let values = quantiles.each().map(|(_, value)| value);
        if let Some(index) = values.windows(2).position(|pair| pair[1] < pair[0]) {
            let (path, expected) =
                (format!("{path}.{name}.{}", names[index + 1]), format!("no less than `{}`", names[index]));
            return Err(ReadError::value(
                path,
                format!("{expected} ({})", values[index].ns()),
                values[index + 1].ns(),
            ));
        }
    }
    Ok(())
}

fn curve(path: &str, curve: &Curve) -> Checked {
    let (least, greatest) = (&curve.delta_min_ns, &curve.delta_max_ns);
    if least.len() != greatest.len() {
        return Err(ReadError::value(
            format!("{path}.delta_max_ns"),
            format!("as many values as `delta_min_ns` has ({})", least.len()),
            greatest.len(),
        ));
    }
    never_decreases(&format!("{path}.delta_min_ns"), least)?;
    never_decreases(&format!("{path}.delta_max_ns"), greatest)?;
    match least.iter().zip(greatest).position(|(least, greatest)| least > greatest) {
        Some(index) => Err(ReadError::value(
            format!("{path}.delta_min_ns[{index}]"),
            format!("no more than `delta_max_ns[{index}]` ({})", greatest[index].ns()),
            least[index].ns(),
        )),
        None => Ok(()),
    }
}

fn suspension(path: &str, suspension: &Suspension) -> Checked {
    match suspension.segmented.iter().position(Vec::is_empty) {
        Some(index) => Err(ReadError::value(
            format!("{path}.segmented[{index}]"),
            "at least one segment",
            "an empty array",
        )),
        None => Ok(()),
    }
}

fn span(path: &str, from: Instant, until: Instant) -> Checked {
    if until < from {
        return Err(ReadError::value(
            format!("{path}.until_ns"),
            format!("no less than `from_ns` ({})", from.ns()),
            until.ns(),
        ));
    }
    Ok(())
}

fn at_most(path: &str, entries: usize, most: usize) -> Checked {
    match entries > most {
        true => Err(ReadError::value(path, format!("no more than {most} entries of a kind"), entries)),
        false => Ok(()),
    }
}

fn in_order(path: &str, mut instants: impl Iterator<Item = Instant>) -> Checked {
    let mut before = Instant::from_ns(0);
    match instants.position(|at| std::mem::replace(&mut before, at) > at) {
        Some(index) => Err(ReadError::value(
            format!("{path}[{index}].at_ns"),
            "no less than that of the entry before",
            before.ns(),
        )),
        None => Ok(()),
    }
}

fn not_zero(path: &str, value: u64) -> Checked {
    match value {
        0 => Err(ReadError::value(path, "a number greater than zero", 0)),
        _ => Ok(()),
    }
}

fn never_decreases(path: &str, values: &[Duration]) -> Checked {
    match values.windows(2).position(|pair| pair[1] < pair[0]) {
        Some(index) => Err(ReadError::value(
            format!("{path}[{}]", index + 1),
            format!("no less than the value before it ({})", values[index].ns()),
            values[index + 1].ns(),
        )),
        None => Ok(()),
    }
}
