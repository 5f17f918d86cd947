//! What is tested, built: where PUNCTUALD, PUNCTUAL and LIBPUNCTUAL (the folder of the library) do not say
//! where it is, by cargo, unoptimized.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where everything is.
pub struct Built {
    pub punctuald: PathBuf,
    pub punctual: PathBuf,
    /// The folder with `libpunctual.so`.
    pub library: PathBuf,
}

static BUILT: OnceLock<Built> = OnceLock::new();

/// What [`all`] has built.
pub fn built() -> &'static Built {
    BUILT.get().expect("main builds it first")
}

/// The sources.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.current_dir(root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} failed ({status}): see above")),
        Err(error) => Err(format!("{command:?} cannot be started: {error}")),
    }
}

/// Builds what is not there.
pub fn all() -> Result<(), String> {
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let target = given("CARGO_TARGET_DIR").unwrap_or_else(|| root().join("target"));
    let cargo = || Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let punctuald = match given("PUNCTUALD") {
        Some(path) => path,
        None => {
            run(cargo().args(["build", "--quiet", "-p", "punctual-daemon", "--bin", "punctuald"]))?;
            target.join("debug/punctuald")
        }
    };
    let punctual = match given("PUNCTUAL") {
        Some(path) => path,
        None => {
            run(cargo().args(["build", "--quiet", "-p", "punctual-cli"]))?;
            target.join("debug/punctual")
        }
    };
    let library = match given("LIBPUNCTUAL") {
        Some(path) => path,
        None => {
            run(cargo().args([
                "rustc",
                "--quiet",
                "-p",
                "punctual-client",
                "--lib",
                "--crate-type",
                "staticlib",
            ]))?;
            let library = target.join("debug/client");
            let make = |name: &str, path: &Path| format!("{name}={}", path.display());
            let archive = make("ARCHIVE", &target.join("debug/libpunctual_client.a"));
            run(Command::new("make").args([
                "--silent",
                "-C",
                "crates/client",
                &archive,
                &make("OUT", &library),
            ]))?;
            library
        }
    };
    for path in [&punctuald, &punctual, &library.join("libpunctual.so.1")] {
        if !path.is_file() {
            return Err(format!(
                "there is no {}: build it first (`make build`), or say where it is",
                path.display()
            ));
        }
    }
    BUILT.set(Built { punctuald, punctual, library }).map_err(|_| "built twice".into())
}

/// A C program that was compiled before, where that was done because the machine has no compiler
/// (PUNCTUAL_COMPILED, a folder).
pub fn compiled(name: &str) -> Option<PathBuf> {
    std::env::var_os("PUNCTUAL_COMPILED").map(|folder| PathBuf::from(folder).join(name))
}
