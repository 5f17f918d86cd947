"""What the reference makes of the traces of `bench-accuracy --dump FOLDER`: `accuracy.py PERIODIC_INFERENCE.py FOLDER [ROW…]`.

Prints a table like that of `make bench-accuracy`. Rows are numbers, from 0; all unless said.
"""

import csv
import importlib.util
import multiprocessing
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

program, folder = Path(sys.argv[1]), Path(sys.argv[2])
specification = importlib.util.spec_from_file_location("periodic_inference", program)
reference = importlib.util.module_from_spec(specification)
specification.loader.exec_module(reference)


def judge(truth):
    """Counts of one trace, and a line where something is wrong."""
    with open(folder / truth["file"], encoding="utf-8") as lines:
        releases = [tuple(map(int, line.split(","))) for line in lines]
    found = reference.infer(reference.Summary(releases))
    counts = Counter(traces=1)
    if found is None:
        return truth["row"], counts, f"{truth['file']}: no model"
    slips = found["skipped"], found["extra"]
    left_out = found["early"] + found["late"]
    if truth["numerator"] == "0":
        right, all_right = False, slips == (0, 0)
    else:
        right = found["period"] == Fraction(int(truth["numerator"]), int(truth["denominator"]))
        same = slips == (int(truth["skipped"]), int(truth["extra"])) and len(left_out) >= int(truth["early"])
        all_right = right and same
    counts["period"], counts["all"] = int(right), int(all_right)
    counts["left out"] = int(bool(left_out))
    counts["unsound"] = int(not reference.is_sound(releases, found["period"], *found["conservative"]))
    counts["fractions"] = int(truth["denominator"] == "1" and truth["numerator"] != "0" and found["period"].denominator > 1)
    counts["beaten"] = int(truth["jitter"] != "" and not right and int(truth["jitter"]) < found["conservative"][1])
    said = {key: str(value) for key, value in found.items()}
    return truth["row"], counts, None if all_right else f"{truth} {len(releases)} releases: {said}"


def main():
    with open(folder / "truth.csv", encoding="utf-8") as file:
        traces = list(csv.DictReader(file))
    wanted = {f"{int(row):02}" for row in sys.argv[3:]}
    traces = [trace for trace in traces if not wanted or trace["file"][:2] in wanted]
    rows = {trace["row"]: Counter() for trace in traces}
    with multiprocessing.Pool() as pool:
        for row, counts, wrong in pool.imap_unordered(judge, traces, chunksize=4):
            rows[row] += counts
            if wrong:
                print(wrong, file=sys.stderr)
    columns = ("traces", "period", "all", "left out", "unsound", "fractions", "beaten")
    print("| traces |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for row, counts in rows.items():
        print("|", row, "|", " | ".join(str(counts[column]) for column in columns), "|")


if __name__ == "__main__":
    main()
