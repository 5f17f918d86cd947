//! Compiles the sched_ext scheduler and generates its skeleton.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const SOURCE: &str = "src/bpf/tt.bpf.c";

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rerun-if-changed=src/bpf");
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            "-Wno-missing-declarations",
            "-mcpu=v3",
        ])
        .build_and_generate(out.join("tt.skel.rs"))
        .unwrap_or_else(|error| {
            panic!(
                "compiling {SOURCE} (is clang installed? `make build` installs what is missing): {error:?}"
            )
        });
}
