//! What loading an eBPF object takes, whichever it is: libbpf's log, errors, shared memory, detaching.

use crate::error::{Error, ErrorKind};
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::{Btf, Link, Object, OpenObject, PrintLevel, libbpf_sys};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Where to look further; left out in `doctor` itself.
pub const ADVICE: &str = "; `punctual doctor` says what is missing";

/// Silences libbpf, which reports on standard error by default: its errors end up in ours.
/// `PUNCTUAL_LIBBPF_LOG` shows everything, the verifier's log included.
pub fn silence_libbpf() {
    let show = std::env::var_os("PUNCTUAL_LIBBPF_LOG").is_some();
    libbpf_rs::set_print(show.then_some((PrintLevel::Debug, |_, text| eprint!("{text}"))));
}

/// The error where the kernel refuses to do `what`.
pub fn refused(what: &str, error: &libbpf_rs::Error) -> Error {
    Error::new(ErrorKind::Kernel, format!("{what}: the kernel refused it ({error}){ADVICE}"))
}

/// The error where an object's sections are not those of its source.
pub fn lacks_settings() -> Error {
    Error::new(ErrorKind::Other, "the eBPF program lacks its settings; this is a bug of Punctual's build")
}

/// Room for an object's handle. A process loads one or two objects, so the few bytes may live as long as it.
pub fn storage() -> &'static mut MaybeUninit<OpenObject> {
    Box::leak(Box::new(MaybeUninit::uninit()))
}

/// Programs still attached that do nothing any more. Dropping it detaches them, for which the kernel may take
/// seconds: each function waits until no processor is in it.
#[derive(Default)]
pub struct Attached(pub(crate) Vec<Link>);

impl std::fmt::Debug for Attached {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} programs", self.0.len())
    }
}

/// The kernel's information about a program; zeros if it gives none.
pub fn information(program: BorrowedFd<'_>) -> libbpf_sys::bpf_prog_info {
    let mut about = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&about) as u32;
    // SAFETY: `about` has room for `length` bytes, and all its pointers and their counts are zero.
    unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut about).cast(), &mut length) };
    about
}

/// Whether the kernel has a tracepoint of this name.
pub fn has_tracepoint(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}")).is_some()
}

/// Leaves out the programs on tracepoints that the kernel does not have, or that are not `wanted`.
pub fn choose_tracepoints(object: &mut OpenObject, btf: &Btf<'_>, wanted: impl Fn(&str) -> bool) {
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        if let Some(tracepoint) = section.strip_prefix("tp_btf/") {
            program.set_autoload(has_tracepoint(btf, tracepoint) && wanted(tracepoint));
        }
    }
}

/// Attaches each program to what its section names.
pub fn attach_all(object: &Object) -> Result<Vec<Link>, Error> {
    let loaded = object.progs_mut().filter(|program| program.autoload());
    loaded
        .map(|program| {
            let section = program.section().to_string_lossy().into_owned();
            program.attach().map_err(|error| refused(&format!("attaching to {section}"), &error))
        })
        .collect()
}

/// How many processors this machine can have: entries of maps that have one for each.
pub fn most_processors() -> Result<u32, Error> {
    let count = libbpf_rs::num_possible_cpus();
    count.map(|count| count as u32).map_err(|error| refused("counting the processors", &error))
}

/// A counter in memory shared with the programs; 0 if there is none at `which`.
pub fn read_counter(counters: &[u64], which: usize) -> u64 {
    let Some(counter) = counters.get(which) else { return 0 };
    // SAFETY: a valid, aligned reference; the programs only ever add to the whole word.
    unsafe { std::ptr::from_ref(counter).read_volatile() }
}

/// Plain data in the programs' layout: any bytes are a value of it.
///
/// # Safety
/// Only for `repr(C)` structs of integers and of arrays and structs of them, which is what libbpf-cargo
/// generates for C structs of integers.
pub unsafe trait Plain: Copy {}

/// Reads a `T` from the beginning of `bytes`; `None` if they are too few.
pub fn read_plain<T: Plain>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: there are enough bytes, `read_unaligned` needs no alignment, and any bytes are a `T`.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast::<T>()) })
}

/// Text up to its NUL. What is not UTF-8 becomes U+FFFD, except for a character cut off at the end.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let whole = match std::str::from_utf8(&bytes[..end]) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => end,
    };
    String::from_utf8_lossy(&bytes[..whole]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_was_cut_is_text() {
        assert_eq!(text("Größ".as_bytes()), "Größ");
        assert_eq!(text(&"Größe".as_bytes()[..3]), "Gr");
        assert_eq!(text(b"Gr\xf6\xdfe"), "Gr\u{fffd}\u{fffd}e");
        assert_eq!(text(b"kworker\0garbage"), "kworker");
    }
}
