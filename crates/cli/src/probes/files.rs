//! The files that say where events are: as they are named on the command line, read and put together.

use crate::failure::{Code, Failure, reason};
use punctual_observe::flow::ProbeFile;
use std::path::{Path, PathBuf};

/// Those that come with Punctual. They are part of the command, so that they are there wherever it is, and of
/// its version.
const SHIPPED: [(&str, &str); 2] = [
    ("punctual-flow", include_str!("../../../../dist/flow-probes/punctual-flow.toml")),
    ("tasking-framework-1.2", include_str!("../../../../dist/flow-probes/tasking-framework-1.2.toml")),
];

/// Reads them; what later ones say is added to what the first say.
pub fn read(paths: &[PathBuf]) -> Result<ProbeFile, Failure> {
    let mut all = ProbeFile::default();
    for path in paths {
        let bytes = bytes(path)?;
        let file = ProbeFile::parse(&bytes)
            .map_err(|(line, what)| Failure::new(Code::File, format!("{}:{line}: {what}", path.display())))?;
        all.add(file);
    }
    all.check().map_err(|what| {
        let advice = if all.probes.is_empty() {
            "; give the file of its framework too, and this one behind it"
        } else {
            ""
        };
        Failure::new(Code::File, format!("{}: {what}{advice}", names(paths)))
    })?;
    Ok(all)
}

/// What to call them all, for people.
pub fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(" ")
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        // A file of one's own comes before one that is shipped and has the same name.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match shipped(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => {
                let shipped = SHIPPED.map(|(name, _)| name).join(", ");
                Err(Failure::file(
                    "read",
                    path.display(),
                    format!("{}; {shipped} come with Punctual, by these names", reason(&error)),
                ))
            }
        },
        Err(error) => Err(Failure::file("read", path.display(), reason(&error))),
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

    /// As they are in the folder that is installed.
    #[test]
    fn all_that_is_shipped_has_a_name() {
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
    fn what_cannot_be_read_is_said() {
        let said =
            |paths: &[&str]| read(&paths.iter().map(PathBuf::from).collect::<Vec<_>>()).unwrap_err().message;
        let none = said(&["nope"]);
        assert!(
            none.contains("cannot read nope: no such file")
                && none.contains("punctual-flow, tasking-framework-1.2 come with"),
            "{none}"
        );
        assert!(said(&["folder/punctual-flow.toml"]).contains("no such file"));
        let folder = tempfile::tempdir().unwrap();
        let of_program = folder.path().join("rover.toml");
        std::fs::write(&of_program, "policy = \"fifo\"\n").unwrap();
        let of_program = of_program.to_str().unwrap();
        assert!(said(&[of_program]).contains("give the file of its framework too"));
        assert_eq!(
            read(&["punctual-flow".into(), of_program.into()]).unwrap().policy.as_deref(),
            Some("fifo")
        );
    }
}
