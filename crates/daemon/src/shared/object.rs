//! Opening a shared object, if no one but root or the daemon's user can have changed it, and it has this
//! version of the interface.

use super::abi::{CPlugin, Functions, VERSION};
use crate::text;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open object and what it exports. The functions are valid as long as the object is open.
pub struct Object {
    pub functions: Functions,
    _library: Library,
}

impl Object {
    /// Opens an object. An error is a sentence that names it.
    pub fn open(path: &Path) -> Result<Object, String> {
        let failure = |why: String| format!("{}: {why}", path.display());
        let file = File::open(path)
            .map_err(|error| failure(format!("cannot be opened: {}", text::reason(&error))))?;
        let about = file.metadata().map_err(|error| failure(text::reason(&error)))?;
        if !about.is_file() {
            return Err(failure("is not a regular file".into()));
        }
        text::trusted(&about).map_err(&failure)?;
        // By descriptor, so that what was looked at is what is loaded.
        let opened = unique_name(&file);
        // SAFETY: constructors of the object run. Its owner is root or whoever runs this, as was just seen,
        // so it may do as it likes.
        let library = unsafe { Library::open(Some(&opened), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            failure(format!("cannot be loaded: {}", reason(&error).replace(&opened, "it")))
        })?;
        // SAFETY: by punctual-plugin.h, the symbol is such a function.
        let symbol = unsafe { library.get::<unsafe extern "C" fn() -> *const CPlugin>(b"punctual_plugin\0") }
            .map_err(|_| {
                failure("does not export punctual_plugin (punctual-plugin.h), so it is not a plugin".into())
            })?;
        // SAFETY: as above; it takes nothing.
        let plugin = unsafe { symbol() };
        // SAFETY: it is null or what the header says.
        let functions = unsafe { functions(plugin) }.map_err(&failure)?;
        Ok(Object { functions, _library: library })
    }
}

/// A path to an open file that was never used before.
///
/// The dynamic loader takes two objects of one name for the same one, and a descriptor's number comes again
/// after it was closed, while the object of then may still be loaded. So the path spells a counter, in
/// components that mean nothing: `.` for 1, and none for 0.
fn unique_name(file: &File) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let bits = (0..u64::BITS - number.leading_zeros()).map(|bit| number >> bit & 1);
    let components: String = bits.map(|bit| if bit == 1 { "./" } else { "/" }).collect();
    format!("/proc/self/fd/{components}{}", file.as_raw_fd())
}

/// What a description says, as far as its writer knew this version.
///
/// # Safety
///
/// `plugin` is null, or points to a version, a size and as many bytes as that says.
unsafe fn functions(plugin: *const CPlugin) -> Result<Functions, String> {
    if plugin.is_null() {
        return Err("punctual_plugin() returned NULL".into());
    }
    // SAFETY: the first two fields are there in every version.
    let (version, size) =
        unsafe { ((&raw const (*plugin).abi_version).read(), (&raw const (*plugin).size).read()) };
    if version != VERSION {
        return Err(format!(
            "was compiled for version {version} of punctual-plugin.h, but this daemon has {VERSION}; compile \
             it again"
        ));
    }
    let size = usize::try_from(size).unwrap_or(0);
    if size < std::mem::offset_of!(CPlugin, attach) {
        return Err(format!(
            "says that its description has {size} bytes, which is too few for version {VERSION} of \
             punctual-plugin.h"
        ));
    }
    // What its writer did not know yet is null.
    let mut known = std::mem::MaybeUninit::<CPlugin>::zeroed();
    // SAFETY: `size` bytes are there, and no more are written than `known` has. All zeros are a valid value,
    // and so are any function pointers.
    let known = unsafe {
        plugin.cast::<u8>().copy_to_nonoverlapping(known.as_mut_ptr().cast(), size.min(size_of::<CPlugin>()));
        known.assume_init()
    };
    Functions::from_description(&known).map_err(|missing| format!("has no function {missing}"))
}

/// What the loader says, which libloading keeps as the source.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
