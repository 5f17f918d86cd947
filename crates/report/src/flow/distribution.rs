//! Times of a dataflow program as text.

use crate::number::{at_least, at_most, three_digits};
use crate::text;
use punctual_model::dataflow::Distribution;
use punctual_model::{Duration, Instant};

/// When something was, counted from the beginning of the trace.
pub(crate) fn since(begin: Instant, at: Instant) -> String {
    text::since(at.since(begin))
}

/// Least, quartiles and greatest as text: bounds are rounded to the safe side, quartiles to three digits. A
/// single value is exact.
pub(crate) fn cells(distribution: &Distribution) -> [String; 5] {
    let Distribution { min_ns, quartile_1_ns, median_ns, quartile_3_ns, max_ns, .. } = *distribution;
    let [first, median, third] =
        [quartile_1_ns, median_ns, quartile_3_ns].map(|value| quartile(distribution, value));
    let [least, greatest] =
        if min_ns == max_ns { [min_ns, max_ns] } else { [at_least(min_ns), at_most(max_ns)] };
    [least, first, median, third, greatest].map(|value| value.to_string())
}

/// The greatest, as in its table.
pub(crate) fn greatest(distribution: &Distribution) -> String {
    let [.., greatest] = cells(distribution);
    greatest
}

/// A quartile to the three digits that it has; never beyond the ends, as they are printed.
fn quartile(distribution: &Distribution, value: Duration) -> Duration {
    if distribution.min_ns == distribution.max_ns {
        distribution.min_ns
    } else {
        three_digits(value).clamp(at_least(distribution.min_ns), at_most(distribution.max_ns))
    }
}
