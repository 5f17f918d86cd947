"""Extraction of arrays by the Python package, beside the same in Rust: processor time, in turn.

python extract.py BENCH_ARRAYS      # the example of crates/extract, built with --release
"""

import array
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import punctual

JOBS = 1_000_000
ROUNDS = 9


def jobs():
    """Releases and costs of a periodic thread that is late at random."""
    source = random.Random(1)
    releases = array.array(
        "Q", (10**9 + n * 10**6 + int(source.expovariate(1 / 20_000)) for n in range(JOBS))
    )
    return array.array("Q", sorted(releases)), array.array(
        "Q", (source.randrange(200_000, 250_000) for _ in releases)
    )


def main(rust):
    releases, costs = jobs()
    times = {"Rust": [], "Python": []}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "releases", Path(folder) / "costs"]
        for file, numbers in zip(files, (releases, costs)):
            file.write_bytes(numbers.tobytes())
        for _ in range(ROUNDS):
            times["Rust"].append(int(subprocess.run([rust, *files], check=True, capture_output=True).stdout))
            begin = time.process_time_ns()
            punctual.extract(releases, costs)
            times["Python"].append(time.process_time_ns() - begin)
    print(
        f"| extraction of {JOBS:,} releases and costs | ns per job (median of {ROUNDS}) | least | greatest |"
    )
    print("|---|---|---|---|")
    for name, all_ns in times.items():
        median, least, greatest = (of(all_ns) / JOBS for of in (statistics.median, min, max))
        print(f"| {name} | {median:.1f} | {least:.1f} | {greatest:.1f} |")
    ratio = statistics.median(times["Python"]) / statistics.median(times["Rust"])
    print(f"| Python / Rust | {ratio:.3f} | goal: at most 1.1 | |")


main(sys.argv[1])
