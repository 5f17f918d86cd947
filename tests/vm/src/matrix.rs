//! The kernels that the lab knows by name: those that people have, which come as packages of distributions
//! (`scripts/debian`), and one that no distribution has (`scripts/kernel`). Any other kernel is an image
//! file. [`crate::machine`] boots them.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An architecture, of a kernel and of all programs that run on it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Arch {
    /// x86-64, as Debian calls it.
    Amd64,
    /// AArch64, as Debian calls it.
    Arm64,
}

impl Arch {
    /// The name that Debian has for it.
    pub fn debian(self) -> &'static str {
        match self {
            Arch::Amd64 => "amd64",
            Arch::Arm64 => "arm64",
        }
    }

    /// The name that cargo and the cross compilers have for it.
    pub fn target(self) -> &'static str {
        match self {
            Arch::Amd64 => "x86_64-unknown-linux-gnu",
            Arch::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }
}

/// A kernel that can be booted.
#[derive(Debug)]
pub struct Kernel {
    /// The name it was asked for by, or its path.
    pub name: String,
    pub arch: Arch,
    /// The file that QEMU boots.
    pub image: PathBuf,
    /// Its configuration file, if it is known.
    pub config: Option<PathBuf>,
    /// Modules that tests load, in a folder of their own.
    pub modules: Vec<PathBuf>,
}

impl Kernel {
    /// Whether it is known to have `CONFIG_` and this.
    pub fn has(&self, option: &str) -> bool {
        let config = self.config.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        config.lines().any(|line| line == format!("CONFIG_{option}=y"))
    }
}

/// Why a kernel is not available here.
#[derive(Debug)]
pub struct Missing {
    /// One line, to be read after the kernel's name.
    pub reason: String,
}

/// Where a kernel comes from.
struct Source {
    name: &'static str,
    /// A release, as `scripts/debian` takes it.
    release: &'static str,
    arch: Arch,
    /// The packages as extended regular expressions: the first has the kernel; the others have its
    /// configuration where that is a package of its own, with the kernel's own release in place of `{}`.
    packages: &'static [&'static str],
}

/// Cloud kernels where they exist: they are a quarter of the size, and differ in drivers only.
const SOURCES: &[Source] = &[
    Source {
        name: "5.10",
        release: "bullseye-security",
        arch: Arch::Amd64,
        packages: &[r"linux-image-5\.10\.0-[0-9]+-cloud-amd64"],
    },
    // Debian never released it. Boards have it, and Ubuntu.
    Source {
        name: "5.15",
        release: "ubuntu:jammy-updates",
        arch: Arch::Amd64,
        packages: &[r"linux-image-5\.15\.0-[0-9]+-generic", "linux-modules-{}"],
    },
    Source {
        name: "6.1",
        release: "bookworm",
        arch: Arch::Amd64,
        packages: &[r"linux-image-6\.1\.0-[0-9]+-cloud-amd64"],
    },
    Source {
        name: "6.12-rt",
        release: "trixie",
        arch: Arch::Amd64,
        packages: &[r"linux-image-6\.12\.[0-9.]+\+deb[0-9]+-rt-amd64"],
    },
    // The oldest with sched_ext that is packaged, and the last without SCX_ENQ_IMMED.
    Source {
        name: "6.14",
        release: "ubuntu:noble-updates",
        arch: Arch::Amd64,
        packages: &[r"linux-image-6\.14\.0-[0-9]+-generic", "linux-modules-{}"],
    },
    Source {
        name: "7.0",
        release: "ubuntu:noble-updates",
        arch: Arch::Amd64,
        packages: &[r"linux-image-7\.0\.0-[0-9]+-generic", "linux-modules-{}"],
    },
    Source {
        name: "7.2",
        release: "sid",
        arch: Arch::Amd64,
        packages: &[r"linux-binary-7\.2\.[0-9.]+\+deb[0-9]+-cloud-amd64", LATER],
    },
    Source {
        name: "7.2-rt",
        release: "sid",
        arch: Arch::Amd64,
        packages: &[r"linux-binary-7\.2\.[0-9.]+\+deb[0-9]+-rt-amd64", LATER],
    },
    // Its ftrace cannot call BPF programs, so they have only tracepoints.
    Source {
        name: "6.1-arm64",
        release: "bookworm",
        arch: Arch::Arm64,
        packages: &[r"linux-image-6\.1\.0-[0-9]+-cloud-arm64"],
    },
    Source {
        name: "6.12-arm64",
        release: "trixie",
        arch: Arch::Arm64,
        packages: &[r"linux-image-6\.12\.[0-9.]+\+deb[0-9]+-cloud-arm64"],
    },
];

/// Since 7.0, Debian has the configuration in a package of its own.
const LATER: &str = "linux-base-{}";

/// A kernel with PREEMPT_RT and every tracer, which has to be built: see `tests/vm/kernel/traced.config`.
pub const TRACED: &str = "7.2-rt-traced";

/// Names its image, where it was built elsewhere.
const TRACED_IMAGE: &str = "PUNCTUAL_TRACED_KERNEL";

/// The names of all kernels that can be had without building one.
pub fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|source| source.name)
}

/// Whether this is a name, and not a path.
pub fn is_name(name: &str) -> bool {
    name == TRACED || names().any(|known| known == name)
}

/// The kernel of that name: one of [`names`], [`TRACED`], or the path of a `bzImage` or `Image`. Packages are
/// downloaded if they have not been.
pub fn get(name: &str) -> Result<Kernel, Missing> {
    match SOURCES.iter().find(|source| source.name == name) {
        Some(source) => from_packages(source),
        None if name == TRACED => traced(),
        None if name.contains('/') || Path::new(name).exists() => from_file(name),
        None => {
            let names = names().collect::<Vec<_>>().join(", ");
            Err(missing(format!("no such kernel: there are {names}, {TRACED}, and any image by its path")))
        }
    }
}

fn missing(reason: String) -> Missing {
    Missing { reason }
}

fn from_packages(source: &Source) -> Result<Kernel, Missing> {
    let package = unpacked(source, source.packages[0])?;
    let lacks = || missing(format!("the package has no kernel in it: {}", package.display()));
    // In packages without `/boot`, the kernel lies beside its modules.
    let (image, release) = versioned(&package.join("boot"), "vmlinuz-")
        .or_else(|| {
            let (modules, release) = versioned(&package.join("usr/lib/modules"), "")?;
            Some((modules.join("vmlinuz"), release))
        })
        .filter(|(image, _)| image.is_file())
        .ok_or_else(lacks)?;
    let mut folders = vec![package.clone()];
    for pattern in &source.packages[1..] {
        folders.push(unpacked(source, &pattern.replace("{}", &escaped(&release)))?);
    }
    let configs = [format!("boot/config-{release}"), format!("usr/lib/modules/{release}/config")];
    Ok(Kernel {
        name: source.name.to_owned(),
        arch: source.arch,
        image,
        config: first(&folders, &configs),
        modules: vec![],
    })
}

/// The first of these files that exists in one of the folders.
fn first(folders: &[PathBuf], files: &[String]) -> Option<PathBuf> {
    folders.iter().flat_map(|folder| files.iter().map(|file| folder.join(file))).find(|path| path.exists())
}

/// The entry of a folder whose name has this prefix, and the rest of the name.
fn versioned(folder: &Path, prefix: &str) -> Option<(PathBuf, String)> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let release = entry.file_name().to_str()?.strip_prefix(prefix)?.to_owned();
        Some((entry.path(), release))
    })
}

/// A release as an extended regular expression: `.` and `+` have a meaning there.
fn escaped(release: &str) -> String {
    release.replace('.', r"\.").replace('+', r"\+")
}

/// The folder with the newest package of that name.
fn unpacked(source: &Source, pattern: &str) -> Result<PathBuf, Missing> {
    path_from("scripts/debian", &["unpack", source.release, source.arch.debian(), pattern])
}

/// The image named in the environment, else the one that `scripts/kernel` has built or found. Its
/// configuration and modules may lie beside it: `bzImage-7.2`, `config-7.2`.
fn traced() -> Result<Kernel, Missing> {
    let image = match std::env::var_os(TRACED_IMAGE) {
        Some(path) => PathBuf::from(path),
        None => path_from("scripts/kernel", &["find"])?,
    };
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let config = Some(image.with_file_name(name.replace("bzImage", "config")));
    let config = config.filter(|config| *config != image && config.is_file());
    let modules = modules_in(image.parent().unwrap_or(Path::new(".")));
    Ok(Kernel { name: TRACED.to_owned(), config, modules, ..from_file(&image.to_string_lossy())? })
}

/// The kernel modules in a folder.
fn modules_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "ko")).collect()
}

/// The path that a script of the repository prints.
fn path_from(script: &str, arguments: &[&str]) -> Result<PathBuf, Missing> {
    Ok(PathBuf::from(printed(script, arguments)?.trim_end()))
}

/// What a script of the repository prints. Its last error line is the reason if it prints nothing.
pub fn printed(script: &str, arguments: &[&str]) -> Result<String, Missing> {
    let ran = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(script))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| missing(format!("{script} cannot be started: {error}")))?;
    let messages = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        let reason = messages
            .lines()
            .last()
            .map_or_else(|| format!("{script} ended with {}", ran.status), str::to_owned);
        return Err(missing(reason));
    }
    eprint!("{messages}");
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn from_file(path: &str) -> Result<Kernel, Missing> {
    let mut header = Vec::new();
    // Both formats are recognized by less.
    File::open(path)
        .and_then(|file| file.take(0x400).read_to_end(&mut header))
        .map_err(|error| missing(format!("it cannot be read: {error}")))?;
    let image = fs::canonicalize(path).map_err(|error| missing(format!("it cannot be found: {error}")))?;
    Ok(Kernel { name: path.to_owned(), arch: arch_of(&header)?, image, config: None, modules: vec![] })
}

/// The architecture of a kernel, from the first kilobyte of its file. Formats: the kernel's
/// `arch/x86/boot.rst`, `arch/arm64/booting.rst`.
fn arch_of(header: &[u8]) -> Result<Arch, Missing> {
    let has = |offset: usize, magic: &[u8]| header.get(offset..offset + magic.len()) == Some(magic);
    if has(0x202, b"HdrS") {
        Ok(Arch::Amd64)
    } else if has(0x38, b"ARM\x64") || has(0, b"\x1f\x8b") {
        // Arm kernels are compressed as a whole, which a bzImage is not; QEMU decompresses them.
        Ok(Arch::Arm64)
    } else if has(0, b"MZ") && has(4, b"zimg") {
        Err(missing(
            "it decompresses itself under EFI, which the lab does not have: give the Image it was made from"
                .to_owned(),
        ))
    } else if has(0, b"\x7fELF") {
        Err(missing(
            "it is a vmlinux: give the bzImage (x86-64) or Image (arm64) that was made from it".to_owned(),
        ))
    } else {
        Err(missing("it is neither a bzImage (x86-64) nor an Image (arm64)".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_recognized_by_their_headers() {
        let header = |offset: usize, magic: &[u8]| {
            let mut bytes = vec![0; 0x400];
            bytes[offset..offset + magic.len()].copy_from_slice(magic);
            arch_of(&bytes).map_err(|missing| missing.reason)
        };
        assert_eq!(header(0x202, b"HdrS"), Ok(Arch::Amd64));
        assert_eq!(header(0x38, b"ARM\x64"), Ok(Arch::Arm64));
        assert_eq!(header(0, b"\x1f\x8b\x08"), Ok(Arch::Arm64));
        assert!(header(0, b"\x7fELF").is_err_and(|reason| reason.contains("vmlinux")));
        assert!(header(0, b"MZ\0\0zimg").is_err_and(|reason| reason.contains("EFI")));
        assert!(header(0, b"nothing").is_err());
        assert!(arch_of(b"MZ").is_err(), "a short file");
    }

    #[test]
    fn a_missing_kernel_is_explained() {
        assert!(get("4.4").is_err_and(|missing| missing.reason.contains("6.12-rt")));
        assert!(get("./no/such/image").is_err_and(|missing| missing.reason.contains("cannot be read")));
    }

    #[test]
    fn kernel_releases_match_exactly() {
        assert_eq!(escaped("7.2.13+deb14-rt-amd64"), r"7\.2\.13\+deb14-rt-amd64");
    }
}
