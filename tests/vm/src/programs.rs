//! What is tested, built for the architecture of a machine, and whose programs are beside it.

use crate::elf::Libraries;
use crate::error::{Error, Result, cannot};
use crate::matrix::Arch;
use crate::root::Root;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs of others that the tests use, and what one wants in a shell. Where this machine lacks one, so does the virtual one.
const OTHERS: &[&str] = &[
    "babeltrace2",
    "bash",
    "cat",
    "chmod",
    "chrt",
    "cp",
    "date",
    "dirname",
    "dmesg",
    "echo",
    "env",
    "false",
    "grep",
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

/// Where runs leave what they leave.
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

/// What was built.
struct Built {
    punctual: PathBuf,
    tests: PathBuf,
    workloads: PathBuf,
}

fn run(command: &mut Command) -> Result<Vec<u8>> {
    let name = format!(
        "{} {}",
        command.get_program().to_string_lossy(),
        command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    let output = command.stderr(std::process::Stdio::inherit()).output().map_err(|error| Error(format!("cannot run {name}: {error}")))?;
    if output.status.success() { Ok(output.stdout) } else { Err(Error(format!("{name} failed: see above"))) }
}

/// Builds with cargo, and takes from what it says where things are.
fn build(arch: Arch) -> Result<Built> {
    // Minutes where something has changed; nothing of it is printed by cargo itself.
    eprintln!("lab: building what goes into the machine, where it has changed …");
    let cargo = || {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(if arch.is_ours() { &cargo } else { OsStr::new("scripts/cross") });
        if !arch.is_ours() {
            command.arg(arch.target()).arg(&cargo);
        }
        command.current_dir(repository());
        command
    };
    let target = if arch.is_ours() { vec![] } else { vec!["--target", arch.target()] };
    let said = run(cargo().args(["build", "--quiet", "--release", "-p", "punctual-cli", "--message-format=json"]).args(&target))?;
    let punctual = messages(&said).find_map(|message| executable(&message, "punctual"));
    let said = run(cargo().args(["test", "--quiet", "--no-run", "-p", "punctual-e2e", "--message-format=json"]).args(&target))?;
    let tests = messages(&said).find_map(|message| executable(&message, "e2e"));
    let workloads = messages(&said).find_map(|message| {
        let ours = message["reason"] == "build-script-executed" && message["package_id"].as_str()?.contains("punctual-e2e");
        ours.then(|| message["out_dir"].as_str().map(|out| Path::new(out).join("workloads")))?
    });
    match (punctual, tests, workloads) {
        (Some(punctual), Some(tests), Some(workloads)) => Ok(Built { punctual, tests, workloads }),
        _ => Err(Error("cargo did not say where it put what it built".into())),
    }
}

fn messages(said: &[u8]) -> impl Iterator<Item = Value> {
    String::from_utf8_lossy(said).lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>().into_iter()
}

fn executable(message: &Value, target: &str) -> Option<PathBuf> {
    (message["target"]["name"] == target).then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// The root for machines of an architecture, without a job.
pub fn root(arch: Arch) -> Result<Root> {
    let built = build(arch)?;
    let others = Others::of(arch)?;
    let mut root = Root::new(others.libraries(arch), arch.triplet());
    let folder = folder();
    std::fs::create_dir_all(&folder).map_err(|error| cannot("create", &folder, error))?;

    let init = folder.join(format!("init-{}", arch.triplet()));
    let source = repository().join("tests/vm/guest/init.c");
    let mut compile = Command::new(if arch.is_ours() { "cc" } else { "scripts/cross" });
    if !arch.is_ours() {
        // It says which compiler in TARGET_CC.
        compile.args([arch.target(), "sh", "-c", "$TARGET_CC \"$@\"", "cc"]);
    }
    compile.current_dir(repository()).args(["-static", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
    run(compile.arg(&init).arg(source))?;
    root.file(Path::new("/init"), &init)?;

    // Without what debuggers want, which is most of them, and would be memory of the machine.
    for (program, name) in [(&built.punctual, "punctual"), (&built.tests, "e2e")] {
        let small = folder.join(format!("{name}-{}", arch.triplet()));
        run(Command::new(arch.tool("objcopy")).arg("--strip-debug").arg(program).arg(&small))?;
        root.program(&Path::new("/usr/local/bin").join(name), &small)?;
    }
    for entry in std::fs::read_dir(&built.workloads).map_err(|error| cannot("read", &built.workloads, error))? {
        let entry = entry.map_err(|error| cannot("read", &built.workloads, error))?;
        root.program(&Path::new("/workloads").join(entry.file_name()), &entry.path())?;
    }
    // Where the tests look for them.
    root.link(&built.workloads, Path::new("/workloads"));

    // What the tests read of the repository.
    let repository = repository();
    for part in ["scripts", "tests/recordings"] {
        root.tree(&repository.join(part), &repository.join(part))?;
    }
    root.folder(&repository.join("tests/e2e"), 0o755);
    let measure = repository.join("tests/vm/guest/measure.sh");
    root.file(Path::new("/lab/measure.sh"), &measure)?;
    others.add(&mut root)?;
    root.text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", 0o644);
    root.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644);
    Ok(root)
}

/// The programs of others: of this machine, or from Debian's packages for another architecture.
struct Others {
    /// Roots of systems, in the order in which they are searched.
    roots: Vec<PathBuf>,
}

/// What has them, and what Punctual links to, in Debian.
const PACKAGES: &[&str] =
    &["libelf-dev", "babeltrace2", "bash", "busybox", "coreutils", "dash", "grep", "mount", "procps", "sed", "strace", "util-linux"];

/// The release that `scripts/cross` links against.
const RELEASE: &str = "bookworm";

impl Others {
    fn of(arch: Arch) -> Result<Others> {
        if arch.is_ours() {
            return Ok(Others { roots: vec!["/".into()] });
        }
        let unpack = |package: &&str| {
            let mut command = Command::new(repository().join("scripts/debian"));
            let said = run(command.args(["unpack", "--with-dependencies", RELEASE, arch.debian(), package]))?;
            Ok(PathBuf::from(String::from_utf8_lossy(&said).trim_end()))
        };
        Ok(Others { roots: PACKAGES.iter().map(unpack).collect::<Result<_>>()? })
    }

    fn libraries(&self, arch: Arch) -> Libraries {
        let triplet = arch.triplet();
        let folders =
            [format!("usr/lib/{triplet}"), format!("lib/{triplet}"), "lib64".into(), "usr/lib64".into(), "lib".into(), "usr/lib".into()];
        Libraries { folders: self.roots.iter().flat_map(|root| folders.iter().map(|folder| root.join(folder))).collect() }
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let folders = ["usr/local/bin", "usr/bin", "bin", "usr/sbin", "sbin"];
        let places = self.roots.iter().flat_map(|root| folders.iter().map(|folder| root.join(folder).join(name)));
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
                "cut", "df", "dd", "find", "free", "hexdump", "id", "ip", "less", "ln", "mknod", "od", "pidof", "sysctl", "top", "tr",
                "vi", "which", "xargs",
            ] {
                root.link(&Path::new("/usr/sbin").join(applet), Path::new("/usr/bin/busybox"));
            }
        }
        // babeltrace2 loads the readers of formats by name; the one for Python would need all of Python.
        let triplets = [Arch::Amd64, Arch::Arm64].map(|arch| format!("usr/lib/{}/babeltrace2/plugins", arch.triplet()));
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
