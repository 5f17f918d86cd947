//! Which of a stream's arrival models to show first. All of them hold; this one tells a person most.

use punctual_model::{Duration, Mode, Periodic, Stream};

/// The arrival model to show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape<'a> {
    /// One release per period.
    Periodic(&'a Periodic),
    /// Several rates, bursts of known period, or rates that change.
    Modes(&'a [Mode]),
    /// At most `jobs` releases in any interval of length `span`, although some of them come close together.
    Bursts {
        /// Releases.
        jobs: usize,
        /// δ⁻(jobs + 1).
        span: Duration,
    },
    /// Any two releases are this far apart.
    Sporadic(Duration),
    /// Too few releases.
    Unknown,
}

/// The longest burst to look for, in releases.
const LONGEST_BURST: usize = 64;
/// A burst ends where one more release takes this many times longer.
const GAP: f64 = 4.0;

impl<'a> Shape<'a> {
    /// The shape of a stream's arrivals: its modes, if it has any; periodic where releases, or known
    /// arrivals, stay within a period of it, or nearly all do; else bursts, if there are any; else periodic
    /// where the lateness does not wander off as it does when releases come at random; else sporadic.
    pub(crate) fn new(stream: &'a Stream) -> Self {
        if !stream.arrival.modes.is_empty() {
            return Shape::Modes(&stream.arrival.modes);
        }
        if let Some(periodic) = stream.regular() {
            return Shape::Periodic(periodic);
        }
        if let Some(bursts) = stream.arrival.curve.as_ref().and_then(|curve| bursts(&curve.delta_min_ns)) {
            return bursts;
        }
        if let Some(periodic) = stream.nearly_regular() {
            return Shape::Periodic(periodic);
        }
        let sporadic = stream.arrival.sporadic.as_ref();
        sporadic.map_or(Shape::Unknown, |sporadic| Shape::Sporadic(sporadic.min_separation_ns))
    }
}

/// The number of releases after which the next one takes longest, compared with the span of those before.
fn bursts<'a>(delta_min: &[Duration]) -> Option<Shape<'a>> {
    // Below a microsecond it is the processor's speed that tells releases apart, not the task's timing.
    let span = |index: usize| delta_min[index].ns().max(1_000) as f64;
    let last = delta_min.len().min(LONGEST_BURST);
    let (gap, index) =
        (1..last).map(|index| (span(index) / span(index - 1), index)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (gap >= GAP).then(|| Shape::Bursts { jobs: index + 1, span: delta_min[index] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use punctual_model::{Curve, PeriodicOn, Response};

    fn stream(jitter_us: u64, delta_min_us: &[u64], releases: u64) -> Stream {
        let spans: Vec<Duration> = delta_min_us.iter().copied().map(Duration::from_us).collect();
        let mut stream = example::stream(5_000_000, jitter_us * 1_000);
        stream.releases = releases;
        stream.arrival.curve = Some(Curve { delta_min_ns: spans.clone(), delta_max_ns: spans });
        stream
    }

    #[test]
    fn little_jitter_is_periodic() {
        assert!(matches!(Shape::new(&stream(41, &[4_960, 9_960], 2_000)), Shape::Periodic(_)));
    }

    #[test]
    fn three_at_once_every_40_ms_are_bursts() {
        let bursty = stream(27_000, &[0, 2, 39_800, 39_802, 39_804, 79_700], 750);
        assert_eq!(Shape::new(&bursty), Shape::Bursts { jobs: 3, span: Duration::from_us(39_800) });
    }

    /// A timer that the machine served 12 ms late, after which two jobs had to be caught up with.
    #[test]
    fn known_arrivals_on_a_grid_are_periodic_however_late_their_releases() {
        let mut late = stream(12_000, &[0, 1, 2_900, 7_900], 200);
        late.response =
            Some(Response { max_ns: Duration::from_us(12_300), certain_max_ns: None, mean_ns: None });
        assert!(matches!(Shape::new(&late), Shape::Periodic(_)));
        // The same releases, not known when they were due.
        late.arrival.periodic.as_mut().expect("periodic").on = PeriodicOn::Release;
        assert!(matches!(Shape::new(&late), Shape::Bursts { jobs: 3, .. }));
    }

    /// A process that was stopped for 60 ms caught up with twelve releases at once.
    #[test]
    fn releases_that_are_nearly_all_in_time_are_periodic() {
        let mut stopped = stream(60_000, &[0, 1, 2, 4_900, 9_900], 400);
        assert!(matches!(Shape::new(&stopped), Shape::Bursts { .. }));
        let mut percentiles = example::percentiles();
        let lateness = percentiles.lateness.as_mut().expect("lateness");
        (lateness.p50_ns, lateness.p90_ns) = (Duration::from_us(60), Duration::from_us(2_400));
        (lateness.p99_ns, lateness.p999_ns) = (Duration::from_us(55_000), Duration::from_us(60_000));
        stopped.percentiles = Some(percentiles);
        let periodic = stopped.arrival.periodic.as_mut().expect("periodic");
        periodic.on = PeriodicOn::Release;
        assert!(matches!(Shape::new(&stopped), Shape::Periodic(_)));
        // Three at once: two of three are late by most of a period or more.
        let lateness = stopped.percentiles.as_mut().and_then(|it| it.lateness.as_mut()).expect("lateness");
        lateness.p90_ns = Duration::from_us(9_000);
        assert!(matches!(Shape::new(&stopped), Shape::Bursts { .. }));
    }

    /// Sleeps of random length until times that the thread asked for: known, but on no grid.
    #[test]
    fn known_arrivals_at_random_are_sporadic() {
        let random = stream(160_000, &[1_000, 3_000, 6_000], 1_000);
        assert_eq!(random.arrival.periodic.as_ref().map(|periodic| periodic.on), Some(PeriodicOn::Arrival));
        assert!(matches!(Shape::new(&random), Shape::Sporadic(_)));
    }

    #[test]
    fn one_long_delay_leaves_a_long_trace_periodic() {
        let late = stream(6_000, &[900, 3_500, 8_000], 10_000);
        assert!(matches!(Shape::new(&late), Shape::Periodic(_)));
    }

    /// One release 2 s late, and one beyond the period's: the others keep time.
    #[test]
    fn most_releases_determine_the_shape() {
        let mut odd = stream(16, &[300, 700, 1_400], 5_000);
        odd.arrival.periodic =
            Some(punctual_model::Periodic { jitter_ns: Duration::from_ms(2_000), ..example::disturbed() });
        assert!(matches!(Shape::new(&odd), Shape::Periodic(_)));
        odd.arrival.periodic = Some(example::extra());
        assert!(matches!(Shape::new(&odd), Shape::Periodic(_)));
    }

    #[test]
    fn random_gaps_are_sporadic() {
        let mut random = stream(160_000, &[1_000, 3_000, 6_000], 1_000);
        assert_eq!(Shape::new(&random), Shape::Sporadic(Duration::from_us(4_959)));
        random.arrival.sporadic = None;
        assert_eq!(Shape::new(&random), Shape::Unknown);
    }
}
