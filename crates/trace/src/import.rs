//! Other tools' traces, read into records. What a source lacks is said, not guessed.
