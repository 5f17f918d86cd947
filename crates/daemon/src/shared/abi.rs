//! `include/punctual-plugin.h` in Rust. A test compares sizes and offsets with what the C compiler says.

use std::ffi::{c_char, c_int, c_void};

pub const VERSION: u32 = 1;

pub const RUNTIME: u32 = 1 << 0;
pub const DESIRED_RUNTIME: u32 = 1 << 1;
pub const PERIOD: u32 = 1 << 2;
pub const DEADLINE: u32 = 1 << 3;
pub const PRIORITY: u32 = 1 << 4;

pub const POLICY_FIFO: u32 = 1;
pub const POLICY_RR: u32 = 2;
pub const POLICY_DEADLINE: u32 = 6;

pub const OK: c_int = 0;
pub const PARTIAL: c_int = 1;
pub const NO: c_int = 2;

#[repr(C)]
#[derive(Default)]
pub struct CParameters {
    pub size: u32,
    pub declared: u32,
    pub runtime_ns: u64,
    pub desired_runtime_ns: u64,
    pub period_ns: u64,
    pub deadline_ns: u64,
    pub priority: u32,
    pub ignore_admission: u32,
}

#[repr(C)]
pub struct CConfiguration {
    pub size: u32,
    pub priority_min: u32,
    pub priority_max: u32,
    pub processor_count: u32,
    pub processors: *const u32,
    pub name: *const c_char,
    pub threshold: f64,
    pub exact: u32,
    pub reserved: u32,
    pub least_runtime_ns: u64,
    pub least_period_ns: u64,
    pub greatest_period_ns: u64,
}

#[repr(C)]
#[derive(Default)]
pub struct COffer {
    pub size: u32,
    pub processor: u32,
    pub accepted_runtime_ns: u64,
    pub ignored: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Default)]
pub struct CAssignment {
    pub size: u32,
    pub processor: u32,
    pub policy: u32,
    pub priority: u32,
    pub runtime_ns: u64,
    pub deadline_ns: u64,
    pub period_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CLoad {
    pub processor: u32,
    pub specs: u32,
    pub utilization: f64,
}

type Ask = unsafe extern "C" fn(*mut c_void, *const CParameters, *mut COffer, *mut c_char, usize) -> c_int;
type AskChange =
    unsafe extern "C" fn(*mut c_void, u64, *const CParameters, *mut COffer, *mut c_char, usize) -> c_int;

/// As a plugin may have it: anything may be null.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CPlugin {
    pub abi_version: u32,
    pub size: u32,
    pub init: Option<unsafe extern "C" fn(*const CConfiguration, *mut c_char, usize) -> *mut c_void>,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub accept: Option<Ask>,
    pub change: Option<AskChange>,
    pub schedule: Option<unsafe extern "C" fn(*mut c_void, u64, *const CParameters, *const COffer)>,
    pub release: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub assignment: Option<unsafe extern "C" fn(*mut c_void, u64, *mut CAssignment) -> c_int>,
    pub shifted: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub loads: Option<unsafe extern "C" fn(*mut c_void, *mut CLoad, usize) -> usize>,
    pub attach: Option<unsafe extern "C" fn(*mut c_void, u64, u32)>,
    pub detach: Option<unsafe extern "C" fn(*mut c_void, u64)>,
}

/// All functions that must be there, there.
#[derive(Clone, Copy)]
pub struct Functions {
    pub init: unsafe extern "C" fn(*const CConfiguration, *mut c_char, usize) -> *mut c_void,
    pub destroy: unsafe extern "C" fn(*mut c_void),
    pub accept: Ask,
    pub change: AskChange,
    pub schedule: unsafe extern "C" fn(*mut c_void, u64, *const CParameters, *const COffer),
    pub release: unsafe extern "C" fn(*mut c_void, u64),
    pub assignment: unsafe extern "C" fn(*mut c_void, u64, *mut CAssignment) -> c_int,
    pub shifted: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub loads: unsafe extern "C" fn(*mut c_void, *mut CLoad, usize) -> usize,
    pub attach: Option<unsafe extern "C" fn(*mut c_void, u64, u32)>,
    pub detach: Option<unsafe extern "C" fn(*mut c_void, u64)>,
}

impl Functions {
    /// The functions of a plugin, or the name of the first that is missing.
    pub fn from_description(plugin: &CPlugin) -> Result<Functions, &'static str> {
        Ok(Functions {
            init: plugin.init.ok_or("init")?,
            destroy: plugin.destroy.ok_or("destroy")?,
            accept: plugin.accept.ok_or("accept")?,
            change: plugin.change.ok_or("change")?,
            schedule: plugin.schedule.ok_or("schedule")?,
            release: plugin.release.ok_or("release")?,
            assignment: plugin.assignment.ok_or("assignment")?,
            shifted: plugin.shifted.ok_or("shifted")?,
            loads: plugin.loads.ok_or("loads")?,
            attach: plugin.attach,
            detach: plugin.detach,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::mem::offset_of;
    use std::process::Command;

    /// Each structure with its fields, in C and here.
    macro_rules! layouts {
        ($($c:literal = $rust:ident { $($field:ident),* })*) => {{
            let (mut c, mut here) = (String::new(), String::new());
            $(
                let _ = writeln!(c, "say(\"{0}\", sizeof(struct {0}));", $c);
                let _ = writeln!(here, "{} {}", $c, size_of::<$rust>());
                $(
                    let _ = writeln!(c, "say(\"{0}.{1}\", offsetof(struct {0}, {1}));", $c,
                        stringify!($field));
                    let _ = writeln!(here, "{}.{} {}", $c, stringify!($field), offset_of!($rust, $field));
                )*
            )*
            (c, here)
        }};
    }

    #[test]
    fn the_header_and_this_file_agree() {
        let (mut c, mut here) = layouts! {
            "punctual_parameters" = CParameters { size, declared, runtime_ns, desired_runtime_ns, period_ns,
                deadline_ns, priority, ignore_admission }
            "punctual_configuration" = CConfiguration {
                size, priority_min, priority_max, processor_count, processors, name, threshold, exact,
                reserved, least_runtime_ns, least_period_ns, greatest_period_ns
            }
            "punctual_offer" = COffer { size, processor, accepted_runtime_ns, ignored, reserved }
            "punctual_assignment" = CAssignment { size, processor, policy, priority, runtime_ns, deadline_ns,
                period_ns }
            "punctual_load" = CLoad { processor, specs, utilization }
            "punctual_plugin_description" = CPlugin {
                abi_version, size, init, destroy, accept, change, schedule, release, assignment, shifted,
                loads, attach, detach
            }
        };
        let numbers = [
            ("ABI", VERSION),
            ("RUNTIME", RUNTIME),
            ("DESIRED_RUNTIME", DESIRED_RUNTIME),
            ("PERIOD", PERIOD),
            ("DEADLINE", DEADLINE),
            ("PRIORITY", PRIORITY),
            ("POLICY_FIFO", POLICY_FIFO),
            ("POLICY_RR", POLICY_RR),
            ("POLICY_DEADLINE", POLICY_DEADLINE),
            ("OK", OK as u32),
            ("PARTIAL", PARTIAL as u32),
            ("NO", NO as u32),
        ];
        for (name, value) in numbers {
            let _ = writeln!(c, "say(\"{name}\", PUNCTUAL_PLUGIN_{name});");
            let _ = writeln!(here, "{name} {value}");
        }
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("layout.c");
        let say = "static void say(const char *what, unsigned long number) \
                   { printf(\"%s %lu\\n\", what, number); }";
        std::fs::write(
            &source,
            format!("#include \"punctual-plugin.h\"\n#include <stdio.h>\n{say}\nint main(void) {{\n{c}}}\n"),
        )
        .unwrap();
        let program = folder.path().join("layout");
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
        let flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", include, "-o"];
        let compiled = Command::new("cc").args(flags).arg(&program).arg(&source).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let printed = Command::new(&program).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&printed.stdout), here);
    }
}
