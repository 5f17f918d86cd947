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
    let [punctuald, punctual, library] = ["PUNCTUALD", "PUNCTUAL", "LIBPUNCTUAL"].map(given);
    if punctuald.is_none() || punctual.is_none() || library.is_none() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let packages = ["-p", "punctual-daemon", "-p", "punctual-cli", "-p", "punctual-c"];
        run(Command::new(cargo).args(["build", "--quiet"]).args(packages))?;
    }
    let punctuald = punctuald.unwrap_or_else(|| target.join("debug/punctuald"));
    let punctual = punctual.unwrap_or_else(|| target.join("debug/punctual"));
    let library = match library {
        Some(path) => path,
        None => {
            let library = target.join("client");
            let make = |name: &str, path: &Path| format!("{name}={}", path.display());
            run(Command::new("make")
                .args(["--silent", "-C", "crates/client"])
                .args([make("ARCHIVE", &target.join("debug/libpunctual_c.a")), make("OUT", &library)]))?;
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
