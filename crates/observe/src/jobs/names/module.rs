//! A program or library as an ELF file: where its parts lie in memory, and which variables are there.
//!
//! Of the file, only headers and symbols are read. It comes from others, and can be anything.

use goblin::container::Ctx;
use goblin::elf::header::{Header, header64::SIZEOF_EHDR};
use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use goblin::elf::section_header::{SHT_DYNSYM, SHT_SYMTAB, SectionHeader};
use goblin::elf::sym::STT_OBJECT;
use goblin::elf::{Elf, Symtab};
use goblin::strtab::Strtab;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Most bytes of a table in a file.
const MOST_BYTES: u64 = 256 << 20;

/// What is known of a file.
#[derive(Debug)]
pub struct Module {
    /// By address.
    parts: Vec<Part>,
    variables: Variables,
}

/// A part of the file that is mapped, and the memory behind it.
#[derive(Debug)]
struct Part {
    /// In the file.
    offset: u64,
    address: u64,
    size: u64,
}

/// Variables by address, each with its size and name. A name that several have is none.
type Variables = BTreeMap<u64, (u64, Option<String>)>;

impl Module {
    /// `None` if it is not a program or library.
    pub fn read(file: &File) -> Option<Module> {
        let header = Elf::parse_header(&table(file, 0, SIZEOF_EHDR as u64)?).ok()?;
        let context = Ctx::new(header.container().ok()?, header.endianness().ok()?);
        let size = u64::from(header.e_phentsize) * u64::from(header.e_phnum);
        let bytes = table(file, header.e_phoff, size)?;
        let parts = ProgramHeader::parse(&bytes, 0, header.e_phnum.into(), context).ok()?;
        let parts = parts.iter().filter(|part| part.p_type == PT_LOAD);
        let mut parts: Vec<Part> =
            parts.map(|it| Part { offset: it.p_offset, address: it.p_vaddr, size: it.p_memsz }).collect();
        parts.sort_by_key(|part| part.address);
        let variables = variables(file, &header, context).unwrap_or_default();
        (!parts.is_empty()).then_some(Module { parts, variables })
    }

    /// Where its first part is in the file.
    pub fn first_offset(&self) -> u64 {
        self.parts[0].offset
    }

    /// The address in the file of an address in memory. The mapping that has the first part begins at `start`
    /// in memory and at `offset` in the file. `None` if the address does not belong to it.
    pub fn address(&self, address: u64, start: u64, offset: u64) -> Option<u64> {
        let first = &self.parts[0];
        let moved = start.wrapping_add(first.offset.wrapping_sub(offset)).wrapping_sub(first.address);
        let address = address.wrapping_sub(moved);
        let has = |part: &Part| part.address <= address && address - part.address < part.size;
        self.parts.iter().any(has).then_some(address)
    }

    /// The variable that has this address, or else begins in the eight bytes from there on, and the address's
    /// distance from its start.
    pub fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let last = self.variables.range(..=address).next_back();
        let has = last.filter(|(start, (size, _))| address - **start < *size);
        let next = || self.variables.range(address..address.saturating_add(8)).next();
        let (start, (_, name)) = has.or_else(next)?;
        Some((name.as_deref()?, address.saturating_sub(*start)))
    }
}

/// The variables in a file's tables of symbols.
fn variables(file: &File, header: &Header, context: Ctx) -> Option<Variables> {
    let size = u64::from(header.e_shentsize) * u64::from(header.e_shnum);
    let bytes = table(file, header.e_shoff, size)?;
    let sections = SectionHeader::parse_from(&bytes, 0, header.e_shnum.into(), context).ok()?;
    let mut all: Vec<(u64, u64, String)> = Vec::new();
    for section in sections.iter().filter(|it| [SHT_SYMTAB, SHT_DYNSYM].contains(&it.sh_type)) {
        let texts = sections.get(usize::try_from(section.sh_link).ok()?);
        let Some(texts) = texts.and_then(|it| table(file, it.sh_offset, it.sh_size)) else { continue };
        let texts = Strtab::from_slice_unparsed(&texts, 0, texts.len(), 0);
        let Some(symbols) = table(file, section.sh_offset, section.sh_size) else { continue };
        let count = section.sh_size.checked_div(section.sh_entsize).unwrap_or(0);
        let Ok(symbols) = Symtab::parse(&symbols, 0, usize::try_from(count).ok()?, context) else { continue };
        for symbol in symbols.iter().filter(|it| it.st_type() == STT_OBJECT && it.st_shndx != 0) {
            let name = texts.get_unsafe(symbol.st_name).unwrap_or_default();
            // Shared libraries have the version behind it.
            let name = name.split('@').next().unwrap_or(name);
            if !name.is_empty() && symbol.st_size > 0 {
                all.push((symbol.st_value, symbol.st_size, name.to_owned()));
            }
        }
    }
    Some(named(all))
}

/// Of several variables at one address the greatest counts, then the first by name.
fn named(mut all: Vec<(u64, u64, String)>) -> Variables {
    all.sort_by(|one, other| (one.0, other.1, &one.2).cmp(&(other.0, one.1, &other.2)));
    let mut places: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for (address, _, name) in &all {
        let (first, is_one) = places.entry(name).or_insert((*address, true));
        *is_one &= first == address;
    }
    let mut variables = Variables::new();
    for (address, size, name) in &all {
        let name = places.get(name.as_str()).filter(|(_, is_one)| *is_one).map(|_| name.clone());
        variables.entry(*address).or_insert((*size, name));
    }
    variables
}

/// Some bytes of a file, if it has as many.
fn table(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let length = file.metadata().ok()?.len();
    if size > MOST_BYTES || offset.checked_add(size)? > length {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn module(variables: &[(u64, u64, &str)]) -> Module {
        let all = variables.iter().map(|(address, size, name)| (*address, *size, (*name).to_owned()));
        let parts = vec![
            Part { offset: 0, address: 0x1000, size: 0x800 },
            Part { offset: 0x2010, address: 0x4010, size: 0x9000 },
        ];
        Module { parts, variables: named(all.collect()) }
    }

    #[test]
    fn an_address_moves_with_its_file() {
        let module = module(&[]);
        // The first part is at 0x7f00_0000_1000: the file was moved by 0x7f00_0000_0000.
        let address = |address| module.address(address, 0x7f00_0000_1000, 0);
        assert_eq!(address(0x7f00_0000_4040), Some(0x4040));
        assert_eq!(address(0x7f00_0000_d00f), Some(0xd00f), "the last byte behind the file's");
        assert_eq!(address(0x7f00_0000_d010), None);
        assert_eq!(address(0x7f00_0000_1800), None, "between two parts");
        assert_eq!(address(0x1000), None);
    }

    #[test]
    fn variables_are_found_by_what_they_cover() {
        let module = module(&[(0x4040, 40, "lock"), (0x4074, 4, "word"), (0x4080, 8, "next")]);
        assert_eq!(module.symbol(0x4040), Some(("lock", 0)));
        assert_eq!(module.symbol(0x4048), Some(("lock", 8)));
        assert_eq!(module.symbol(0x4068), None);
        // The kernel side rounds down to eight bytes.
        assert_eq!(module.symbol(0x4070), Some(("word", 0)));
        assert_eq!(module.symbol(0x4078), None);
        assert_eq!(module.symbol(0x4087), Some(("next", 7)));
        assert_eq!(module.symbol(u64::MAX), None);
    }

    #[test]
    fn a_name_is_one_variables_or_nobodys() {
        let module = module(&[
            (0x4040, 40, "lock"),
            (0x4080, 40, "lock"),
            (0x4100, 8, "alias"),
            (0x4100, 8, "main"),
            (0x4100, 8, "main"),
        ]);
        assert_eq!((module.symbol(0x4040), module.symbol(0x4080)), (None, None));
        assert_eq!(module.symbol(0x4100), Some(("alias", 0)));
    }

    proptest! {
        /// Two addresses of a file never have the same name.
        #[test]
        fn names_tell_addresses_apart(
            variables in prop::collection::vec((0x4000..0x4040_u64, 1..20_u64, "[ab]"), 0..8),
        ) {
            let variables: Vec<_> = variables.iter().map(|(at, size, name)| (*at, *size, &**name)).collect();
            let module = module(&variables);
            let mut found = std::collections::BTreeMap::new();
            for address in (0x4000..0x4060).step_by(8) {
                if let Some(name) = module.symbol(address) {
                    prop_assert_eq!(found.insert(name, address), None);
                }
            }
        }

        #[test]
        fn whatever_is_in_a_file_is_survived(
            changes in prop::collection::vec((0..4096_usize, any::<u8>()), 0..40),
        ) {
            let program = std::env::current_exe().expect("a path");
            let mut bytes = vec![0; 64 << 10];
            File::open(program).expect("it runs").read_exact_at(&mut bytes, 0).expect("it is that long");
            changes.iter().for_each(|(place, byte)| bytes[*place] = *byte);
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&bytes).expect("room");
            if let Some(module) = Module::read(&file) {
                module.address(0x7f00_0000_0000, 0x7f00_0000_0000, 0);
                module.symbol(0x1000);
            }
        }
    }
}
