//! LTTng's kernel tracer for a machine: modules that are built for its kernel, and LTTng's programs with
//! their libraries, among them 30 MiB of ICU. So it is a layer for the machines that need it.

use crate::elf::Libraries;
use crate::error::{Error, Result};
use crate::matrix::{Arch, Kernel, Missing, printed};
use crate::root::Root;
use std::path::{Path, PathBuf};

/// The kernel that it is built for, and the release of Debian that has that, LTTng's source and its programs.
const KERNEL: &str = "6.1";
const RELEASE: &str = "bookworm";

/// The test that needs it.
const TEST: &str = "lttng::the_models_of_our_own_recording";

/// In the folder with LTTng's packages, and in the machine.
const PROGRAMS: &[&str] = &["/usr/bin/lttng", "/usr/bin/lttng-sessiond"];
/// Where the session daemon looks for the program that writes traces.
const CONSUMER: &str = "lttng/libexec/lttng-consumerd";
/// The release of Debian whose babeltrace2 writes CTF 2, and where it is in the machine: with libraries of
/// its own, since they are younger than the others.
const CONVERTER: (&str, &str) = ("trixie", "babeltrace2");
pub const CONVERTER_ROOT: &str = "/opt/babeltrace2";

/// The session daemon ends without it.
const SCHEMA: &str = "/usr/share/xml/lttng/session.xsd";

/// Whether a run of tests that have one of these words in their names needs it, and the kernel is one that it
/// is built for.
pub fn is_for(kernel: &Kernel, tests: &[String]) -> bool {
    kernel.name == KERNEL && (tests.is_empty() || tests.iter().any(|part| TEST.contains(part.as_str())))
}

/// What it adds to a root. Built on first use.
pub fn layer(kernel: &Kernel) -> std::result::Result<Root, Missing> {
    let missing = |reason: String| Missing { reason };
    let image = kernel.image.file_name().unwrap_or_default().to_string_lossy();
    let release = image.strip_prefix("vmlinuz-").filter(|_| kernel.name == KERNEL);
    let release =
        release.ok_or_else(|| missing(format!("LTTng's kernel tracer is built for {KERNEL} only")))?;
    eprintln!("lab: adding LTTng's kernel tracer; to build it, the first time, takes minutes …");
    let folders = printed("scripts/lttng", &[RELEASE, release])?;
    let mut folders = folders.lines().map(Path::new);
    let (release, package) = CONVERTER;
    let converter = printed("scripts/debian", &["unpack", "--with-dependencies", release, "amd64", package])?;
    match (folders.next(), folders.next()) {
        (Some(modules), Some(tools)) => packed(modules, tools)
            .and_then(|root| with_converter(root, Path::new(converter.trim())))
            .map_err(|error| missing(error.to_string())),
        _ => Err(missing("scripts/lttng printed no folders".into())),
    }
}

fn packed(modules: &Path, tools: &Path) -> Result<Root> {
    let triplet = Arch::Amd64.triplet();
    let libraries = Path::new("usr/lib").join(triplet);
    // This machine's come first, as the programs share them with all others of the virtual one.
    let here = [Path::new("/").join(&libraries), PathBuf::from("/lib64")];
    let folders = here.into_iter().chain([tools.join(&libraries)]).collect();
    let mut root = Root::new(Libraries { folders }, triplet);
    root.all_of(modules)?;
    // The session daemon's folder is there.
    root.link(Path::new("/var/run"), Path::new("/run"));
    root.file(Path::new(SCHEMA), &tools.join(SCHEMA.trim_start_matches('/')))?;
    let consumer = Path::new("/").join(&libraries).join(CONSUMER);
    for program in PROGRAMS.iter().map(Path::new).chain([consumer.as_path()]) {
        root.program(program, &tools.join(program.strip_prefix("/").unwrap_or(program)))?;
    }
    Ok(root)
}

/// Adds the program, its plugins, and all that they need.
fn with_converter(mut root: Root, from: &Path) -> Result<Root> {
    let libraries = Path::new("usr/lib").join(Arch::Amd64.triplet());
    let to = Path::new(CONVERTER_ROOT);
    let plugins = libraries.join("babeltrace2/plugins");
    let of_ctf = ["ctf", "utils"].map(|name| plugins.join(format!("babeltrace-plugin-{name}.so")));
    let loader = libraries.join("ld-linux-x86-64.so.2");
    let found = Libraries { folders: vec![from.join(&libraries)] };
    for part in of_ctf.into_iter().chain([PathBuf::from("usr/bin/babeltrace2"), loader]) {
        root.file(&to.join(&part), &from.join(&part))?;
        for (name, library) in found.needed(&from.join(&part)).map_err(Error)? {
            if !name.starts_with('/') {
                root.file(&to.join(&libraries).join(name), &library)?;
            }
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_of_its_test_have_the_tracer() {
        let kernel = |name: &str| Kernel {
            name: name.into(),
            arch: Arch::Amd64,
            image: PathBuf::new(),
            config: None,
            modules: vec![],
        };
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        assert!(is_for(&kernel("6.1"), &[]));
        assert!(is_for(&kernel("6.1"), &words(&["driver::", "lttng::"])));
        assert!(!is_for(&kernel("6.1"), &words(&["driver::", "trace_cmd::"])));
        assert!(!is_for(&kernel("6.12-rt"), &words(&["lttng::"])));
    }
}
