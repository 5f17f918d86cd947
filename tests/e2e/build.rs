//! Builds the workloads, so that `cargo test -p punctual-e2e` alone has them.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads");
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("workloads");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed={}", source.join("../../flow").display());
    println!("cargo::rustc-env=WORKLOADS={}", out.display());
    let mut make = Command::new("make");
    make.arg("--silent").arg("-C").arg(&source).arg(format!("OUT={}", out.display()));
    // The workloads run beside the tests, so what the tests are compiled for is what they are compiled for.
    println!("cargo::rerun-if-env-changed=TARGET_CC");
    if env::var_os("TARGET") != env::var_os("HOST") {
        let compiler = env::var("TARGET_CC")
            .expect("a cross build needs TARGET_CC, the C compiler for the target: scripts/cross sets it");
        make.arg(format!("CC={compiler}"));
        // There is none for C++: tests of what is written in it say so.
        make.arg("CXX=");
    }
    match make.status() {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("the workloads do not compile: see above"),
        Err(error) => panic!("make cannot be started ({error}): install make and a C compiler"),
    }
}
