//! Names for the addresses that threads wait on ([`punctual_model::ObjectName`]): what lies there, by the
//! process's list of mappings and the symbols of the mapped file.
//!
//! A thread's address is looked up once, when its first record arrives; a process that ends before that has
//! no names. Heap and stack have none, and neither has what the observer may not read.

mod mappings;
mod module;

use mappings::Mappings;
use module::Module;
use punctual_model::{Object, ObjectName, Separator};
use punctual_trace::Begin;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Most addresses of a thread that are looked up: more separators than this share one stream anyway.
const MOST_ADDRESSES: usize = 32;
/// Most files that are remembered.
const MOST_MODULES: usize = 256;

/// The names found so far.
#[derive(Default)]
pub struct Names {
    threads: Threads,
    programs: u64,
    modules: HashMap<Identity, Option<Arc<Module>>>,
}

/// The threads that are in the observer's PID namespace.
pub type Threads = HashMap<u32, Addresses>;

/// The addresses of a thread.
#[derive(Clone, Default)]
pub struct Addresses {
    /// Programs are numbered in the order in which they were executed.
    program: u64,
    known: Vec<(u64, Option<ObjectName>)>,
}

/// Which file: device, inode, size, time of its last change.
type Identity = (u64, u64, u64, (i64, i64));

impl Names {
    /// A task of a thread begins. Another program has other addresses.
    pub fn begin(&mut self, tid: u32, begin: Begin) {
        let addresses = self.threads.entry(tid).or_default();
        if matches!(begin, Begin::Seen | Begin::Exec) {
            self.programs += 1;
            *addresses = Addresses { program: self.programs, known: Vec::new() };
        }
    }

    /// The threads, with the names found so far.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Takes over the threads of another, and the names that it has found.
    pub fn follow(&mut self, others: &Threads) {
        self.threads.retain(|tid, _| others.contains_key(tid));
        for (tid, other) in others {
            let addresses = self.threads.entry(*tid).or_default();
            if addresses.program != other.program {
                addresses.clone_from(other);
            }
            for address in &other.known {
                if !addresses.known.iter().any(|(known, _)| *known == address.0) {
                    addresses.known.push(*address);
                }
            }
        }
    }

    /// A thread has ended.
    pub fn end(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// Gives the address that a thread waits on its name.
    #[inline]
    pub fn complete(&mut self, tid: u32, separator: &mut Separator) {
        if let Object::Address { address, name } = &mut separator.object {
            *name = self.name(tid, *address);
        }
    }

    /// The name of an address of a thread that is watched.
    pub fn name(&mut self, tid: u32, address: u64) -> Option<ObjectName> {
        let addresses = self.threads.get_mut(&tid)?;
        if let Some((_, name)) = addresses.known.iter().find(|(other, _)| *other == address) {
            return *name;
        }
        if addresses.known.len() >= MOST_ADDRESSES {
            return None;
        }
        let name = find(tid, address, &mut self.modules);
        addresses.known.push((address, name));
        name
    }
}

fn find(tid: u32, address: u64, modules: &mut HashMap<Identity, Option<Arc<Module>>>) -> Option<ObjectName> {
    let text = fs::read(format!("/proc/{tid}/maps")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mappings = Mappings::parse(&text);
    let place = mappings.place(address)?;
    let (start, end) = (place.mapping.start, place.mapping.end);
    // The mapped file itself, even if its path now leads elsewhere; that needs a capability.
    let mapped = File::open(format!("/proc/{tid}/map_files/{start:x}-{end:x}"));
    let by_path = || {
        let file = File::open(format!("/proc/{tid}/root{}", place.mapping.path)).ok()?;
        (file.metadata().ok()?.ino() == place.mapping.inode).then_some(file)
    };
    let file = mapped.ok().or_else(by_path)?;
    let about = file.metadata().ok()?;
    let identity = (about.dev(), about.ino(), about.size(), (about.mtime(), about.mtime_nsec()));
    if modules.len() == MOST_MODULES && !modules.contains_key(&identity) {
        modules.clear();
    }
    let module = modules.entry(identity).or_insert_with(|| Some(Arc::new(Module::read(&file)?))).clone()?;
    let (from, file_offset) = place.first(module.first_offset())?;
    let address = module.address(address, from, file_offset)?;
    let offset = || ObjectName::new(&format!("{}+{address:#x}", place.module));
    let Some((symbol, offset_in_it)) = module.symbol(address) else { return offset() };
    let name = match offset_in_it {
        0 => format!("{}:{symbol}", place.module),
        more => format!("{}:{symbol}+{more:#x}", place.module),
    };
    ObjectName::new(&name).or_else(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Call;
    use std::sync::atomic::AtomicU64;

    /// In `.data`, in `.bss`, and in the middle of something.
    #[unsafe(no_mangle)]
    static PUNCTUAL_TEST_OF_DATA: [AtomicU64; 4] =
        [AtomicU64::new(1), AtomicU64::new(2), AtomicU64::new(3), AtomicU64::new(4)];
    #[unsafe(no_mangle)]
    static PUNCTUAL_TEST_OF_BSS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

    fn name(names: &mut Names, address: u64) -> Option<String> {
        let tid = std::process::id();
        let mut separator = Separator { call: Call::FutexWait, object: Object::address(address) };
        names.complete(tid, &mut separator);
        separator.object.name().map(|name| name.to_string())
    }

    fn place<T>(what: &T) -> u64 {
        std::ptr::from_ref(what) as u64
    }

    #[test]
    fn names_found_elsewhere_are_known() {
        let (mut names, mut others) = (Names::default(), Names::default());
        let (tid, static_place) = (std::process::id(), place(&PUNCTUAL_TEST_OF_DATA));
        others.begin(tid, Begin::Seen);
        // A name that the process itself would not give.
        let found = (static_place, ObjectName::new("found"));
        others.threads.get_mut(&tid).expect("it has begun").known.push(found);
        names.follow(others.threads());
        assert_eq!(name(&mut names, static_place).as_deref(), Some("found"));
        // Another program has none of the old names, and ended threads none at all.
        others.begin(tid, Begin::Exec);
        names.follow(others.threads());
        assert_eq!(names.threads[&tid].known, []);
        others.end(tid);
        names.follow(others.threads());
        assert_eq!(name(&mut names, static_place), None);
    }

    #[test]
    fn statics_have_names_and_heap_and_stack_have_none() {
        let mut names = Names::default();
        assert_eq!(name(&mut names, place(&PUNCTUAL_TEST_OF_DATA)), None, "an unknown thread");
        names.begin(std::process::id(), Begin::Seen);
        let program = std::env::current_exe().expect("a path");
        let program = program.file_name().expect("a name").to_string_lossy().into_owned();
        let expect = |rest: &str| Some(format!("{program}:PUNCTUAL_TEST_OF_{rest}"));
        assert_eq!(name(&mut names, place(&PUNCTUAL_TEST_OF_DATA)), expect("DATA"));
        assert_eq!(name(&mut names, place(&PUNCTUAL_TEST_OF_DATA[2])), expect("DATA+0x10"));
        assert_eq!(name(&mut names, place(&PUNCTUAL_TEST_OF_BSS[1000])), expect("BSS+0x1f40"));
        let (heap, stack) = (Box::new(AtomicU64::new(0)), AtomicU64::new(0));
        assert_eq!(name(&mut names, place(&*heap)), None);
        assert_eq!(name(&mut names, place(&stack)), None);
        assert_eq!(name(&mut names, 0), None);
        unsafe extern "C" {
            static environ: *const u8;
        }
        let library = name(&mut names, (&raw const environ) as u64).expect("a variable of a library");
        assert!(library.ends_with("environ") && !library.starts_with(&program), "{library}");
        assert_eq!(name(&mut names, !7), None);
    }

    #[test]
    fn an_address_is_looked_up_once_and_again_in_another_program() {
        let mut names = Names::default();
        let tid = std::process::id();
        names.begin(tid, Begin::Seen);
        let address = place(&PUNCTUAL_TEST_OF_DATA);
        names.threads.get_mut(&tid).expect("it has begun").known.push((address, None));
        assert_eq!(name(&mut names, address), None);
        names.begin(tid, Begin::Priority);
        assert_eq!(name(&mut names, address), None);
        names.begin(tid, Begin::Exec);
        assert!(name(&mut names, address).is_some());
        names.end(tid);
        assert_eq!((name(&mut names, address), names.threads.len()), (None, 0));
    }

    #[test]
    fn addresses_are_bounded() {
        let mut names = Names::default();
        names.begin(std::process::id(), Begin::Seen);
        for address in 0..1000 {
            assert_eq!(name(&mut names, address * 8), None);
        }
        assert_eq!(names.threads[&std::process::id()].known.len(), MOST_ADDRESSES);
    }
}
