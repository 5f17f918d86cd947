//! Probes files: finding, reading and merging them.

use crate::error::{Error, Result, plain_reason};
use punctual_observe::flow::ProbeFile;
use std::path::{Path, PathBuf};

/// The files that come with Punctual, compiled in so that they are always there and of the same version.
const SHIPPED: [(&str, &str); 2] = [
    ("punctual-flow", include_str!("punctual-flow.toml")),
    ("tasking-framework-1.2", include_str!("tasking-framework-1.2.toml")),
];

/// Reads files and merges them; later ones add to earlier ones.
pub fn read(paths: &[PathBuf]) -> Result<ProbeFile> {
    let mut all = ProbeFile::default();
    for path in paths {
        let bytes = bytes(path)?;
        let file = ProbeFile::parse(&bytes)
            .map_err(|(line, what)| Error::file(format!("{}:{line}", path.display())).because(what))?;
        all.add(file);
    }
    all.check().map_err(|what| {
        let error = Error::file(names(paths)).because(what);
        match all.probes.is_empty() {
            true => error.advise("give the file of its framework too, before this one"),
            false => error,
        }
    })?;
    Ok(all)
}

/// All names, for messages.
pub fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(" ")
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        // The user's own file takes precedence over a shipped one of the same name.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match shipped(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => {
                let shipped = SHIPPED.map(|(name, _)| name).join(", ");
                Err(Error::file(format!("cannot read {}", path.display()))
                    .because(plain_reason(&error))
                    .advise(format!("{shipped} come with Punctual")))
            }
        },
        Err(error) => Err(Error::io("read", path.display(), &error)),
    }
}

fn shipped(path: &Path) -> Option<&'static str> {
    let name = path.to_str()?;
    let name = name.strip_suffix(".toml").unwrap_or(name);
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_file_is_known_by_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/flow-probes");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, SHIPPED.map(|(name, _)| format!("{name}.toml")));
        for name in names {
            assert!(read(&[name.clone().into()]).is_ok(), "{name}");
            assert!(read(&[name.trim_end_matches(".toml").into()]).is_ok(), "{name}");
        }
    }

    #[test]
    fn unreadable_files_are_explained() {
        let refusal = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            format!("{:#}", read(&paths).unwrap_err())
        };
        let none = refusal(&["nope"]);
        assert!(
            none.contains("cannot read nope: no such file")
                && none.contains("punctual-flow, tasking-framework-1.2 come with"),
            "{none}"
        );
        assert!(refusal(&["folder/punctual-flow.toml"]).contains("no such file"));
        let folder = tempfile::tempdir().unwrap();
        let of_program = folder.path().join("rover.toml");
        std::fs::write(&of_program, "policy = \"fifo\"\n").unwrap();
        let of_program = of_program.to_str().unwrap();
        assert!(refusal(&[of_program]).contains("give the file of its framework too"));
        assert_eq!(
            read(&["punctual-flow".into(), of_program.into()]).unwrap().policy.as_deref(),
            Some("fifo")
        );
    }
}
