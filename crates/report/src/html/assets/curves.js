// The curves of a stream, and what follows from them for any interval: the same rules as the model's own code
// has (papers: LiME, Sections II-B and VI-A).
"use strict";

// The lists that ascend are written as differences.
function sums(differences, from = 0) {
  let sum = from;
  return differences.map((difference) => (sum += difference));
}

// A curve's values for 1, 2, …: straight between corners, rounded to the safe side.
function expand(table, round) {
  if (!table) return [];
  const index = sums(table.index);
  const value = sums(table.value);
  const values = [value[0]];
  for (let corner = 1; corner < index.length; corner++) {
    const length = index[corner] - index[corner - 1];
    for (let step = 1; step <= length; step++) {
      values.push(round(value[corner - 1] + ((value[corner] - value[corner - 1]) * step) / length));
    }
  }
  return values;
}

// How many of a table's ascending values satisfy `holds`, which none does after one that does not.
function partition(table, holds) {
  let low = 0;
  let high = table.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(table[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Curves {
  constructor(data) {
    this.deltaMin = expand(data.delta_min, Math.floor);
    this.deltaMax = expand(data.delta_max, Math.ceil);
    this.wcets = expand(data.wcet, Math.ceil);
    this.separation = data.separation;
    this.periodic = data.periodic;
  }

  // η⁺(Δ): the greatest n with δ⁻(n) < Δ; null where nothing bounds it.
  etaMax(span) {
    if (span <= 0) return 0;
    const last = this.deltaMin.at(-1);
    if (!last) return null;
    // Whole tables that fit below Δ, and the rest.
    const whole = Math.ceil(span / last) - 1;
    const rest = span - whole * last;
    return whole * this.deltaMin.length + partition(this.deltaMin, (value) => value < rest) + 1;
  }

  // η⁻(Δ): the least n with Δ < δ⁺(n + 2).
  etaMin(span) {
    const last = this.deltaMax.at(-1);
    if (span <= 0 || !last) return 0;
    const whole = Math.floor(span / last);
    const rest = span - whole * last;
    return whole * this.deltaMax.length + partition(this.deltaMax, (value) => value <= rest);
  }

  // δ⁻(n), beyond the table by δ⁻(n + 1) = δ⁻(n) + δ⁻(2) (papers: Jungmann et al., ERTS 2024, Eq. 7).
  safeDeltaMin(n) {
    const table = this.deltaMin;
    if (n < 2) return 0;
    return n - 2 < table.length ? table[n - 2] : table.at(-1) + (n - 1 - table.length) * table[0];
  }

  // The greatest n for which that is less than Δ (Eq. 8); null where nothing bounds it.
  safeEtaMax(span) {
    if (span <= 0) return 0;
    const table = this.deltaMin;
    if (span <= table.at(-1)) return partition(table, (value) => value < span) + 1;
    return table[0] > 0 ? table.length + Math.ceil((span - table.at(-1)) / table[0]) : null;
  }

  // ⌈Δ/T⌉
  sporadic(span) {
    return this.separation ? Math.ceil(span / this.separation) : null;
  }

  // ⌈(Δ + J)/T⌉
  periodicMax(span) {
    if (!this.periodic) return null;
    return span <= 0 ? 0 : Math.ceil((span + this.periodic.jitter) / this.periodic.period);
  }

  // ⌊(Δ − J)/T⌋
  periodicMin(span) {
    if (!this.periodic) return null;
    return Math.max(0, Math.floor((span - this.periodic.jitter) / this.periodic.period));
  }

  // WCET(n); beyond the table as many whole tables as fit, and the rest.
  wcet(n) {
    if (n === null || this.wcets.length === 0) return null;
    const whole = Math.floor(n / this.wcets.length);
    const rest = n - whole * this.wcets.length;
    return whole * this.wcets.at(-1) + (rest === 0 ? 0 : this.wcets[rest - 1]);
  }

  // n·C
  scalar(n) {
    return n === null || this.wcets.length === 0 ? null : n * this.wcets[0];
  }
}

// Counts of a histogram, joined to bars of one width that is right for what is seen of them.
class Histogram {
  constructor(data) {
    this.least = data.least;
    this.greatest = data.greatest;
    this.counts = data.count;
    const perOctave = 2 ** data.bits;
    this.buckets = sums(data.index).map((index) => {
      const octave = Math.floor(index / perOctave);
      const within = index % perOctave;
      // The first octave holds all values below 256, in buckets of at least 1.
      const finest = 2 ** (8 - data.bits);
      const width = octave === 0 ? finest : finest * 2 ** (octave - 1);
      return { from: (octave === 0 ? within : perOctave + within) * width, width };
    });
  }

  // Bars between `from` and `until`, at most `most` of them unless buckets are no finer. Widths are powers of
  // two and so are those of buckets, so that no bucket is divided.
  bars(from, until, most) {
    let width = 1;
    while ((until - from) / width > most) width *= 2;
    for (const bucket of this.buckets) {
      if (bucket.from < until && bucket.from + bucket.width > from) width = Math.max(width, bucket.width);
    }
    const first = Math.floor(from / width);
    const counts = new Array(Math.max(1, Math.ceil(until / width) - first)).fill(0);
    this.buckets.forEach((bucket, index) => {
      const bar = Math.floor(bucket.from / width) - first;
      if (bar >= 0 && bar < counts.length) counts[bar] += this.counts[index];
    });
    return { width, from: counts.map((_, index) => (first + index) * width), counts };
  }
}
