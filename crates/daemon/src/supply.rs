//! What this kernel keeps of each processor for ordinary threads, as far as it says so.

use punctual_linux::scheduling;
use punctual_linux::system;
use punctual_model::Duration;
use punctual_schedule::{Reserve, ReserveKind};
use std::fs;
use std::path::Path;

/// Where the kernel shows its fair servers, if debugfs is mounted and may be read.
const FAIR_SERVERS: &str = "/sys/kernel/debug/sched/fair_server";
/// `fair_server_init()` in the kernel: what holds where nobody has changed it.
const FAIR_SERVER: (Duration, Duration) = (Duration::from_ms(50), Duration::from_ms(1000));
/// The first kernel with fair servers, which throttles real-time threads only by control groups.
const WITH_FAIR_SERVER: (u32, u32) = (6, 12);

/// What the kernel keeps of these processors.
pub fn of_kernel(processors: &[u32]) -> Vec<Reserve> {
    let (release, version) = (system::kernel_release(), system::kernel_version());
    let mut reserves = Vec::new();
    if version >= WITH_FAIR_SERVER {
        let server = |&processor: &u32| fair_server(Path::new(FAIR_SERVERS), processor);
        reserves.extend(processors.iter().filter_map(server));
    }
    if version < WITH_FAIR_SERVER || throttles_groups(&release) {
        let (runtime, period) = (scheduling::configured_rt_runtime(), scheduling::rt_period());
        if let (Some(runtime), Some(period)) = (runtime, period) {
            reserves.extend(processors.iter().filter_map(|&cpu| throttle(cpu, runtime, period)));
        }
    }
    reserves
}

/// The fair server of one processor; `None` if it is off.
fn fair_server(folder: &Path, processor: u32) -> Option<Reserve> {
    let read = |name: &str| {
        let text = fs::read_to_string(folder.join(format!("cpu{processor}")).join(name)).ok()?;
        text.trim().parse().ok().map(Duration::from_ns)
    };
    let (runtime, period) = read("runtime").zip(read("period")).unwrap_or(FAIR_SERVER);
    reserve(processor, ReserveKind::FairServer, runtime, period)
}

/// The throttle, with its settings in µs; `None` if it is off.
pub fn throttle(processor: u32, runtime: i64, period: u64) -> Option<Reserve> {
    let kept = period.checked_sub(u64::try_from(runtime).ok()?)?;
    reserve(processor, ReserveKind::Throttle, Duration::from_us(kept), Duration::from_us(period))
}

/// Nothing is kept where Q is zero.
pub fn reserve(processor: u32, kind: ReserveKind, runtime: Duration, period: Duration) -> Option<Reserve> {
    (!runtime.is_zero()).then_some(Reserve { processor, kind, runtime, period })
}

/// Whether a kernel with fair servers throttles real-time threads all the same: those with
/// CONFIG_RT_GROUP_SCHED do, in the root group as well.
fn throttles_groups(release: &str) -> bool {
    // The controller's own file, where cgroup v1 is mounted.
    if ["/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        return true;
    }
    let places = [format!("/boot/config-{release}"), format!("/usr/lib/modules/{release}/config")];
    let text = places.iter().find_map(|place| fs::read_to_string(place).ok()).unwrap_or_default();
    text.lines().any(|line| line == "CONFIG_RT_GROUP_SCHED=y")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_servers_are_read_by_processor() {
        let folder = tempfile::tempdir().unwrap();
        let write = |cpu: u32, runtime: &str, period: &str| {
            let at = folder.path().join(format!("cpu{cpu}"));
            fs::create_dir(&at).unwrap();
            fs::write(at.join("runtime"), runtime).unwrap();
            fs::write(at.join("period"), period).unwrap();
        };
        write(0, "30000000\n", "100000000\n");
        write(1, "0\n", "1000000000\n");
        let found = |cpu| fair_server(folder.path(), cpu).map(|it| (it.runtime, it.period));
        assert_eq!(found(0), Some((Duration::from_ms(30), Duration::from_ms(100))));
        assert_eq!(found(1), None, "it is off");
        // What cannot be read is as the kernel begins.
        assert_eq!(found(2), Some(FAIR_SERVER));
    }

    #[test]
    fn the_throttle_keeps_what_its_runtime_leaves() {
        let kept = throttle(3, 950_000, 1_000_000).unwrap();
        assert_eq!((kept.processor, kept.runtime), (3, Duration::from_ms(50)));
        assert_eq!(throttle(3, -1, 1_000_000), None);
        assert_eq!(throttle(3, 1_000_000, 1_000_000), None);
    }
}
