//! The interpreter and libraries of a program, found as the dynamic loader would find them.

use goblin::elf::Elf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders with libraries, in search order.
pub struct Libraries {
    /// Folders of this machine; for another architecture, of its packages.
    pub folders: Vec<PathBuf>,
}

/// What a program needs: the path here for each name that the loader asks for. The interpreter has its whole
/// path as its name.
pub type Needed = BTreeMap<String, PathBuf>;

impl Libraries {
    /// Everything that `program` needs, and what that needs. A script or a static program needs nothing.
    pub fn needed(&self, program: &Path) -> Result<Needed, String> {
        let mut needed = Needed::new();
        let mut left = vec![program.to_path_buf()];
        let mut seen = BTreeSet::new();
        while let Some(file) = left.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            let bytes =
                std::fs::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            if !bytes.starts_with(b"\x7fELF") {
                continue;
            }
            let elf = Elf::parse(&bytes)
                .map_err(|error| format!("{} is not a program: {error}", file.display()))?;
            let interpreter = elf.interpreter.filter(|_| file == program);
            for name in interpreter.into_iter().chain(elf.libraries.iter().copied()) {
                let found = self.find(name, &elf.runpaths, &file);
                let found = found
                    .ok_or_else(|| format!("{} needs {name}, which is not to be found", file.display()))?;
                left.push(found.clone());
                needed.insert(name.to_owned(), found);
            }
        }
        Ok(needed)
    }

    fn find(&self, name: &str, runpaths: &[&str], user: &Path) -> Option<PathBuf> {
        // The interpreter is requested by its path; any of our folders may have it.
        let base = Path::new(name).file_name()?;
        let origin = user.parent()?.to_string_lossy().into_owned();
        let own = runpaths
            .iter()
            .flat_map(|paths| paths.split(':'))
            .map(|path| PathBuf::from(path.replace("$ORIGIN", &origin)));
        own.chain(self.folders.iter().cloned()).map(|folder| folder.join(base)).find(|path| path.is_file())
    }
}
