"""What can go wrong. The messages are those of the command `punctual`."""


class Error(Exception):
    """An operation that failed; every exception of this package is one."""


class UsageError(Error, ValueError):
    """Arguments contradict each other or the input, or cannot be used."""


class UnsupportedError(Error, NotImplementedError):
    """This kernel, or this user's privileges, do not allow it."""


class TargetError(Error, LookupError):
    """A thread or task that was named does not exist."""


class FileError(Error, OSError):
    """A file or folder cannot be read or written, or does not hold what it should."""


class RefusedError(Error):
    """What was asked for cannot be had."""


class PunctualWarning(UserWarning):
    """Something is missing, damaged or doubtful."""


# Where users know them.
for _kind in (Error, UsageError, UnsupportedError, TargetError, FileError, RefusedError, PunctualWarning):
    _kind.__module__ = "punctual"
