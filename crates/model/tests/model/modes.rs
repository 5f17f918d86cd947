//! The checker of modes, on models written by hand.

use punctual_model::check::{Model, modes};
use punctual_model::{Burst, Duration, Instant, Mode, Release, Source, Window};

fn release(ns: u64) -> Release {
    Release { arrival: None, window: Window::at(Instant::from_ns(ns)) }
}

fn source(offset_ns: i64, period: u64, jitter: u64) -> Source {
    Source {
        period_ns: Duration::from_ns(period),
        period_exact: None,
        offset_ns,
        jitter_ns: Duration::from_ns(jitter),
        usual_jitter_ns: None,
        activations: 1,
        burst: None,
    }
}

fn mode(from: u64, until: u64, sources: Vec<Source>) -> Mode {
    Mode { from_ns: Instant::from_ns(from), until_ns: Instant::from_ns(until), releases: 1, sources }
}

/// Which statement each violation is of, and which job.
fn found(all: &[Mode], times: &[u64]) -> Vec<(Model, usize)> {
    let releases: Vec<Release> = times.iter().copied().map(release).collect();
    modes(all, &releases).into_iter().map(|it| (it.model, it.first)).collect()
}

#[test]
fn each_release_needs_an_activation_of_its_own() {
    let two = [mode(0, 100, vec![source(0, 10, 2), source(5, 25, 1)])];
    assert_eq!(found(&two, &[0, 5, 11, 22, 30, 31, 42]), []);
    // 30 is an activation of both; a third release then has none.
    assert_eq!(found(&two, &[0, 30, 31, 32]), [(Model::Sources, 3)]);
    assert_eq!(found(&two, &[0, 13]), [(Model::Sources, 1)]);
    // Activations begin with the first.
    assert_eq!(found(&[mode(0, 100, vec![source(50, 10, 2)])], &[40]), [(Model::Sources, 0)]);
}

#[test]
fn a_burst_has_so_many_jobs() {
    let burst = Some(Burst { jobs: 3, within_ns: Duration::from_ns(4) });
    let bursts = [mode(0, 100, vec![Source { burst, ..source(0, 20, 1) }])];
    assert_eq!(found(&bursts, &[1, 3, 5, 20, 40, 44, 45]), []);
    assert_eq!(found(&bursts, &[1, 2, 3, 4, 20]), [(Model::Sources, 3)]);
    assert_eq!(found(&bursts, &[1, 6]), [(Model::Sources, 1)]);
}

#[test]
fn each_release_is_in_a_mode() {
    let two = [mode(0, 20, vec![source(0, 10, 0)]), mode(40, 60, Vec::new())];
    // Without sources, a mode allows anything.
    assert_eq!(found(&two, &[0, 10, 20, 41, 42, 59]), []);
    assert_eq!(found(&two, &[0, 30, 61]), [(Model::Modes, 1), (Model::Modes, 2)]);
}
