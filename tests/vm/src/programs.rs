//! The programs under test, built for the architecture of a machine, and third-party programs.

use crate::elf::Libraries;
use crate::error::{Error, Result, cannot};
use crate::lock::Building;
use crate::matrix::Arch;
use crate::root::Root;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Third-party programs that the tests use, and those that one wants in a shell. If this machine lacks one,
/// so does the virtual one.
const OTHERS: &[&str] = &[
    "awk",
    "babeltrace2",
    "bash",
    "cat",
    "chmod",
    "chrt",
    "cp",
    "cut",
    "cyclictest",
    "date",
    "dirname",
    "dmesg",
    "echo",
    "env",
    "false",
    "grep",
    "hackbench",
    "head",
    "kill",
    "ls",
    "mkdir",
    "mktemp",
    "mount",
    "mv",
    "nproc",
    "perf",
    "ps",
    "rm",
    "sed",
    "seq",
    "setpriv",
    "sh",
    "sleep",
    "sort",
    "stat",
    "strace",
    "stress-ng",
    "tail",
    "taskset",
    "tee",
    "timeout",
    "touch",
    "true",
    "umount",
    "uname",
    "unshare",
    "wc",
];

/// The repository, which lies at the same path in the machine as far as the tests need it.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// The folder for the results of runs.
pub fn folder() -> PathBuf {
    target().join("vm")
}

impl Arch {
    /// As compilers and Debian's library folders name it.
    pub fn triplet(self) -> &'static str {
        match self {
            Arch::Amd64 => "x86_64-linux-gnu",
            Arch::Arm64 => "aarch64-linux-gnu",
        }
    }

    fn is_ours(self) -> bool {
        match self {
            Arch::Amd64 => cfg!(target_arch = "x86_64"),
            Arch::Arm64 => cfg!(target_arch = "aarch64"),
        }
    }

    fn tool(self, name: &str) -> String {
        if self.is_ours() { name.into() } else { format!("{}-{name}", self.triplet()) }
    }
}

/// What observes, and what tests that.
struct Observer {
    punctual: PathBuf,
    tests: PathBuf,
    workloads: PathBuf,
}

/// The daemon, and what tests it.
struct Daemon {
    /// The program, where its tests look for it.
    punctuald: PathBuf,
    /// Programs that are tests, by what they are called in the machine.
    tests: Vec<(&'static str, PathBuf)>,
    /// The library and the C programs that its tests would compile themselves, if a machine had a compiler.
    compiled: PathBuf,
}

/// C programs that use the library.
const CLIENTS: &[&str] = &[
    "crates/client/tests/c/library.c",
    "crates/client/tests/c/listing1.c",
    "crates/client/tests/c/published.c",
    "tests/daemon/c/named.c",
];
/// A plugin of the daemon's, in C.
const PLUGIN: &str = "crates/daemon/examples/plugin/harmonic.c";

fn run(command: &mut Command) -> Result<Vec<u8>> {
    let name = format!(
        "{} {}",
        command.get_program().to_string_lossy(),
        command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| Error(format!("cannot run {name}: {error}")))?;
    if output.status.success() { Ok(output.stdout) } else { Err(Error(format!("{name} failed: see above"))) }
}

/// Cargo, for an architecture.
fn cargo(arch: Arch) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(if arch.is_ours() { &cargo } else { OsStr::new("scripts/cross") });
    if !arch.is_ours() {
        command.arg(arch.target()).arg(&cargo);
    }
    command.current_dir(repository());
    command
}

/// The C compiler, for an architecture.
fn cc(arch: Arch) -> Command {
    let mut command = Command::new(if arch.is_ours() { "cc" } else { "scripts/cross" });
    if !arch.is_ours() {
        // It says which compiler in TARGET_CC.
        command.args([arch.target(), "sh", "-c", "$TARGET_CC \"$@\"", "cc"]);
    }
    command.current_dir(repository()).args(["-O2", "-Wall", "-Wextra", "-Werror"]);
    command
}

/// Cargo's messages about all that machines of an architecture have, after building it.
fn build(arch: Arch) -> Result<Vec<Value>> {
    if arch.is_ours() { built_here() } else { build_for(arch) }
}

fn build_observer(arch: Arch, built: &[Value]) -> Result<Observer> {
    Ok(Observer {
        punctual: find_program(built, "punctual")?,
        tests: find_test(built, "punctual-e2e", "e2e")?,
        workloads: build_workloads(arch)?,
    })
}

/// `make test` has just built everything, and names the file of messages; otherwise make does the same here.
/// Another call of cargo would have other features, and compile everything again.
fn built_here() -> Result<Vec<Value>> {
    let file = match std::env::var_os("TESTS_BUILT") {
        Some(file) => PathBuf::from(file),
        None => {
            // Takes minutes if something has changed.
            eprintln!("lab: building what goes into the machine, where it has changed …");
            run(Command::new("make").current_dir(repository()).args(["--silent", "build-tests"]))?;
            target().join("debug/tests-built.json")
        }
    };
    let file = repository().join(file);
    Ok(messages(&std::fs::read(&file).map_err(|error| cannot("read", &file, error))?).collect())
}

/// Builds for another architecture only what machines have.
fn build_for(arch: Arch) -> Result<Vec<Value>> {
    eprintln!("lab: building what goes into the machine, where it has changed …");
    let packages = ["cli", "e2e", "daemon", "daemon-tests", "c"].map(|name| format!("-ppunctual-{name}"));
    let output = run(cargo(arch)
        .args(["build", "--quiet", "--lib", "--bins", "--tests", "--message-format=json"])
        .args(packages)
        .args(["--target", arch.target()]))?;
    Ok(messages(&output).collect())
}

/// Where `make workloads` has them for an architecture, too.
fn build_workloads(arch: Arch) -> Result<PathBuf> {
    let out = if arch.is_ours() { target() } else { target().join(arch.target()) }.join("workloads");
    let out = std::path::absolute(&out).map_err(|error| cannot("find", &out, error))?;
    let mut make = Command::new(if arch.is_ours() { "make" } else { "scripts/cross" });
    if !arch.is_ours() {
        make.args([arch.target(), "make"]);
        // There is no compiler for C++: tests of what is written in it say so.
        make.args(["CC=$(TARGET_CC)", "CXX="]);
    }
    make.args(["--silent", "-C", "tests/workloads", "all"]).arg(format!("OUT={}", out.display()));
    run(make.current_dir(repository()))?;
    Ok(out)
}

/// A program of profile `dist`, which make has built before it calls the lab.
pub fn optimized(name: &str) -> Result<PathBuf> {
    let path = target().join("dist").join(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error(format!(
        "there is no {}: make dist builds the command, make bench-tt what it needs",
        path.display()
    )))
}

fn no_message() -> Error {
    Error("cargo did not say where it put what it built".into())
}

fn is_of(message: &Value, package: &str) -> bool {
    // `path+file:///…/tests/e2e#punctual-e2e@0.1.0`
    message["package_id"]
        .as_str()
        .and_then(|id| id.rsplit(['#', '/']).next())
        .is_some_and(|name| name.split('@').next() == Some(package))
}

/// A program that is no test.
fn find_program(built: &[Value], name: &str) -> Result<PathBuf> {
    built
        .iter()
        .filter(|message| message["profile"]["test"] == false)
        .find_map(|message| executable(message, name))
        .ok_or_else(no_message)
}

/// A program that is a test of a package.
fn find_test(built: &[Value], package: &str, name: &str) -> Result<PathBuf> {
    built
        .iter()
        .filter(|message| is_of(message, package) && message["profile"]["test"] == true)
        .find_map(|message| executable(message, name))
        .ok_or_else(no_message)
}

/// The daemon and its clients, with its tests that were built.
fn build_daemon(arch: Arch, built: &[Value]) -> Result<Daemon> {
    let punctuald = find_program(built, "punctuald")?;
    let find = |package, name| find_test(built, package, name);
    let tests = vec![
        // What it asks and tells the kernel, each by itself; with real processes; asked by real clients.
        ("tests-1-parts", find("punctual-daemon", "punctual_daemon")?),
        ("tests-2-daemon", find("punctual-daemon", "daemon")?),
        ("tests-3-clients", find("punctual-daemon-tests", "daemon")?),
    ];

    let library = built.iter().find(|message| is_of(message, "punctual-c")).ok_or_else(no_message)?;
    let archive = library["filenames"][0].as_str().ok_or_else(no_message)?;
    let compiled = folder().join(format!("compiled-{}", arch.triplet()));
    std::fs::create_dir_all(&compiled).map_err(|error| cannot("create", &compiled, error))?;
    let with = |mut flag: std::ffi::OsString, path: &Path| {
        flag.push(path);
        flag
    };
    // As crates/client/Makefile links it; it wants a compiler by name.
    let mut make = Command::new(if arch.is_ours() { "make" } else { "scripts/cross" });
    if !arch.is_ours() {
        make.args([arch.target(), "make", "CC=$(TARGET_CC)"]);
    }
    make.current_dir(repository()).args(["--silent", "-C", "crates/client"]);
    run(make.arg(with("OUT=".into(), &compiled)).arg(with("ARCHIVE=".into(), Path::new(archive))))?;
    for source in CLIENTS {
        let mut compile = cc(arch);
        compile
            .args(["-std=c11", "-D_GNU_SOURCE", "-pthread", "-Icrates/client/include", source, "-o"])
            .arg(compiled.join(stem(source)));
        run(compile.arg(with("-L".into(), &compiled)).arg("-lpunctual"))?;
    }
    let mut compile = cc(arch);
    compile.args(["-std=c11", "-fPIC", "-shared", "-Icrates/daemon/include", PLUGIN, "-o"]);
    run(compile.arg(compiled.join(stem(PLUGIN)).with_extension("so")))?;
    Ok(Daemon { punctuald, tests, compiled })
}

/// `harmonic` of `crates/daemon/examples/plugin/harmonic.c`.
fn stem(source: &str) -> &OsStr {
    Path::new(source).file_stem().unwrap_or_default()
}

fn messages(output: &[u8]) -> impl Iterator<Item = Value> + use<> {
    String::from_utf8_lossy(output)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect::<Vec<Value>>()
        .into_iter()
}

fn executable(message: &Value, target: &str) -> Option<PathBuf> {
    (message["target"]["name"] == target).then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// PID 1.
fn add_init(root: &mut Root, arch: Arch) -> Result {
    let init = folder().join(format!("init-{}", arch.triplet()));
    run(cc(arch).args(["-static", "tests/vm/guest/init.c", "-o"]).arg(&init))?;
    root.file(Path::new("/init"), &init)
}

/// What a small system with systemd consists of, in Debian; with dependencies.
const SYSTEM: &[&str] = &[
    "base-files",
    "bash",
    "coreutils",
    "dash",
    "grep",
    "libc-bin",
    "libelf-dev",
    "mount",
    "procps",
    "sed",
    "systemd",
    "util-linux",
];

/// Users and groups, before systemd adds its own. Rules allow alice real-time scheduling, but not bob.
const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n\
    alice:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n";
const GROUPS: &str = "root:x:0:\nnogroup:x:65534:\nalice:x:1000:\nbob:x:1001:\nrealtime:x:1100:alice\n";

/// The root of a Debian with systemd, without a job; with what `make install` has put into the folder
/// `installed`.
pub fn system(release: &str, installed: &Path) -> Result<Root> {
    let arch = Arch::Amd64;
    let others = Others::of_release(release, SYSTEM, arch)?;
    let mut root = Root::new(others.libraries(arch), arch.triplet());
    let _building = Building::wait(&folder())?;
    for from in others.roots.iter().map(PathBuf::as_path).chain([installed]) {
        root.all_of(from)?;
    }
    add_init(&mut root, arch)?;
    let plugin = folder().join("harmonic.so");
    run(cc(arch)
        .args(["-std=c11", "-fPIC", "-shared", "-Icrates/daemon/include", PLUGIN, "-o"])
        .arg(&plugin))?;
    root.file(Path::new("/usr/lib/punctual/harmonic.so"), &plugin)?;
    root.file(Path::new("/lab/systemd.sh"), &repository().join("tests/vm/guest/systemd.sh"))?;
    root.file(Path::new("/lab/daemon.md"), &repository().join("docs/daemon.md"))?;
    root.text("/etc/passwd", USERS, 0o644);
    root.text("/etc/group", GROUPS, 0o644);
    root.text("/etc/hostname", "lab\n", 0o644);
    root.text("/etc/machine-id", "", 0o444);
    root.link(
        Path::new("/etc/systemd/system/default.target"),
        Path::new("/usr/lib/systemd/system/multi-user.target"),
    );
    // Nobody logs in, there is no network, and the kernel's modules are not here.
    for unit in
        ["getty.target", "systemd-logind.service", "systemd-networkd.service", "systemd-modules-load.service"]
    {
        root.link(&Path::new("/etc/systemd/system").join(unit), Path::new("/dev/null"));
    }
    Ok(root)
}

/// The root for machines of an architecture, without a job.
pub fn root(arch: Arch) -> Result<Root> {
    let _building = Building::wait(&folder())?;
    let built = build(arch)?;
    let mut root = observing(arch, &built)?;
    add_daemon(&mut root, arch, &build_daemon(arch, &built)?)?;
    Ok(root)
}

/// The same without the tests of the daemon, which are more than half of it.
pub fn root_to_observe(arch: Arch) -> Result<Root> {
    let _building = Building::wait(&folder())?;
    observing(arch, &build(arch)?)
}

/// The same with the command as it is installed, to measure it: profile `dist`.
pub fn root_to_measure(arch: Arch) -> Result<Root> {
    let mut root = root_to_observe(arch)?;
    add_program(&mut root, arch, &optimized("punctual")?, &Path::new(BIN).join("punctual"))?;
    Ok(root)
}

const BIN: &str = "/usr/local/bin";

/// Without debug information, which is most of their size and would take the machine's memory.
fn add_program(root: &mut Root, arch: Arch, program: &Path, place: &Path) -> Result {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let small = folder().join(format!("{name}-{}", arch.triplet()));
    run(Command::new(arch.tool("objcopy")).arg("--strip-debug").arg(program).arg(&small))?;
    root.program(place, &small)
}

fn observing(arch: Arch, built: &[Value]) -> Result<Root> {
    let observer = build_observer(arch, built)?;
    let others = Others::new(arch)?;
    let mut root = Root::new(others.libraries(arch), arch.triplet());
    add_init(&mut root, arch)?;
    for (program, name) in [(&observer.punctual, "punctual"), (&observer.tests, "e2e")] {
        add_program(&mut root, arch, program, &Path::new(BIN).join(name))?;
    }
    for entry in
        std::fs::read_dir(&observer.workloads).map_err(|error| cannot("read", &observer.workloads, error))?
    {
        let entry = entry.map_err(|error| cannot("read", &observer.workloads, error))?;
        root.program(&Path::new("/workloads").join(entry.file_name()), &entry.path())?;
    }

    // What the tests read of the repository.
    let repository = repository();
    for part in ["scripts", "tests/recordings"] {
        root.tree(&repository.join(part), &repository.join(part))?;
    }
    root.folder(&repository.join("tests/e2e"), 0o755);
    root.tree(&repository.join("dist"), &repository.join("dist"))?;
    for script in ["measure.sh", "latency.sh", "daemon.sh", "smoke.sh"] {
        root.file(&Path::new("/lab").join(script), &repository.join("tests/vm/guest").join(script))?;
    }
    others.add(&mut root)?;
    root.text(
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        0o644,
    );
    root.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644);
    Ok(root)
}

fn add_daemon(root: &mut Root, arch: Arch, daemon: &Daemon) -> Result {
    let place = Path::new(BIN).join("punctuald");
    add_program(root, arch, &daemon.punctuald, &place)?;
    // Where its tests look for it.
    root.link(&daemon.punctuald, &place);
    for (name, test) in &daemon.tests {
        add_program(root, arch, test, &Path::new("/lab/daemon").join(name))?;
    }
    for source in CLIENTS {
        // What they need beside the library, every program here does.
        root.file(&Path::new("/lab/daemon").join(stem(source)), &daemon.compiled.join(stem(source)))?;
    }
    for object in
        [stem(PLUGIN).as_ref(), Path::new("libpunctual")].map(|name: &Path| name.with_extension("so"))
    {
        root.program(&Path::new("/lab/daemon").join(&object), &daemon.compiled.join(&object))?;
    }
    root.link(Path::new("/lab/daemon/libpunctual.so.1"), Path::new("libpunctual.so"));
    let repository = repository();
    for part in ["tests/daemon", "crates/daemon"] {
        root.folder(&repository.join(part), 0o755);
    }
    Ok(())
}

/// Third-party programs: of this machine, or from Debian's packages for another architecture.
struct Others {
    /// Roots of systems, in the order in which they are searched.
    roots: Vec<PathBuf>,
}

/// What has them, and what Punctual links to, in Debian.
const PACKAGES: &[&str] = &[
    "libelf-dev",
    "babeltrace2",
    "bash",
    "busybox",
    "coreutils",
    "dash",
    "grep",
    "mount",
    "procps",
    "sed",
    "strace",
    "util-linux",
];

/// The release that `scripts/cross` links against.
const RELEASE: &str = "bookworm";

impl Others {
    fn new(arch: Arch) -> Result<Others> {
        if arch.is_ours() {
            return Ok(Others { roots: vec!["/".into()] });
        }
        Others::of_release(RELEASE, PACKAGES, arch)
    }

    /// Packages of a release of Debian, with all that they depend on.
    fn of_release(release: &str, packages: &[&str], arch: Arch) -> Result<Others> {
        let unpack = |package: &&str| {
            let mut command = Command::new(repository().join("scripts/debian"));
            let output =
                run(command.args(["unpack", "--with-dependencies", release, arch.debian(), package]))?;
            Ok(PathBuf::from(String::from_utf8_lossy(&output).trim_end()))
        };
        Ok(Others { roots: packages.iter().map(unpack).collect::<Result<_>>()? })
    }

    fn libraries(&self, arch: Arch) -> Libraries {
        let triplet = arch.triplet();
        let folders = [
            format!("usr/lib/{triplet}"),
            format!("lib/{triplet}"),
            "lib64".into(),
            "usr/lib64".into(),
            "lib".into(),
            "usr/lib".into(),
        ];
        Libraries {
            folders: self
                .roots
                .iter()
                .flat_map(|root| folders.iter().map(|folder| root.join(folder)))
                .collect(),
        }
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let folders = ["usr/local/bin", "usr/bin", "bin", "usr/sbin", "sbin"];
        let places =
            self.roots.iter().flat_map(|root| folders.iter().map(|folder| root.join(folder).join(name)));
        places.into_iter().find(|path| path.is_file())
    }

    fn add(&self, root: &mut Root) -> Result {
        for name in OTHERS {
            if let Some(path) = self.find(name) {
                root.program(&Path::new("/usr/bin").join(name), &path)?;
            }
        }
        // Everything else that a shell needs, in one program.
        if let Some(busybox) = self.find("busybox") {
            root.program(Path::new("/usr/bin/busybox"), &busybox)?;
            for applet in [
                "df", "dd", "find", "free", "hexdump", "id", "ip", "less", "ln", "mknod", "od", "pidof",
                "sysctl", "top", "tr", "vi", "which", "xargs",
            ] {
                root.link(&Path::new("/usr/sbin").join(applet), Path::new("/usr/bin/busybox"));
            }
        }
        // babeltrace2 loads the readers of formats by name; the one for Python would need all of Python.
        let triplets =
            [Arch::Amd64, Arch::Arm64].map(|arch| format!("usr/lib/{}/babeltrace2/plugins", arch.triplet()));
        for from in &self.roots {
            for plugins in triplets.iter().map(|path| from.join(path)).filter(|path| path.is_dir()) {
                for entry in std::fs::read_dir(&plugins).map_err(|error| cannot("read", &plugins, error))? {
                    let path = entry.map_err(|error| cannot("read", &plugins, error))?.path();
                    let inside = Path::new("/").join(path.strip_prefix(from).unwrap_or(&path));
                    root.program(&inside, &path)?;
                }
            }
        }
        Ok(())
    }
}
