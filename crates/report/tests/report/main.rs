//! Files for other tools, in one program so that it is linked once.

mod jobs;
mod timeline;
