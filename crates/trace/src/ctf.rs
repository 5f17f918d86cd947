//! Recordings on disk: CTF 1.8, a folder with `metadata` and stream files. The page "Recordings" of ARCHITECTURE.md has the layout.
