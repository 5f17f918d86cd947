"""Periodic models of release times: exact, online, mergeable; with skipped and extra activations, windows and releases left out.

Model. Release j lies in [earliest_j, latest_j] (whole ns, equal where known exactly); its arrival may be known. A model (offset Phi, period T,
a fraction, jitter J) is sound if there are strictly increasing integers k_j, k_0 = 0, with Phi + k_j*T <= earliest_j and
latest_j <= Phi + k_j*T + J for all j. k_j - k_{j-1} > 1 is a slip: activations were skipped, which leaves eta+ as it is. Two models share T:
- conservative: sound for every release. An extra release (one activation released twice) makes all before it late;
- typical: extra releases are counted (k_j - k_{j-1} < 1 there), and a few releases far from all others are left out and listed.
Algorithm. Online, per release (`Summary.push`):
1. A gap is scored once REACH releases on both sides are known: by how much the lowest phases rise there. A late release scores nothing,
   a slip about a period. A gap that scores less than LOCAL of its neighbours' median is closed at once. The CUTS highest of the others stay
   open, first of all those whose 2*REACH releases agree on no shift; the rest are closed with theirs. Between open gaps lie segments.
2. A segment keeps its count, sums, and layers of hulls: LOWEST lower ones of the evidence (the known arrival, else the latest bound) and of
   the floor (the lesser of arrival and earliest bound), LATE + 1 upper ones of the latest bounds. The k extreme points for any T are in
   the first k layers, so a few releases can be left out later; joining with any shift moves points: exact.
   The ONE_BY_ONE releases that are later than their neighbours by most (`lateness`) are in no upper hull, but kept one by one, so that many
   of them can be left out. (Here the rest is given up at the query; that could be done at any time.)
At a query (`infer`):
3. Gaps that score less than SUSPICIOUS periods are closed. From a few starting periods, dynamic programming gives each segment its shift:
   being late by d costs n*ln(1 + d/mu), a slip SLIP digits (AGREED where the releases around agree on it), a low point LEFT_OUT digits.
   The joined hull gives a better period, until nothing changes. The shortest description wins, the one without slips included: n*ln(mean lateness) + digits for slips and low points.
   Then releases that look early where activations were skipped are distrusted, if that makes the description shorter: late by nearly a period
   they may belong to the activation before. The choice of the period does not look at them; models cover them. Slips need a mean lateness
   of at most MOST_LATE periods; before releases are distrusted it may be TENTATIVE, if it is FAR_LESS then.
   Known arrivals on a grid are no noisy evidence: there a digit costs ln 10, else KAPPA times as much.
4. The period printed minimises digits(T)*KAPPA*ln 10 + n*D(T)/mu (see `candidates`); one that is no whole number of nanoseconds gives way
   to a whole one with no more jitter. Offset and jitter for T follow from the hulls, exactly. Typical jitter leaves out the latest releases
   where that halves it.
Soundness. k_j is the index in the segment, plus its start, plus its shift. Conservative shifts never fall (each is lowered to the least
later one), so k_j increase strictly, and Phi and Phi + J are extremes over hulls, hence over all releases. Guesses (scores, mu, T)
decide how tight a model is, never whether it is sound.
Merging (`Summary.merge`) gives the same models as one go, whatever the pieces: which gaps are open is the top CUTS of a total order, and score
and shift of a gap depend on 2*REACH releases alone.
"""

import copy
import json
import math
import random
import sys
from fractions import Fraction
from itertools import accumulate, islice

EARLY, LATE, CUTS, REACH = 4, 4, 32, 8  # most releases left out low and high; most open gaps; releases on each side that score one
LOWEST, FEWEST_EARLY = EARLY + 2, 100  # lower hulls; fewest releases of which more early ones are distrusted than may be left out
CLEARLY, MOST_DROP = 8, 2.0  # a rounder period has less jitter by one part in so many; and is lower by so many times the mean lateness
ONE_BY_ONE = 512  # most releases that are kept for being later than their neighbours
KAPPA = 50  # so many releases say as much as one independent release
SLIP, AGREED, NEAR, LEFT_OUT, DISTRUSTED, NOT_WHOLE, FREQUENCY = 0.5, 0.1, 0.02, 3, 1, 4, 2  # in digits: a slip, one that the releases around it agree on, one just after another, a release left out, one distrusted; surcharges for fractions and frequencies
MOST_DISTRUSTED, MOST_OF_SEGMENT, NEXT = 16, 2, 2  # releases that look early where activations were skipped: late by nearly a period, they
# belong to the activation before; of each segment; and how many of the next lowest tell how far apart the lowest are
SUSPICIOUS, MOST_LATE = 0.4, 0.25  # in periods: a gap that scores less is no slip; with a greater mean lateness, slips mean nothing
TENTATIVE, FAR_LESS = 0.6, 0.5  # in periods: mean lateness that early releases may cause; without those it is at most so many times MOST_LATE
CLEAR, MOST_ROUND, MOST_ROUND_FREQUENCY = 10, 6, 4  # a release left out is lower than the next ones are apart, this many times; more digits nobody rounds
STEPS = 32  # most distances of arrivals
CERTAIN = 8  # neighbours of a gap that are spread less than a period over this, and shifted by as little from a whole number, agree
GRID = 10_000  # known arrivals whose mean lateness is less than a period over this are on a grid
FEWEST_KNOWN = 1_000  # one unknown arrival among so many does not take them from it
DENSE = 4  # lowest releases spaced so much closer than exponential ones: stalls make the mean lateness
SPARSE, HULL_ERROR = 4, 14  # lowest releases so much farther apart than exponential ones say less than all; how wrong they are then
EXACT, DRIFT = 2, 1e-6  # known arrivals that are later, in ns, are told by another clock, which may be so much faster or slower
MOST_SPARSE = 10  # by so many times is a line that is too low more likely then, at most
PARTS, UNEVEN, TILTS = 6, 2, 11  # of a run, in which the lowest releases are compared; so many may differ; powers of two of the slopes compared
SLACK, SLACK_OF_ALL, SLACK_OF_SPARSE = 1, 2, 3  # how much less likely than the best, as a logarithm, a period is that has to be reckoned with
SPARSE_FOR_LOWEST = 3  # spacing of the lowest for the last of these
EMPTY, FEWEST_PARTS = 8, 3  # parts with none of the lowest are so many times as high as the highest of others, of which there must be so many
RARE, COMMON, CLEARLY_MORE, LONGEST = 200, 32, 64, 3  # rarities of names: no coincidence, or maybe one; more jitter by one part in so many; digits
SO_UNEVEN, FOR_DIGIT = 16, 2  # a short period is refuted if its line drifts so many times as far; and is less likely by so many digits for each it saves
HUNDREDS = 2  # digits by which a multiple of 100 ns with less jitter may be less likely
RATES = 441, 2205  # odd parts of sampling rates with more than two digits: 22.05, 44.1, 88.2, 176.4 kHz
MOST_NAMED, ROUND_DROP, NAMED_DROP, NAMED_APART = 7, 0.25, 0.5, 1e-5  # most digits of a frequency preferred to nanoseconds that nobody would choose;
# how much lower a rounded period may be, and a frequency, in mean latenesses; how far off, in periods
MOST_ROUNDS, MOST_SHIFT = 8, 2**38  # how often a better period is looked for; greatest shift, so that indices stay in range
EACH, FEW = 0.25, 8  # each late release left out cuts the jitter by this factor of e, and all of them together halve it; if more than a few may be, it is less

def EVIDENCE(p): return p[2]
def FLOOR(p): return p[1]
def CEILING(p): return -p[3]

def lower_hull(points, y):
    """Lower convex hull of points (index, floor, evidence, latest) with increasing index, by a monotone stack."""
    hull = []
    for p in points:
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y(b) - y(a)) * (p[0] - b[0]) < (y(p) - y(b)) * (b[0] - a[0]):
                break
            hull.pop()
        hull.append(p)
    return hull

def layers(points, y, count):
    """The lower hull, the lower hull of what is left without it, and so on."""
    found = []
    while points and len(found) < count:
        found.append(lower_hull(points, y))
        gone = set(found[-1])
        points = [p for p in points if p not in gone]
    return found

def middle_edge(hull, mean):
    """The edge over the mean index."""
    return next(((a, b) for a, b in zip(hull, hull[1:]) if mean <= b[0] > a[0]), None)

def slope(edge):
    """The estimate of the period. None unless positive."""
    return max(Fraction(edge[1][2] - edge[0][2], edge[1][0] - edge[0][0]), 0) or None if edge else None

def lowered(points, sum_x, n):
    """The edge of the hull over the mean index, and its end without which the hull is higher there; then the same without that end; and so on."""
    mean, base = sum_x / n, points[0][2] if points else 0
    def edge_of(points):
        return middle_edge(lower_hull(points, EVIDENCE), Fraction(sum_x, n))
    def height(points):
        a, b = edge_of(points) or (None, None)
        return -math.inf if a is None else (a[2] - base) + (mean - a[0]) * ((b[2] - a[2]) / (b[0] - a[0]))
    while edge := edge_of(points):
        left, right = ([p for p in points if p[0] != end[0] or p[2] != end[2]] for end in edge)
        end, rest = (edge[0], left) if height(left) >= height(right) else (edge[1], right)
        yield edge, [p for p in points if p[0] == end[0] and p[2] == end[2]]
        points = rest

def estimates(points, sum_x, n, count):
    """The slope of the hull over the mean index; then that without the point whose absence raises the hull there most, and so on."""
    found = [slope(edge) for edge, _ in islice(lowered(points, sum_x, n), count)]
    return [period for period in dict.fromkeys(found) if period]

def phases(points, period, base, start=0):
    """(how far above the line of slope `period` from `base` at index 0, point), lowest first."""
    return sorted((p[2] - base - period * (p[0] + start), p) for p in points)

class Segment:
    """Consecutive releases as points (index, floor, evidence, latest), of which only those are kept that can matter."""
    def __init__(self, score, shift, closed, release):
        self.score, self.shift, self.closed = score, shift, closed  # of the gap before it
        self.n = self.span = 1  # releases, and indices that they take
        self.sum_y, self.sum_x, self.slips, self.skipped, self.inferred = release[1], 0, 0, 0, 0  # inside; of the slips, those only inferred
        self.squares = 0, 0, release[1] ** 2  # sums of x*x, x*y, y*y
        self.points, self.room, self.late = [(0, *release)], 128, {}  # points kept one by one, and how late they are

    def append(self, later, shift=0):
        by = self.span + shift
        xx, xy, yy = later.squares
        moved = xx + 2 * by * later.sum_x + later.n * by * by, xy + by * later.sum_y, yy
        self.squares = tuple(a + b for a, b in zip(self.squares, moved))
        self.n += later.n
        self.span = by + later.span
        self.sum_x += later.sum_x + later.n * by
        self.sum_y += later.sum_y
        self.slips += later.slips + (shift > 0)
        self.inferred += later.inferred + (shift > 0 and not later.closed)
        self.skipped += later.skipped + max(shift, 0)
        self.points.extend([(x + by, *rest) for x, *rest in later.points])
        self.late.update({(p[0] + by, *p[1:]): late for p, late in later.late.items()})
        if len(self.points) > self.room:
            self.compress()

    def append_unshifted(self, later):
        """Without the shift before it, unless that is known, and with no points kept one by one."""
        self.append(later, later.known_shift())
        self.late = {}

    def known_shift(self):
        return self.shift if self.closed else 0

    def compress(self):
        hulls = layers(self.points, EVIDENCE, LOWEST) + layers([p for p in self.points if p not in self.late], CEILING, LATE + 1)
        hulls += layers(self.points, FLOOR, LOWEST) if any(f != e for _, f, e, _ in self.points) else []
        self.points = sorted({p for hull in hulls for p in hull} | set(self.late))
        self.room = max(128, 2 * len(self.points))

    def estimates(self, count):
        return estimates(sorted(self.points, key=lambda p: (p[0], p[2])), self.sum_x, self.n, count)

    def lowering(self, others):
        """The releases that lower the hull most, in groups of equal ones, without the others; as long as each segment knows its lowest."""
        points, count = sorted((p for p in self.points if p not in others), key=lambda p: (p[0], p[2])), {}
        for _, gone in islice(lowered(points, self.sum_x, self.n), MOST_DISTRUSTED):
            for p in gone:
                count[self.of_segment[p]] = count.get(self.of_segment[p], 0) + 1
            if max(count.values()) > MOST_OF_SEGMENT:
                return
            yield gone

    def lateness(self, line, period, base, start):
        return (self.sum_y - self.n * base - period * (self.sum_x + self.n * start)) / self.n - line

def score(releases, middle):
    """Of the gap before releases[middle], each (evidence, how many activations after the one before): by how much the lowest phase rises, or
    falls, there for good as far as one sees; the shift that all agree on; the median distance of neighbours. The second lowest of one side is
    compared with the lowest of the other, so that one bad point is no rise and no fall."""
    index = list(accumulate((advance for _, advance in releases[1:]), initial=0))
    distances = [(b - a) // (j - i) for (a, _), (b, _), i, j in zip(releases, releases[1:], index, index[1:])]
    gap = sorted(distances[: middle - 1] + distances[middle:])[len(releases) // 2 - 1]
    phase = [y - (i - index[middle - 1]) * gap for (y, _), i in zip(releases, index)]
    low, high = sorted(phase[:middle]), sorted(phase[middle:])
    excess = phase[middle] - phase[middle - 1]  # puts the cut at the very gap
    if excess > 0:
        found = max(0, min(high[0] - low[1], 3 * excess))
    else:  # who comes down a staircase was late before, and releases nothing extra
        found = 0 if low[1] - low[0] >= gap / 2 else max(0, min(low[0] - high[1], -3 * excess))
    rise, spread = high[0] - low[0], max(low[-2] - low[0], high[-2] - high[0])  # but for one that is late on either side
    shift = (2 * rise + gap) // (2 * gap) if gap > 0 and rise > 0 and CERTAIN * spread < gap else 0
    agreed = CERTAIN * abs(rise - shift * gap) < gap and 4 * shift * spread < 7 * gap
    return found, shift if agreed else 0, gap

def lateness(releases):
    """How much later than its neighbours on both sides releases[REACH] is, in fifths of a nanosecond; or after its known arrival. The slope is the
    median of three, so that one late release does not tilt it. Cut to 18 binary digits, so that a late release takes few bytes."""
    late = max(0, whole_lateness(releases))
    digits = max(0, late.bit_length() - 18)
    return late >> digits << digits

def whole_lateness(releases):
    latest = [r[2] for r in releases]
    middle = latest[REACH]
    if releases[REACH][1] != middle:
        return 5 * (middle - releases[REACH][1])
    slope = sorted(b - a for a, b in zip(latest[::5], latest[5::5]))[1]
    return -max(min(5 * (latest[REACH + i] - middle) - i * slope for i in side) for side in ((-1, -3, -5, -8), (1, 3, 5, 7)))

class Summary:
    """Everything that models depend on, in bounded memory."""
    def __init__(self, releases=()):
        self.n, self.known, self.head, self.tail, self.segments, self.forced, self.signalled = 0, 0, [], [], [], [], []
        self.unshifted = None  # all segments joined without the shifts that are only inferred
        self.ends, self.steps = None, {}  # arrivals, and how often each distance; None: not all are known, or too many distances
        for release in releases:  # the head's first REACH releases are in no segment, and not yet the tail's from REACH on
            self.push(*release)

    def push(self, earliest, latest, arrival=None, advance=1, disturbed=0):
        arrival = arrival if arrival is not None and arrival <= latest else None
        self.known += arrival is not None
        if disturbed:
            (self.forced if disturbed == 1 else self.signalled).append(latest)
        if arrival is None:
            self.steps = None
        else:
            self.step(arrival, arrival, {}, min(earliest, arrival) - arrival, latest - arrival)
        evidence = latest if arrival is None else arrival
        self.take((min(earliest, evidence), evidence, latest, max(1, advance)))

    def step(self, first, last, steps, least, greatest):
        """Known arrivals that follow, with their distances; how far releases are from them."""
        if self.steps is None:
            return
        if self.ends:
            self.steps[first - self.ends[1]] = self.steps.get(first - self.ends[1], 0) + 1
        for step, count in steps.items():
            self.steps[step] = self.steps.get(step, 0) + count
        before = self.ends or (first, last, least, greatest)
        self.ends = before[0], last, min(before[2], least), max(before[3], greatest)
        if len(self.steps) > STEPS:
            self.steps = None

    def regular(self):
        """Period, offset, jitter, slips, skipped, where every distance of arrivals is a multiple of the usual one."""
        if not self.steps:
            return None
        period = max(self.steps, key=lambda step: (self.steps[step], -step))
        if period <= 0 or 2 * self.steps[period] < sum(self.steps.values()) or any(step <= 0 or step % period for step in self.steps):
            return None
        first, _, least, greatest = self.ends
        slips = [(step // period - 1, count) for step, count in self.steps.items() if step > period]
        return period, first + least, greatest - least, sum(count for _, count in slips), sum(skipped * count for skipped, count in slips)

    def take(self, release):
        self.n += 1
        self.tail.append(release)
        if len(self.head) < 2 * REACH - 1:
            self.head.append(release)
        if len(self.tail) == 2 * REACH:
            segment, late = self.gap_before(self.tail[REACH]), lateness(self.tail)
            if self.unshifted:
                self.unshifted.append_unshifted(segment)
            else:
                self.unshifted = copy.deepcopy(segment)
            segment.late = {p: late for p in segment.points if late > 0}
            self.join(segment)
            del self.tail[0]

    def gap_before(self, release):
        """The segment of one release."""
        floor, evidence, latest, advance = release
        if advance > 1:
            return Segment(0, advance - 1, True, (floor, evidence, latest))
        found, shift, gap = score([(r[1], r[3]) for r in self.tail], REACH)
        closed = 10 * found < 3 * gap
        return Segment(found, 0 if closed else shift, closed, (floor, evidence, latest))

    def join(self, segment):
        opened = self.segments
        if segment.closed and opened:
            return opened[-1].append(segment, segment.shift)
        opened.append(segment)
        if len(opened) > CUTS + 1:
            i = min(range(1, len(opened)), key=lambda i: (opened[i].shift == 0, opened[i].score, -i))
            later = opened.pop(i)
            opened[i - 1].append(later, later.shift)

    def merge(self, later):
        if later.ends and later.steps is not None:
            self.step(*later.ends[:2], later.steps, *later.ends[2:])
        elif later.n > 0:
            self.steps = None
        known, forced, signalled = self.known + later.known, self.forced + later.forced, self.signalled + later.signalled
        for release in later.head:
            self.take(release)
        if later.segments:
            self.n, self.tail = self.n + later.n - len(later.head), list(later.tail)
            if self.unshifted:
                self.unshifted.append_unshifted(later.unshifted)
            else:
                self.unshifted = copy.deepcopy(later.unshifted)
            for segment in copy.deepcopy(later.segments):
                self.join(segment)
        self.known, self.forced, self.signalled = known, forced, signalled

    def all_segments(self, inside):
        """Segments with the head and the tail, whose gaps are scored by as many releases as there are."""
        def scored(releases, start, end):
            for i in range(start, end):
                floor, evidence, latest, advance = releases[i]
                near = [(r[1], r[3]) for r in releases[max(0, i - REACH) : i + REACH]]
                enough = min(i, len(releases) - i) >= 3 and advance == 1
                yield Segment(score(near, min(i, REACH))[0] if enough else 0, advance - 1, advance > 1, (floor, evidence, latest))
        if not inside:
            return list(scored(self.tail, 0, len(self.tail)))
        return [*scored(self.head, 0, REACH), *given_up(copy.deepcopy(inside)), *scored(self.tail, REACH, len(self.tail))]

def given_up(segments):
    """The segments with only the latest releases kept one by one, of equals the first."""
    ranked = sorted((-late, i, p) for i, s in enumerate(segments) for p, late in s.late.items())
    for _, i, p in ranked[ONE_BY_ONE:]:
        del segments[i].late[p]
    return segments

def spare(n):
    return min(EARLY, max(1, n // 1000)) if n >= 20 else 0

def mean_gap(segments):
    points = max(segments, key=lambda s: s.n).points  # long silences and slips lie between segments
    return (points[-1][2] - points[0][2]) / max(1, points[-1][0])

def joined(segments, shifts):
    whole = copy.deepcopy(segments[0])
    whole.room, whole.of_segment = math.inf, {p: 0 for p in whole.points}
    for number, (segment, before, after) in enumerate(zip(segments[1:], shifts, shifts[1:]), 1):
        whole.of_segment.update({(p[0] + whole.span + after - before, *p[1:]): number for p in segment.points})
        whole.append(segment, after - before)
    whole.inferred = sum(s.inferred for s in segments)
    whole.prices = AGREED * whole.inferred + price(segments, shifts)
    whole.points.sort()  # after an extra release, indices are taken twice
    whole.has_slips = whole.skipped > 0 or any(shift != shifts[0] for shift in shifts)
    return whole

def cost_of_digit(lateness, period, n, unknown):
    """Of a decimal digit, where so many of n arrivals are unknown."""
    on_grid = unknown * FEWEST_KNOWN <= n and lateness <= period / GRID + period * unknown / n
    return math.log(10) * (1 if on_grid else KAPPA)

def is_near(segments, i):
    """Whether a slip before a segment costs less, if there was one before the segment before."""
    return segments[i - 1].n < 2 * REACH

def agreed_soon(segments, i):
    """The shift that the releases around the next gap agree on, if that is near: a part of it may be before this segment."""
    return segments[i + 1].shift if i + 1 < len(segments) and segments[i].n < 2 * REACH else 0

def price(segments, shifts):
    """Digits that the slips of these shifts cost."""
    rises, total = [b - a for a, b in zip(shifts, shifts[1:])], 0.0
    for i, (before, rise) in enumerate(zip([0, *rises], rises), 1):
        if rise > 0 and before > 0 and is_near(segments, i):
            total += NEAR
        elif rise:
            total += AGREED if rise > 0 and (rise == segments[i].shift or rise < agreed_soon(segments, i)) else SLIP
    return total

def assign(segments, period, n, unknown):
    """The cheapest shift of each segment at this period, by dynamic programming."""
    base, starts = segments[0].points[0][2], accumulate((s.span for s in segments[:-1]), initial=0)
    located = [(s, start, [p for p, _ in phases(s.points, period, base, start)[: EARLY + 1]]) for s, start in zip(segments, starts)]
    segment, start, low = max(located, key=lambda entry: entry[0].n)
    best, path = math.inf, [0] * len(segments)
    for line in low[:1] + [b for a, b in zip(low, low[1 : spare(n) + 1]) if b - a > period / 8]:
        lateness = segment.lateness(line, period, base, start)
        mu = max(lateness, period / 1000)
        digit = cost_of_digit(lateness, period, n, unknown)
        shifts = sorted({0} | {round((p - line) / period) for *_, points in located for p in points[:2] if abs(p - line) / period <= MOST_SHIFT})
        # Ends are shifts, and whether it rose before the last segment.
        cost, back = {**{(k, 0): 0.0 for k in shifts}, **{(k, 1): math.inf for k in shifts}}, []
        cheaper = lambda k: min(((k, 0), (k, 1)), key=cost.get)
        way = lambda ends, digits: [(cost[end] + digits * digit, end) for end in [min(ends, key=cost.get)]] if ends else []
        for i, (s, _, points) in enumerate(located):
            steps = {}
            for k in shifts:
                if i == 0:
                    steps[k, 0], steps[k, 1] = (cost[k, 0], (k, 0)), (cost[k, 1], (k, 1))
                    continue
                lower, higher = [cheaper(j) for j in shifts if j < k], [cheaper(j) for j in shifts if j > k]
                agreed = [cheaper(j) for j in shifts if j < k and (k - j == s.shift or k - j < agreed_soon(segments, i))]
                near = [(j, 1) for j in shifts if j < k] if is_near(segments, i) else []
                steps[k, 0] = min(way([cheaper(k)], 0) + way(higher, SLIP), key=lambda one: one[0])
                steps[k, 1] = min(way(lower, SLIP) + way(agreed, AGREED) + way(near, NEAR) + [(math.inf, (k, 0))], key=lambda one: one[0])
            back.append({end: before for end, (_, before) in steps.items()})
            for k in shifts:
                out = sum(p - line - k * period < -period / 4 for p in points)
                late = math.log1p(abs(points[out] - line - k * period) / mu) if out < len(points) else 0
                all_late = s.n * late + out * LEFT_OUT * digit if out <= spare(n) else math.inf
                cost[k, 0], cost[k, 1] = steps[k, 0][0] + all_late, steps[k, 1][0] + all_late
        total = min(cost.values()) + n * math.log(mu)
        if total < best:
            best, path = total, [min(cost, key=cost.get)]
            for before in reversed(back[1:]):
                path.append(before[path[-1]])
            path = [k for k, _ in reversed(path)]
    return [k - path[0] for k in path]

class Evidence:
    """The releases joined by some shifts, without those set aside: what the choice of a period rests on."""
    def __init__(self, whole, shifts, estimate, lowest, distrusting, unknown, forced, signalled, most_early=None, most_late=TENTATIVE):
        out, most_clear = lowest | forced, spare(whole.n) if most_early is None else most_early
        self.shifts, self.set_aside, self.n, self.whole = shifts, out, whole.n - len(out), whole
        self.points, base = [p for p in whole.points if p not in out], whole.points[0][2]
        self.credible = self.n >= 3
        if not self.credible:
            return
        mean_x = Fraction(whole.sum_x - sum(p[0] for p in out), self.n)
        mean_y = Fraction(whole.sum_y - sum(p[2] for p in out), self.n) - base
        self.estimate = t = slope(middle_edge(lower_hull(self.points, EVIDENCE), mean_x)) if out else estimate
        self.credible = bool(t)
        if not t:
            return
        self.from_middle = [float(p[0] - mean_x) for p in self.points]
        self.above = [float(p[2] - base - t * p[0]) for p in self.points]
        self.low = min(self.above)
        self.lateness = max(0.0, float(mean_y - t * mean_x) - self.low)
        slips = sum(a != b for a, b in zip(shifts, shifts[1:])) + whole.inferred
        others = NEXT if distrusting else max(0, EARLY - len(lowest))
        apart = sorted(self.above)[: others + 1][-1] - self.low
        clear = max(CLEAR * apart, min(self.lateness, t / 20), 1)
        early = {p for p in lowest if self.low - float(p[2] - base - t * p[0]) >= clear}
        self.left_out, distrusted = early | forced if len(early) <= spare(whole.n) else forced, len(lowest) - len(early)
        is_late = slips and self.lateness > most_late * t or len(early) > spare(whole.n) and self.lateness > MOST_LATE * t
        self.credible = not is_late and len(early) <= most_clear and (not distrusted or distrusting)
        self.tentative = slips and self.lateness > MOST_LATE * t
        spacing, self.expected, self.all = apart / max(1, others), None, None
        if others > 0 and spacing * self.n > SPARSE * self.lateness and (found := self.rise_of_all(base)):
            of_lowest, (rise, variance) = HULL_ERROR * spacing / self.n, found
            self.expected, self.all = rise * of_lowest * of_lowest / (of_lowest * of_lowest + variance), found
        self.usual = min(self.lateness, DENSE * spacing * self.n) if others > 0 and spacing > 0 else self.lateness  # without what stalls add
        least_grain = self.usual / self.n
        self.grain = max(least_grain, min(MOST_SPARSE * least_grain, spacing if others > 0 else 0.0))  # too low by this: less likely by a factor of e
        self.known = 0 if distrusting else max(0, LOWEST - len(out))  # so many of the lowest, for any slope
        self.drift = float(t) * DRIFT if unknown == 0 and self.lateness > EXACT else 0.0
        digit = cost_of_digit(self.lateness, float(t), whole.n, unknown)
        self.length = self.n * math.log(max(self.lateness, float(t) / GRID)) + digit * (self.whole.prices + LEFT_OUT * sum(p[2] not in signalled for p in early) + DISTRUSTED * distrusted)

    def rise_of_all(self, base):
        """How much more than the estimate, by the line of least squares through all releases, the period is, and the variance of that. None where
        releases are farther from the line than they are late on average: stalls then decide where it lies."""
        n, xs, ys = self.n, [p[0] for p in self.set_aside], [p[2] for p in self.set_aside]
        xx, xy, yy = (a - sum(b) for a, b in zip(self.whole.squares, zip(*[(x * x, x * y, y * y) for x, y in zip(xs, ys)] or [(0,) * 3])))
        x, y, whole = self.whole.sum_x - sum(xs), self.whole.sum_y - sum(ys) - n * base, round(self.estimate)
        if n >= 2**20:
            return None
        yy, xy = yy - 2 * base * (y + n * base) + base * base * n, xy - base * x
        z, xz, zz = y - whole * x, xy - whole * xx, yy - 2 * whole * xy + whole * whole * xx
        xx, xz, zz = (float(n * total - a * b) / n for total, a, b in ((xx, x, x), (xz, x, z), (zz, z, z)))
        slope = xz / xx
        squared = (zz - xz * slope) / n
        return (float(whole - self.estimate) + slope, squared / xx) if 0 < squared <= self.lateness * self.lateness else None

    def tilt(self, period):
        """How much steeper than the estimate a period is, beyond what clocks may differ."""
        tilt = float(period - self.estimate)
        return tilt - min(max(tilt, -self.drift), self.drift)

    def drop(self, period):
        """D(T): how much lower a line of this slope has to lie in the middle to stay below all releases."""
        tilt = self.tilt(period)
        return self.low - min(a - tilt * x for a, x in zip(self.above, self.from_middle))

    def cost(self, period):
        """n*D(T)/mu: how much less likely the latenesses become under this period, were they exponential."""
        if self.expected is not None:  # as much as if the lowest releases had that period
            return self.n * abs(self.tilt(period) - self.expected) * self.n / (2.0 * self.lateness)
        drop = self.drop(period)
        return self.n * drop / self.usual if self.usual else 0 if drop <= 0 else math.inf

    def mismatch(self, period):
        """By how much this period makes the releases less likely, as a logarithm: how it fits the lowest ones, and all of them."""
        drop = self.drop(period)
        low = drop / self.grain if self.grain else 0 if drop <= 0 else math.inf
        off = self.tilt(period) - self.all[0] if self.all else 0
        return low + (off * off / (2.0 * self.all[1]) if self.all else 0)

    def unevenness(self, period):
        """By how much the least lateness differs between parts of the run with this period, for all we know: in UNEVEN parts it may be greater."""
        if not self.known:
            return math.inf
        tilt, step, low = self.tilt(period), max(1.0, self.grain) / self.n, set()
        heights = [a - tilt * x for a, x in zip(self.above, self.from_middle)]
        for tilt in [0.0, *(sign * step * 2**power for power in range(TILTS) for sign in (1, -1))]:
            tilted = [h - tilt * x for h, x in zip(heights, self.from_middle)]
            below = sorted(tilted)[min(self.known, len(tilted)) - 1]
            low.update(i for i, h in enumerate(tilted) if h < below)
        if len(low) < 2:
            return math.inf
        first, last, least = self.from_middle[min(low)], self.from_middle[max(low)], [math.inf] * PARTS
        for i in low:
            part = min(PARTS - 1, int((self.from_middle[i] - first) / (last - first) * PARTS))
            least[part] = min(least[part], heights[i])
        if sum(h < math.inf for h in least) < FEWEST_PARTS:
            return math.inf
        highest = max(h for h in least if h < math.inf)
        return min(sorted(least)[PARTS - 1 - UNEVEN] - min(least), EMPTY * (highest - min(least)))

    def slack(self):
        """How much less likely than the best, as a logarithm, a period is that has to be reckoned with."""
        is_sparse = self.grain * self.n > SPARSE_FOR_LOWEST * self.usual
        return SLACK_OF_ALL if self.all else SLACK_OF_SPARSE if is_sparse else SLACK

def resolve(segments, unknown, forced_at, signalled):
    """The evidence with the shortest description. None where nothing rises."""
    n, found, seen = sum(s.n for s in segments), [], set()
    def consider(shifts):
        seen.add(tuple(shifts))
        whole = joined(segments, shifts)
        forced = {p for p in whole.points if p[2] in forced_at}
        periods = whole.estimates(spare(n) + 1)
        for period in periods:
            order = [p for _, p in phases(whole.points, float(period), whole.points[0][2]) if p not in forced]
            found.extend(Evidence(whole, shifts, period, set(order[:out]), False, unknown, forced, signalled) for out in range(spare(n) + 1))
        return next(iter(periods), 0)
    consider([0] * len(segments))
    if len(segments) > 1:
        for period in max(segments, key=lambda s: s.n).estimates(spare(n) + 1) + [mean_gap(segments)]:
            for _ in range(MOST_ROUNDS):
                if period <= 0 or tuple(shifts := assign(segments, float(period), n, unknown)) in seen:
                    break
                period = consider(shifts)
    best = min((e for e in found if e.credible and not e.tentative), key=lambda e: e.length, default=None)
    tentative = min((e for e in found if e.credible and e.tentative), key=lambda e: e.length, default=None)
    if best and best.whole.has_slips:
        best = without_distrusted(best, best, MOST_LATE, unknown, forced_at, signalled)
    if tentative and (not best or tentative.length < best.length):
        best = without_distrusted(tentative, best, MOST_LATE * FAR_LESS, unknown, forced_at, signalled)
    if not best or best.whole.has_slips:
        return best
    found = [best, *with_more_early(best, unknown, forced_at, signalled)]
    return min((e for e in found if e.credible), key=lambda e: e.length)

def without_distrusted(evidence, best, most_late, unknown, forced_at, signalled):
    """The shortest description: the best so far, or that without the lowest releases. Only after the shifts are known, or any sporadic stream would
    have slips."""
    whole, lowest, found = evidence.whole, set(), [best] if best else []
    forced = {p for p in whole.points if p[2] in forced_at}
    for gone in whole.lowering(forced):
        lowest.update(gone)
        found.append(Evidence(whole, evidence.shifts, evidence.estimate, set(lowest), True, unknown, forced, signalled, MOST_DISTRUSTED, most_late))
    return min((e for e in found if e.credible), key=lambda e: e.length, default=None)

def with_more_early(best, unknown, forced_at, signalled):
    """The evidence without more early releases than may be left out: they would tilt the hull."""
    whole, forced = best.whole, {p for p in best.whole.points if p[2] in forced_at}
    for period in whole.estimates(LOWEST) if whole.n >= FEWEST_EARLY else ():
        order = [p for _, p in phases(whole.points, float(period), whole.points[0][2]) if p not in forced]
        for out in range(spare(whole.n) + 1, LOWEST - len(forced_at)):
            yield Evidence(whole, best.shifts, period, set(order[:out]), False, unknown, forced, signalled, LOWEST - 1)

def digits(number):
    return len(str(number).rstrip("0"))

def candidates(evidence):
    """(period, digits that it takes to write it down, whether it is neither whole nanoseconds nor a frequency)."""
    yield (t := evidence.estimate), digits(t.numerator) + digits(t.denominator) + NOT_WHOLE * (t.denominator > 1), t.denominator > 1
    near = round(t) + round(evidence.expected or 0)
    grains = [10**i for i in range(len(str(round(t))) + 1)]  # whole nanoseconds; what nobody rounds counts its trailing zeros
    for w in {t // grain * grain + up for grain in grains for up in (0, grain)} | {round(t) + d for d in (-2, -1, 0, 1, 2)} | {near + d for d in (-2, -1, 0, 1, 2)}:
        yield Fraction(w), digits(w) if digits(w) <= MOST_ROUND else len(str(w)), False
    for parts in (10**i for i in range(1, 13)):  # nanoseconds with decimals, while one more makes a difference: another machine's clock
        for m in (math.floor(t * parts), math.floor(t * parts) + 1) if evidence.n**2 * 100 > evidence.usual * parts else ():
            yield Fraction(m, parts), len(str(m)) + NOT_WHOLE, m % parts > 0
    for grain in (10**i for i in range(22)):  # hertz: 60 Hz; a long one is no better than decimals
        for m in (math.floor(grain / t), math.floor(grain / t) + 1):
            if 0 < m <= 10**12:
                yield Fraction(grain, m), digits(m) + FREQUENCY + (2 if 10**9 * m % grain or digits(m) > MOST_ROUND_FREQUENCY else 0), False
    for grain in (2**power * 10**i for power in range(4, 14) for i in range(5, 9)):  # a sampling rate over 2^i: 44.1 kHz / 128
        if 0 < (m := round(grain / t)) < 10_000 and (digits(m) <= 2 or m // (m & -m) in RATES):
            yield Fraction(grain, m), digits(m) + FREQUENCY + 2, False

def strip(points, period):
    """Offset and jitter of the lowest strip of this slope that holds all points, in whole nanoseconds."""
    rise, scale = period.numerator, period.denominator
    offset = min(f * scale - rise * x for x, f, _, _ in points) // scale
    return offset, max(-((rise * x - l * scale) // scale) for x, _, _, l in points) - offset

def height(points, period):
    """The least jitter for this period."""
    rise, scale = period.numerator, period.denominator
    return -((min(f * scale - rise * x for x, f, _, _ in points) - max(l * scale - rise * x for x, _, _, l in points)) // scale)

def rounder(evidence, ranked, points, typical_jitter):
    """The first of the candidates, or one that takes fewer digits and has clearly less jitter: early releases that may not be left out tilt the hull."""
    first, most = ranked[0], height(points, ranked[0][2])
    fewer = [r for r in ranked if r[4] < first[4] and evidence.drop(r[2]) <= MOST_DROP * evidence.lateness]
    less = [(height(points, r[2]), r) for r in fewer]
    less = [(jitter, r) for jitter, r in less if jitter * CLEARLY <= most * (CLEARLY - 1)]
    least = min((jitter for jitter, _ in less), default=None)
    less = [(jitter, r) for jitter, r in less if jitter * (CLEARLY - 1) <= least * CLEARLY]
    found = min(less, key=lambda entry: (entry[1][4], entry[0]), default=(0, first))[1]
    return found if found == first or typical_jitter(found[2]) <= typical_jitter(first[2]) else first

def whole_instead(evidence, ranked, best, typical_jitter):
    """Whole nanoseconds in place of a fraction, if they hardly have more jitter: by less than releases are late on average, no clock can be told
    from another."""
    slack = max(evidence.lateness, 1.0)
    most = typical_jitter(best[2]) + int(slack)
    fits = lambda t: t.denominator == 1 and evidence.drop(t) <= slack and typical_jitter(t) <= most
    return next((r for r in ranked if fits(r[2])), best)

def is_long(period):
    """Whether it is whole nanoseconds that nobody rounded."""
    return period.denominator == 1 and (period.numerator % 10 > 0 or digits(period.numerator) > MOST_ROUND)

def names_apart(candidate):
    """How far apart periods with names as short as this one are."""
    period, length = candidate[2], candidate[4]
    if period.denominator == 1:
        return float(10 ** (len(str(period.numerator)) - digits(period.numerator)))
    return float(period) / 10 ** (length - FREQUENCY if length < MOST_NAMED else LONGEST)

def likeliest(evidence, ranked, points, typical_jitter):
    """Of whole nanoseconds that nobody rounded, those that the releases make likeliest, or others hardly less likely that have less jitter."""
    long = [(evidence.mismatch(r[2]), r) for r in ranked if is_long(r[2])]
    if not long:
        return None
    least, best = min(long, key=lambda entry: entry[0])
    jitter = typical_jitter(best[2])
    most = lambda r: least + evidence.slack() + (0 if r[2] % 100 else HUNDREDS) * math.log(10)
    return min((r for m, r in long if m <= most(r) and typical_jitter(r[2]) <= jitter), key=lambda r: height(points, r[2]))

def preferred(evidence, ranked, best, points, typical_jitter):
    """The best candidate, or one so close that lateness can hardly tell them apart, but rather meant."""
    likely = likeliest(evidence, ranked, points, typical_jitter)
    if not likely:
        return best
    def by_jitter(short):
        """Whether jitter speaks against a shorter period, or for it. None if it says nothing."""
        rarity, is_whole = names_apart(short) / (2.0 * abs(float(short[2] - likely[2]))), short[2].denominator == 1
        jitter, of_likely = height(points, short[2]), height(points, likely[2])
        if rarity >= RARE and jitter < of_likely and (is_whole or typical_jitter(short[2]) <= typical_jitter(likely[2])):
            return False
        return True if is_whole and rarity < COMMON and (jitter - of_likely) * CLEARLY_MORE > of_likely else None
    def is_refuted(short):
        lower, saved = evidence.drop(short[2]) - evidence.drop(likely[2]), max(0, likely[4] - short[4])
        if not evidence.n * lower > FOR_DIGIT * math.log(10) * saved * evidence.usual:
            return False
        refuted = by_jitter(short)
        return refuted if refuted is not None else (
            evidence.n * abs(evidence.tilt(short[2]) - evidence.tilt(likely[2])) > SO_UNEVEN * max(1.0, evidence.unevenness(likely[2]))
        )
    def is_rounded(r):
        is_short = r[2].denominator == 1 and not is_long(r[2]) and r[4] <= MOST_ROUND
        if not is_short:
            return False
        most = NAMED_DROP if by_jitter(r) is False else ROUND_DROP
        return evidence.drop(r[2]) <= most * evidence.usual and not is_refuted(r)
    if best[3] or best[2].denominator > 1 and best[4] > MOST_NAMED:
        pass  # another machine's clock
    elif best[4] > MOST_NAMED or is_long(best[2]) or is_refuted(best):
        best = next((r for r in ranked if is_rounded(r)), likely)
    if best[4] < MOST_ROUND:
        return best
    apart = NAMED_APART * float(best[2])
    named = (r for r in ranked if r[2].denominator > 1 and not r[3] and r[4] <= MOST_NAMED and abs(float(r[2] - best[2])) <= apart)
    may_be_rounded = lambda t: best[2] in (math.floor(t), math.floor(t + Fraction(1, 2)))  # by a program
    is_tight = lambda t: is_long(best[2]) and not may_be_rounded(t) or height(points, t) < height(points, best[2])
    named = (r for r in named if evidence.drop(r[2]) <= NAMED_DROP * evidence.usual and not is_refuted(r) and is_tight(r[2]))
    return min(named, key=lambda r: r[4], default=best)

def typical(evidence, period, n):
    """Offset and jitter without the early releases left out, nor the late ones that are worth it; and the latest bounds of early and late ones. A
    release counts at its latest bound, and from its known arrival on: a window that opens early would make all others late."""
    inside = [p for p in evidence.whole.points if p not in evidence.left_out]
    rise, scale = period.numerator, period.denominator
    offset = min(e * scale - rise * x for x, _, e, _ in inside) // scale
    latest = sorted(((-((rise * x - l * scale) // scale), x, f, e, l) for x, f, e, l in inside), reverse=True)
    most = max(0, max(1, n // 1000) - len(evidence.left_out)) if n >= 20 else 0
    allowed, rest = max(1, n // 1000), list(accumulate(p not in evidence.whole.late for p in ((x, f, e, l) for _, x, f, e, l in latest)))
    most_late, each = sum(others <= LATE + 1 for others in rest) - 1, EACH * min(1, FEW / allowed)
    def height(late):
        return latest[late][0] - offset
    def cost(late):
        return math.log(max(1, height(late))) + each * late
    best = 0
    for late in range(min(most, most_late) + 1):
        best = late if cost(late) < cost(best) else best
    best = best if 2 * height(best) <= height(0) else 0
    jitter = height(best)
    def is_outside(p):
        return p[2] * scale - rise * p[0] < offset * scale or -((rise * p[0] - p[3] * scale) // scale) - offset > jitter
    early = sorted(p[3] for p in evidence.left_out if is_outside(p))
    return offset, jitter, early, sorted(l for *_, l in latest[:best])

def infer(summary):
    """The models. None for fewer than three releases, and where they do not rise. Where all arrivals are known and on a grid, it has the last word."""
    found, regular = inferred(summary), summary.regular() if summary.n >= 3 else None
    if not regular or found and found["conservative"][1] <= regular[2] + regular[0] // 2:
        return found
    period, offset, jitter, slips, skipped = regular
    models = {"period": Fraction(period), "conservative": (offset, jitter), "typical": None}
    return {**models, "slips": slips, "skipped": skipped, "extra": 0, "early": [], "late": []}

def inferred(summary):
    """The models by the shortest description."""
    if summary.n < 3:
        return None
    def joined_below(suspicious, scored):
        segments = []
        for s in scored:
            closed = s.closed or s.score < suspicious
            segments[-1].append(s, s.known_shift()) if segments and closed else segments.append(s)
        return segments
    scored = summary.all_segments(summary.segments)
    segments = joined_below(SUSPICIOUS * mean_gap(scored), scored)
    best = resolve(segments, summary.n - summary.known, set(summary.forced), set(summary.signalled))
    if any(s.inferred for s in summary.segments):  # slips are inferred only if that gives the shorter description
        unshifted = joined_below(math.inf, summary.all_segments([summary.unshifted]))
        other = resolve(unshifted, summary.n - summary.known, set(summary.forced), set(summary.signalled))
        if not best or other and other.length < best.length:
            best, segments = other, unshifted
    if not best:
        return None
    cost = lambda t, length: (length * math.log(10) * KAPPA + best.cost(t), abs(t - best.estimate), t)
    ranked = sorted((*cost(t, length), is_decimal, length) for t, length, is_decimal in candidates(best) if 0 < t.numerator < 2**63)
    never_falling = [min(best.shifts[i:]) for i in range(len(segments))]
    all_points = joined(segments, never_falling).points
    typical_jitter = lambda t: typical(best, t, summary.n)[1]
    chosen = rounder(best, ranked, all_points, typical_jitter)
    if chosen[3]:
        chosen = whole_instead(best, ranked, chosen, typical_jitter)
    chosen = preferred(best, ranked, chosen, all_points, typical_jitter)
    if chosen[2].denominator > 1 and not chosen[3] and chosen[4] > MOST_NAMED:  # a frequency that nobody chose
        chosen = whole_instead(best, ranked, chosen, typical_jitter)
        chosen = preferred(best, ranked, chosen, all_points, typical_jitter)
    period = chosen[2]
    rises = [b - a for a, b in zip(best.shifts, best.shifts[1:])]
    offset, jitter, early, late = typical(best, period, summary.n)
    conservative = strip(all_points, period)
    # Extra releases count differently in the two models. A typical jitter above the greatest one would say nothing.
    is_useful = jitter <= conservative[1]
    return {
        "period": period,
        "conservative": conservative,
        "typical": (offset, jitter) if is_useful else None,
        "slips": sum(j > 0 for j in rises) + sum(s.slips for s in segments),
        "skipped": sum(j for j in rises if j > 0) + sum(s.skipped for s in segments),
        "extra": -sum(j for j in rises if j < 0),
        "early": early if is_useful else [],
        "late": late if is_useful else [],
    }

def is_sound(releases, period, offset, jitter):
    """An independent check: gives each release the least k_j that is left for it."""
    least = (-((offset + jitter - latest) * period.denominator // period.numerator) for _, latest in releases)
    k = accumulate(least, lambda before, least: max(before + 1, least))
    return all(offset + k * period <= earliest for k, (earliest, _) in zip(k, releases))

def simulate(rnd, period, n, skips=0, extras=0, low=0, windows=0):
    special = rnd.sample(range(40, n - 40, 40), skips + extras + low)
    releases, k = [], 0
    for j in range(n):
        k += rnd.randrange(2, 5) if j in special[:skips] else 1
        late = rnd.choice((rnd.expovariate(1 / 20_000), abs(rnd.gauss(0, 20_000)), rnd.gammavariate(4, 5_000)))
        release = 10**12 + math.floor(k * period) + int(late) - int(period * 0.4) * (j in special[skips + extras :])
        releases.append((release - int(windows * rnd.uniform(0, period / 4)), release + int(windows * rnd.uniform(0, period / 20))))
        if j in special[skips : skips + extras]:
            releases.append((release + int(period / 3),) * 2)
    return releases, k - n  # and how many activations were skipped

def self_test():
    rnd = random.Random(5)
    for case in ((0, 0, 0), (1, 0, 0), (2, 0, 0), (5, 0, 0), (20, 0, 0), (0, 1, 0), (2, 2, 0), (0, 0, 1), (0, 0, 0, 1), (2, 0, 0, 1)):
        for period in (10**6, 7_500_000, 23_456_789, Fraction(50_000_000, 3), Fraction(1_280_000_000, 441)):
            releases, skipped = simulate(rnd, period, 3000, *case)
            model, merged, rest = infer(Summary(releases)), Summary(), releases
            while rest:
                size = rnd.choice((1, 5, 15, 16, 40, 1000))
                rest = merged.merge(Summary(rest[:size])) or rest[size:]
            assert model == infer(merged), ("merging", case, period)
            assert is_sound(releases, model["period"], *model["conservative"]), ("soundness", case, period)
            found = model["period"], model["skipped"], model["extra"], len(model["early"])
            assert found == (period, skipped, *case[1:3]) or len(case) > 3 and period not in (10**6, 7_500_000), (case, found)
    print("ok")

def main(names):
    """Prints the models of each stream in each file, in JSON. A stream is lines of earliest, latest, and where they are known arrival (or nothing), how
    many activations after the one before, and 1 where it is none, 2 where a signal came, with commas between; it ends with an empty line."""
    for name in names:
        with open(name, encoding="utf-8") as file:
            for stream in file.read().split("\n\n"):
                rows = [[int(v) if v else None for v in line.split(",")] for line in stream.split("\n") if line]
                found = infer(Summary((r[0], r[1], *r[2:3], *r[3:4], *r[4:5]) for r in rows)) if rows else None
                if found:
                    found["period"] = [found["period"].numerator, found["period"].denominator]
                print(json.dumps(found))

if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else main(sys.argv[1:]))
