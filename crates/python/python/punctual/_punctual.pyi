from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any, Union, final

from punctual.types import Blame, Checked, Proof, Run, Stream, TimingModel

_Path = Union[str, bytes, PathLike[str], PathLike[bytes]]
# Of them, a list; else one.
_Paths = Union[_Path, Sequence[_Path]]
_Names = Union[str, Sequence[str]]
# "10s", "1min 30s", "0.25" (seconds), or a span.
_Time = Union[str, timedelta]
_Model = Union[_Path, TimingModel]
# A buffer of int64 or uint64 (numpy, array), what numpy takes (a column of pandas, polars or Arrow), a list.
_Array = Any

__all__ = [
    "extract",
    "check",
    "Jobs",
    "jobs",
    "read_model",
    "replay",
    "write_model",
    "prove",
    "Summary",
    "merge",
    "summarize",
    "__version__",
]
__version__: str

def read_model(path: _Path) -> TimingModel: ...
def write_model(model: TimingModel, path: _Path, *, force: bool = False) -> None: ...
def replay(
    recordings: _Paths,
    *,
    threads: _Names | None = None,
    from_: _Time | None = None,
    until: _Time | None = None,
    curve_horizon: int = 1000,
    wcet_horizon: int = 1000,
    merge_transitions: bool = False,
    workers: int | None = None,
) -> TimingModel: ...
def extract(
    releases: _Array,
    costs: _Array | None = None,
    *,
    latest: _Array | None = None,
    arrivals: _Array | None = None,
    ends: _Array | None = None,
    curve_horizon: int = 1000,
    wcet_horizon: int = 1000,
) -> Stream: ...
def prove(
    model: _Model,
    *,
    platform: _Model | None = None,
    deadlines: Mapping[str, _Time] | None = None,
    margin: float = 0.0,
    what_if: _Names | None = None,
    threads: _Names | None = None,
    ignore: _Names | None = None,
    sensitivity: bool = False,
    assign: bool = False,
) -> Proof: ...
def check(
    contract: _Model,
    inputs: _Model | Sequence[_Model],
    *,
    bounds: _Path | Proof | None = None,
    from_: _Time | None = None,
    until: _Time | None = None,
    workers: int | None = None,
) -> Checked: ...
def jobs(
    recording: _Path,
    *,
    threads: _Names | None = None,
    from_: _Time | None = None,
    until: _Time | None = None,
    primary: bool = False,
    merge_transitions: bool = False,
    workers: int | None = None,
) -> Jobs: ...
def summarize(
    recordings: _Paths,
    *,
    threads: _Names | None = None,
    from_: _Time | None = None,
    until: _Time | None = None,
    curve_horizon: int = 1000,
    wcet_horizon: int = 1000,
    merge_transitions: bool = False,
    causes: bool = False,
    workers: int | None = None,
) -> Summary: ...
def merge(summaries: Iterable[Summary], *, same_program: bool = False) -> Summary: ...
@final
class Jobs:
    @property
    def clock(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Summary:
    def __new__(cls, contents: bytes | None = None) -> Summary: ...
    @classmethod
    def read(cls, path: _Path) -> Summary: ...
    def write(self, path: _Path, *, force: bool = False) -> None: ...
    def model(self) -> TimingModel: ...
    def blame(self) -> list[Blame]: ...
    @property
    def runs(self) -> list[Run]: ...
    @property
    def tasks(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Summary], tuple[bytes]]: ...
