//! The kernel's symbols, for the addresses that programs compare with and for culprits' stacks.

use crate::error::{Error, ErrorKind};
use std::fs;

const FILE: &str = "/proc/kallsyms";

/// No function is longer than this.
const LONGEST: u64 = 1 << 16;

/// The kernel's functions by address.
pub struct Symbols {
    /// Address and name, with the module in brackets behind it, ascending.
    functions: Vec<(u64, String)>,
    /// Where which modules were then.
    modules: Vec<(String, String)>,
}

impl Symbols {
    /// Reads them; for root, the kernel shows the addresses.
    pub fn read() -> Result<Symbols, Error> {
        let unreadable = |why: String| {
            Error::new(ErrorKind::Kernel, format!("cannot read the kernel's symbols ({FILE}): {why}"))
        };
        let text = fs::read_to_string(FILE).map_err(|error| unreadable(error.to_string()))?;
        let symbols = Symbols { modules: modules(), ..Symbols::parse(&text) };
        if symbols.functions.last().is_none_or(|last| last.0 == 0) {
            return Err(unreadable(
                "it hides their addresses; that takes CAP_SYSLOG (see kernel.kptr_restrict)".into(),
            ));
        }
        Ok(symbols)
    }

    pub(super) fn parse(text: &str) -> Symbols {
        let mut functions: Vec<(u64, String)> = text.lines().filter_map(function_of).collect();
        functions.sort_by_key(|function| function.0);
        Symbols { functions, modules: Vec::new() }
    }

    /// Reads them again if modules were loaded or unloaded since.
    pub fn refresh(&mut self) -> Result<(), Error> {
        if modules() != self.modules {
            *self = Symbols::read()?;
        }
        Ok(())
    }

    /// Where a symbol is.
    pub fn address(&self, name: &str) -> Result<u64, Error> {
        self.function(name).map(|range| range.0)
    }

    /// Where a function begins and ends.
    pub fn function(&self, name: &str) -> Result<(u64, u64), Error> {
        let missing = || Error::new(ErrorKind::Kernel, format!("this kernel has no function {name}"));
        let at = self.functions.iter().position(|function| function.1 == name).ok_or_else(missing)?;
        Ok((self.functions[at].0, self.end(at)))
    }

    fn end(&self, at: usize) -> u64 {
        let begin = self.functions[at].0;
        self.functions[at..]
            .iter()
            .map(|function| function.0)
            .find(|other| *other > begin)
            .unwrap_or(u64::MAX)
    }

    /// The function that holds an address, and how far into it that is.
    pub fn name(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.functions.partition_point(|function| function.0 <= address);
        let (begin, name) = self.functions.get(after.checked_sub(1)?)?;
        // Behind the last function of the kernel lie modules, which may be gone.
        (address - begin < LONGEST).then_some((name, address - begin))
    }
}

/// The kernel's modules, by name and address.
fn modules() -> Vec<(String, String)> {
    let text = fs::read_to_string("/proc/modules").unwrap_or_default();
    let module = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        Some((words.next()?.to_owned(), words.nth(4)?.to_owned()))
    };
    text.lines().filter_map(module).collect()
}

/// `ffffffff81000000 T _stext`, with `[module]` behind for those of modules.
fn function_of(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    let name = words.next()?;
    let name = words.next().map_or_else(|| name.to_owned(), |module| format!("{name} {module}"));
    matches!(kind, "t" | "T" | "w" | "W").then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000200 t irqentry_enter\nffffffff81000000 T _stext\n\
        ffffffff81000300 T bpf_trace_run1\nffffffff81000340 T bpf_trace_run12\nffffffff81000380 T other\n\
        ffffffff82000000 D data\nffffffffc0000000 t of_module\t[module]\n";

    #[test]
    fn functions_end_where_the_next_begins() {
        let symbols = Symbols::parse(TEXT);
        assert_eq!(
            symbols.function("irqentry_enter").unwrap(),
            (0xffff_ffff_8100_0200, 0xffff_ffff_8100_0300)
        );
        assert!(symbols.function("data").is_err());
    }

    #[test]
    fn addresses_have_names() {
        let symbols = Symbols::parse(TEXT);
        assert_eq!(symbols.name(0xffff_ffff_8100_0210), Some(("irqentry_enter", 0x10)));
        assert_eq!(symbols.name(0xffff_ffff_c000_0001), Some(("of_module [module]", 1)));
        assert_eq!(symbols.name(1), None);
        assert_eq!(symbols.name(0xffff_ffff_c001_0000), None, "in a module that is gone");
    }
}
