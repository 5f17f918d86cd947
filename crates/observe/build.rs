//! Compiles the eBPF programs and generates their skeletons.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let arch =
        match std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH").as_str() {
            "x86_64" => "x86",
            "aarch64" => "arm64",
            other => panic!("the eBPF programs do not know the system calls of {other}"),
        };
    // The second has atomic instructions that give what was there before; kernels know them since 5.12.
    for (name, processor) in [("observe", "v2"), ("flow", "v3")] {
        let source = format!("src/bpf/{name}.bpf.c");
        SkeletonBuilder::new()
            .source(&source)
            .clang_args([
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-parameter",
                "-Wno-missing-declarations",
                &format!("-mcpu={processor}"),
                &format!("-D__TARGET_ARCH_{arch}"),
            ])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .unwrap_or_else(|error| panic!("compiling {source} (is clang installed? `make build` installs what is missing): {error:?}"));
    }
    println!("cargo:rerun-if-changed=src/bpf");
}
