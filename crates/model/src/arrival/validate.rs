//! Checks that the values of arrival models are consistent.

use super::{
    Arrival, Curve, Disturbance, Fraction, LeftOut, MAX_EARLY, MAX_ENDING, MAX_LATE, MAX_SLIPS, Periodic,
    Slip, modes,
};
use crate::error::ReadError;
use crate::section::Valid;
use crate::time::Duration;
use crate::valid::{at_most, in_order, never_decreases, not_zero};

impl Arrival {
    pub(crate) fn validate(&self, path: &str) -> Valid {
        if let Some(value) = &self.periodic {
            periodic(&format!("{path}.periodic"), value)?;
        }
        modes::validate(&format!("{path}.modes"), self)?;
        self.curve.iter().try_for_each(|value| curve(&format!("{path}.curve"), value))
    }
}

fn periodic(path: &str, periodic: &Periodic) -> Valid {
    let period = periodic.period_ns.ns();
    not_zero(&format!("{path}.period_ns"), period)?;
    exact(path, periodic.period_ns, periodic.period_exact)?;
    slips(path, periodic)?;
    let Some(typical) = &periodic.typical else { return Ok(()) };
    if typical.jitter_ns > periodic.jitter_ns {
        return Err(ReadError::value(
            format!("{path}.typical.jitter_ns"),
            format!("no more than `jitter_ns` ({})", periodic.jitter_ns.ns()),
            typical.jitter_ns.ns(),
        ));
    }
    left_out(&format!("{path}.typical.left_out"), &typical.left_out)
}

/// A fraction that the period is rounded from.
pub(super) fn exact(path: &str, period: Duration, exact: Option<Fraction>) -> Valid {
    let Some(exact) = exact else { return Ok(()) };
    not_zero(&format!("{path}.period_exact.numerator"), exact.numerator)?;
    not_zero(&format!("{path}.period_exact.denominator"), exact.denominator)?;
    let whole = u128::from(period.ns()) * u128::from(exact.denominator);
    if whole.abs_diff(exact.numerator.into()) > exact.denominator.into() {
        return Err(ReadError::value(
            format!("{path}.period_exact"),
            format!("a fraction within 1 ns of `period_ns` ({})", period.ns()),
            format!("{}/{}", exact.numerator, exact.denominator),
        ));
    }
    Ok(())
}

/// The first slips, in order: all of them, if there are fewer than can be listed.
fn slips(path: &str, periodic: &Periodic) -> Valid {
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
            true if listed != count.into() => format!("the sum in `slips` ({listed})"),
            false if listed > count.into() => format!("at least the sum in `slips` ({listed})"),
            _ => continue,
        };
        return Err(ReadError::value(format!("{path}.{name}"), expected, count));
    }
    Ok(())
}

fn left_out(path: &str, left_out: &[LeftOut]) -> Valid {
    in_order(path, left_out.iter().map(|release| release.at_ns))?;
    if let Some(index) = left_out.iter().position(|release| release.off_ns == 0) {
        return Err(ReadError::value(format!("{path}[{index}].off_ns"), "a number other than zero", 0));
    }
    // Wake-ups at the end of a thread are not releases.
    let is_ending = |release: &&LeftOut| release.reason == Some(Disturbance::Ending);
    let ending = left_out.iter().filter(is_ending).count();
    let early = left_out.iter().filter(|it| it.off_ns < 0 && !is_ending(it)).count();
    at_most(&format!("{path}, ending"), ending, MAX_ENDING)?;
    at_most(&format!("{path}, early"), early, MAX_EARLY)?;
    at_most(&format!("{path}, late"), left_out.len() - ending - early, MAX_LATE)
}

fn curve(path: &str, curve: &Curve) -> Valid {
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
