//! Finds functions in a program and in the libraries that it is linked to.

use crate::error::{Error, ErrorKind};
use goblin::elf::program_header::PT_LOAD;
use goblin::elf::sym::STT_FUNC;
use goblin::elf::{Elf, Sym};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A function's place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The program, or one of its libraries.
    pub file: PathBuf,
    /// Where in the file it begins.
    pub offset: usize,
    /// What the kernel does at its first instruction; `None` where that is not known.
    pub first: Option<First>,
}

/// How the kernel handles a breakpoint at an instruction (x86-64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// It emulates the instruction.
    Emulated,
    /// It single-steps the instruction, which costs ten times as much.
    SingleStepped,
    /// It sets no breakpoint there.
    Refused,
}

/// Looks up functions: in the program first, then in its libraries, in their order.
pub fn find(program: &Path, names: &[&str]) -> Result<Vec<Option<Function>>, Error> {
    let mut found = vec![None; names.len()];
    for file in std::iter::once(program.to_owned()).chain(libraries(program)) {
        if found.iter().all(Option::is_some) {
            break;
        }
        let bytes = std::fs::read(&file).map_err(|error| failed(&file, error))?;
        let elf = match Elf::parse(&bytes) {
            Ok(elf) => elf,
            Err(_) if bytes.starts_with(b"#!") => {
                return Err(failed(&file, "it is a script; name the program that it starts"));
            }
            Err(error) => return Err(failed(&file, format!("it is not a program: {error}"))),
        };
        let symbols = elf.dynsyms.iter().map(|symbol| (elf.dynstrtab.get_at(symbol.st_name), symbol));
        for (name, symbol) in
            symbols.chain(elf.syms.iter().map(|symbol| (elf.strtab.get_at(symbol.st_name), symbol)))
        {
            let Some(at) = name.and_then(|name| names.iter().position(|wanted| *wanted == name)) else {
                continue;
            };
            if found[at].is_none() && symbol.st_type() == STT_FUNC && symbol.st_value != 0 {
                found[at] = offset(&elf, &symbol).map(|offset| {
                    let first = bytes.get(offset..).unwrap_or_default();
                    Function { file: file.clone(), offset, first: kind_of(&elf, first) }
                });
            }
        }
    }
    Ok(found)
}

fn failed(file: &Path, why: impl ToString) -> Error {
    Error::new(
        ErrorKind::CommandFailed,
        format!("cannot look for functions in {}: {}", file.display(), why.to_string()),
    )
}

/// The place in the file of an address.
fn offset(elf: &Elf<'_>, symbol: &Sym) -> Option<usize> {
    let header = elf.program_headers.iter().find(|header| {
        header.p_type == PT_LOAD
            && symbol.st_value >= header.p_vaddr
            && symbol.st_value - header.p_vaddr < header.p_filesz
    })?;
    usize::try_from(symbol.st_value - header.p_vaddr + header.p_offset).ok()
}

/// The libraries that the dynamic loader would load, by its own account; it runs nothing of the program.
/// Empty for static programs.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let Ok(bytes) = std::fs::read(program) else { return Vec::new() };
    let Some(loader) = Elf::parse(&bytes).ok().and_then(|elf| elf.interpreter.map(str::to_owned)) else {
        return Vec::new();
    };
    let Ok(output) = Command::new(loader).arg("--list").arg(program).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| {
            line.split_once("=> ")?.1.split(" (0x").next().map(|path| PathBuf::from(path.trim()))
        })
        .filter(|path| path.is_file())
        .collect()
}

/// The kernel emulates pushes, jumps, calls and no-ops. It refuses locked instructions.
fn kind_of(elf: &Elf<'_>, first: &[u8]) -> Option<First> {
    if elf.header.e_machine != goblin::elf::header::EM_X86_64 {
        return None;
    }
    Some(match first {
        [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..] => First::Emulated,
        [0x90, ..] | [0x66, 0x90, ..] | [0x0f, 0x1f, ..] | [0x66, 0x0f, 0x1f, ..] => First::Emulated,
        [0xe8 | 0xe9 | 0xeb, ..] => First::Emulated,
        [0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] => First::Emulated,
        [0xf0, ..] => First::Refused,
        _ => First::SingleStepped,
    })
}

/// The file that a command runs: a path, or a name in PATH.
pub fn program(name: &std::ffi::OsStr) -> Option<PathBuf> {
    let there =
        |path: &Path| path.is_file().then(|| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    let path = Path::new(name);
    if path.components().count() > 1 {
        return there(path);
    }
    std::env::var_os("PATH")
        .and_then(|paths| std::env::split_paths(&paths).find_map(|folder| there(&folder.join(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_program_and_its_libraries_are_found() {
        let here = std::env::current_exe().unwrap();
        let found = find(&here, &["main", "malloc", "there_is_no_such_function"]).unwrap();
        assert_eq!(found[0].as_ref().unwrap().file, here);
        assert!(found[1].as_ref().unwrap().file.to_string_lossy().contains("libc"), "{found:?}");
        assert_eq!(found[2], None);
    }

    #[test]
    fn what_is_no_program_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(find(&script, &["main"]).unwrap_err().to_string().contains("it is a script"));
        std::fs::write(&script, "text").unwrap();
        assert!(find(&script, &["main"]).unwrap_err().to_string().contains("it is not a program"));
        assert_eq!(program("/there/is/none".as_ref()), None);
        assert!(program("sh".as_ref()).unwrap().is_absolute());
    }
}
