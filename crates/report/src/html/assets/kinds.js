// The kinds of figures: what each draws of a stream, on which axes.
"use strict";

const time = (label) => ({ label, marks: durationMarks });
const number = (label) => ({ label, marks: countMarks, whole: true });

const DASHED = [6, 4];
const DOTTED = [2, 3];
const DASH_DOT = [8, 3, 2, 3];

// `points` values from `from` to `until`, evenly on the axis.
function spread(from, until, points, log) {
  if (!log) return Array.from({ length: points + 1 }, (_, index) => from + ((until - from) * index) / points);
  return Array.from({ length: points + 1 }, (_, index) => from * (until / from) ** (index / points));
}

// Functions of the length Δ of an interval, computed anew for what is seen.
function ofIntervals(curves, label, series) {
  const horizon = curves.deltaMin.at(-1) || curves.deltaMax.at(-1) || 1;
  // About two dozen releases, up to a round length.
  const wanted = Math.min(
    horizon,
    Math.max(curves.deltaMax[Math.min(curves.deltaMax.length, 24) - 1] ?? 0, 1000),
  );
  const first = linearMarks(0, wanted, 5).at(-1) || wanted;
  const firstGap = curves.deltaMin.find((value) => value > 0) ?? horizon / 1000;
  return {
    x: time("length of the interval, Δ"),
    y: label,
    view: [0, first],
    limits: [0, horizon],
    log: { x: true, y: true, range: [Math.max(1, Math.min(firstGap / 2, horizon / 100)), horizon] },
    series,
    data: (from, until, points, log) => {
      const spans = spread(from, until, points, log);
      // Zero cannot be drawn on a logarithmic axis.
      const value = (shown) => (log && shown === 0 ? null : shown);
      return [spans, ...series.map((one) => spans.map((span) => value(one.of(span))))];
    },
    stride: (length) => Math.max(1, Math.round(length / 100)),
    where: (plot, index) => `In any ${duration(plot.data[0][index])}:`,
  };
}

function arrivals(stream) {
  const curves = stream.curves;
  const series = [
    { label: "most observed, η⁺", colour: "--c1", draw: "steps-before", tell: count,
      of: (span) => curves.etaMax(span) },
    { label: "fewest observed, η⁻", colour: "--c2", draw: "step", tell: count,
      of: (span) => curves.etaMin(span) },
  ];
  if (curves.separation) {
    // Two releases that once came close together make this so steep that nothing else could be seen beside
    // all of it.
    series.push({ label: "sporadic bound ⌈Δ/T⌉", colour: "--c3", dash: DASHED, width: 1.5,
      draw: "steps-before", cut: true, tell: count, of: (span) => curves.sporadic(span) });
  }
  if (curves.periodic) {
    series.push({ label: "periodic bound ⌈(Δ+J)/T⌉", colour: "--c4", dash: DOTTED, width: 1.5,
      draw: "steps-before", cut: true, tell: count, of: (span) => curves.periodicMax(span) });
    // Where activations were skipped, the period bounds nothing from below.
    if (curves.periodic.is_dense) {
      series.push({ label: "periodic bound ⌊(Δ−J)/T⌋", colour: "--c5", dash: DOTTED, width: 1.5,
        draw: "step", tell: count, of: (span) => curves.periodicMin(span) });
    }
  }
  return ofIntervals(curves, number("releases"), series);
}

function request(stream) {
  const curves = stream.curves;
  const series = [];
  if (curves.separation) {
    series.push(
      { label: "⌈Δ/T⌉·C: two numbers", colour: "--c3", dash: DASHED,
        of: (span) => curves.scalar(curves.sporadic(span)) },
      { label: "WCET(⌈Δ/T⌉): cost curve", colour: "--c4", dash: DASH_DOT,
        of: (span) => curves.wcet(curves.sporadic(span)) },
    );
  }
  series.push(
    { label: "η⁺(Δ)·C: arrival curve", colour: "--c2", dash: DOTTED,
      of: (span) => curves.scalar(curves.etaMax(span)) },
    { label: "WCET(η⁺(Δ)): both curves", colour: "--c1", of: (span) => curves.wcet(curves.etaMax(span)) },
  );
  const styled = series.map((one) => ({ ...one, draw: "steps-before", tell: above }));
  const figure = ofIntervals(curves, time("processor time asked for"), styled);
  // Where the bounds are far apart, only a logarithmic axis shows all of them.
  const ends = styled.map((one) => one.of(figure.view[1])).filter((value) => value > 0);
  return { ...figure, logFirst: Math.max(...ends) > 20 * Math.min(...ends) };
}

function wcet(stream) {
  const curves = stream.curves;
  const jobs = curves.wcets.length;
  const all = Array.from({ length: jobs }, (_, index) => index + 1);
  return {
    x: number("jobs in a row, n"),
    y: time("processor time"),
    view: [0, Math.max(2, jobs)],
    limits: [0, Math.max(2, jobs)],
    log: { x: true, y: true, range: [1, Math.max(2, jobs)] },
    series: [
      { label: "observed, WCET(n)", colour: "--c1", draw: jobs > 1 ? "line" : "points", tell: above },
      { label: "scalar bound, n·C", colour: "--c3", dash: DASHED, draw: "line", tell: above },
    ],
    data: () => [all, curves.wcets, all.map((n) => curves.scalar(n))],
    where: (plot, index) => `Any ${index === 0 ? "job" : `${count(index + 1)} jobs in a row`}:`,
  };
}

// Draws inside the figure, and nowhere else.
function inside(plot, draw) {
  const context = plot.ctx;
  context.save();
  context.beginPath();
  context.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  context.clip();
  context.setLineDash([]);
  context.beginPath();
  draw(context);
  context.restore();
}

// The job that a reader asked for.
function mark(stream, plot, colour) {
  if (!stream.mark) return;
  const { at, name } = stream.mark;
  inside(plot, (context) => {
    const x = plot.valToPos(at, "x", true);
    context.strokeStyle = context.fillStyle = colour("--ink");
    context.lineWidth = devicePixelRatio;
    context.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    context.moveTo(x, plot.bbox.top);
    context.lineTo(x, plot.bbox.top + plot.bbox.height);
    context.stroke();
    context.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
    context.fillText(name, x + 5 * devicePixelRatio, plot.bbox.top + 12 * devicePixelRatio);
  });
}

// Common to figures over time: the times of points, their jobs, and the axis.
function overTime(data) {
  const numbers = sums(data.number);
  const at = sums(data.at_us).map((us) => us * 1000);
  const span = Math.max(at.at(-1) - at[0], 1000);
  const view = [at[0] - span / 50, at.at(-1) + span / 50];
  const where = (plot, index) =>
    `Job ${numbers[index]}, ${duration(at[index], Math.round, 7)} after the start:`;
  return { at, kind: { x: time("time since the start"), view, limits: view, where } };
}

function responses(stream) {
  const data = stream.responses;
  const { at, kind } = overTime(data);
  // A line far above all jobs would flatten them.
  const cut = data.due > 4 * data.response.reduce((most, value) => Math.max(most, value), 0);
  return {
    ...kind,
    y: time("response time"),
    series: [
      { label: "job", colour: "--c1", draw: "points", tell: above },
      ...(data.due ? [{ label: data.due_is, colour: "--c3", dash: DASHED, width: 1.5, draw: "line", cut,
          tell: above }] : []),
    ],
    data: () => [at, data.response, ...(data.due ? [at.map(() => data.due)] : [])],
    drawMore: (plot, colour) => mark(stream, plot, colour),
  };
}

function raster(stream) {
  const data = stream.raster;
  const { at, kind } = overTime(data);
  const high = data.width ? data.low.map((low, index) => low + data.width[index]) : null;
  const labels = data.lateness
    ? [data.left_out ? "jitter" : "jitter, J"]
    : ["least separation", "greatest separation"];
  // What is marked is told at the job that is drawn next to it.
  const marked = (marks, value, words) => {
    const [values, texts] = [at.map(() => null), at.map(() => "")];
    for (const mark of marks) {
      const after = at.findIndex((instant) => instant >= mark.at_us * 1000 - 1000);
      const index = after < 0 ? at.length - 1 : after;
      values[index] = value(mark, index);
      texts[index] += (texts[index] && ", ") + words(mark);
    }
    return { values, texts };
  };
  const slips = data.slips ?? [];
  const leftOut = data.left_out ?? [];
  const slipped = marked(
    slips,
    (mark, index) => data.low[index],
    ({ value }) => (value > 0 ? `${count(value)} skipped` : `${count(-value)} extra`),
  );
  const ringed = marked(
    leftOut,
    ({ value }) => value,
    ({ value }) => (value < 0 ? `${above(-value)} early` : `${above(value)} late`),
  );
  const series = [
    { label: high ? "job (earliest)" : "job", colour: "--c1", draw: "points", tell: below },
    ...(high
      ? [{ label: "window", colour: "--c2", draw: "spans",
          tell: (latest, index) => (latest > data.low[index] ? above(latest) : "–") }]
      : []),
    ...data.bounds.map((_, index) => ({ label: labels[index], colour: "--c3", dash: DASHED, width: 1.5,
      draw: "line", tell: index === 0 && !data.lateness ? below : above })),
    ...(slips.length
      ? [{ label: "skipped or extra before it", colour: "--c4", draw: "spans",
          tell: (_, index) => slipped.texts[index] }]
      : []),
    ...(leftOut.length
      ? [{ label: "left out", colour: "--c5", draw: "rings", tell: (_, index) => ringed.texts[index] }]
      : []),
  ];
  const ringsAt = series.length;
  const slipsAt = ringsAt - (leftOut.length ? 1 : 0);
  return {
    ...kind,
    y: time(data.lateness ? "lateness" : "separation"),
    series,
    data: () => [
      at,
      data.low,
      ...(high ? [high] : []),
      ...data.bounds.map((bound) => at.map(() => bound)),
      ...(slips.length ? [slipped.values] : []),
      ...(leftOut.length ? [ringed.values] : []),
    ],
    drawMore: (plot, colour) => {
      // Releases that were not seen themselves are bars.
      if (high) {
        inside(plot, (context) => {
          context.strokeStyle = colour("--c2");
          context.lineWidth = 2 * devicePixelRatio;
          data.low.forEach((low, index) => {
            if (high[index] === low) return;
            const x = plot.valToPos(at[index], "x", true);
            context.moveTo(x, plot.valToPos(low, "y", true));
            context.lineTo(x, plot.valToPos(high[index], "y", true));
          });
          context.stroke();
        });
      }
      if (slips.length && plot.series[slipsAt].show) {
        inside(plot, (context) => {
          context.strokeStyle = colour("--c4");
          context.lineWidth = 1.5 * devicePixelRatio;
          for (const { at_us: us } of slips) {
            const x = plot.valToPos(us * 1000, "x", true);
            context.moveTo(x, plot.bbox.top);
            context.lineTo(x, plot.bbox.top + plot.bbox.height);
          }
          context.stroke();
        });
      }
      mark(stream, plot, colour);
      if (leftOut.length && plot.series[ringsAt].show) {
        inside(plot, (context) => {
          context.strokeStyle = colour("--c5");
          context.lineWidth = 2 * devicePixelRatio;
          for (const { at_us: us, value } of leftOut) {
            const [x, y] = [plot.valToPos(us * 1000, "x", true), plot.valToPos(value, "y", true)];
            context.moveTo(x + 5 * devicePixelRatio, y);
            context.arc(x, y, 5 * devicePixelRatio, 0, 2 * Math.PI);
          }
          context.stroke();
        });
      }
    },
  };
}

function histogram(data, label) {
  const all = new Histogram(data);
  const until = Math.max(all.greatest * 1.03, all.greatest + 8);
  // From zero where values reach down to it anyway; else from a little before the least.
  const from = all.least < all.greatest / 4 ? 0 : Math.max(0, all.least - (until - all.least) * 0.1);
  let bars = null;
  return {
    x: time(label),
    y: { ...number("jobs"), least: 0.6 },
    view: [from, until],
    limits: [0, until],
    log: { x: false, y: true },
    logFirst: true,
    series: [{ label: "jobs", colour: "--c1", draw: "bars", tell: count }],
    data: (from, until, points, log) => {
      bars = all.bars(from, until, 120);
      const counts = bars.counts.map((number) => (log && number === 0 ? null : number));
      return [bars.from.map((begin) => begin + bars.width / 2), counts];
    },
    where: (plot, index) =>
      `From ${duration(bars.from[index])} to ${duration(bars.from[index] + bars.width)}:`,
  };
}

// ---- Tasks of dataflow programs: curves go on beyond what was observed, dashed, and the border is marked.

// How far beyond, as a factor.
const BEYOND = 10;

// A line at the greatest x that was observed, and what is on its right.
function border(plot, colour, at) {
  const x = Math.round(plot.valToPos(at, "x", true));
  const { left, top, width, height } = plot.bbox;
  if (x < left || x > left + width) return;
  const context = plot.ctx;
  context.save();
  context.strokeStyle = context.fillStyle = colour("--ink-soft");
  context.lineWidth = devicePixelRatio;
  context.setLineDash(DOTTED.map((length) => length * devicePixelRatio));
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, top + height);
  context.stroke();
  context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  const right = "extrapolated →";
  const room = x + context.measureText(right).width + 8 * devicePixelRatio < left + width;
  context.textAlign = room ? "left" : "right";
  context.fillText(
    room ? right : "← observed",
    x + (room ? 4 : -4) * devicePixelRatio,
    top + 12 * devicePixelRatio,
  );
  context.restore();
}

// The lists whose values are drawn in a piece of a curve each.
const within = (list, holds, of) => list.map((x) => (holds(x) ? of(x) : null));
const positive = (log) => (value) => (log && value === 0 ? null : value);

function distances(stream) {
  const curves = stream.curves;
  const known = curves.deltaMin.length + 1;
  const most = BEYOND * known;
  const whole = (from, until, points, log) => [
    ...new Set([
      ...spread(Math.max(2, from), Math.max(2, until), points, log).map(Math.round),
      ...(known >= from && known <= until ? [known] : []),
    ]),
  ].sort((a, b) => a - b);
  return {
    x: number("activations in a row, n"),
    y: time("time that they span"),
    view: [2, Math.max(4, Math.ceil(known * 1.5))],
    limits: [2, most],
    log: { x: true, y: true, range: [2, most] },
    logFirst: known > 50,
    series: [
      { label: "least observed, δ⁻", colour: "--c1", draw: "line", tell: below },
      { label: "greatest observed, δ⁺", colour: "--c2", draw: "line", tell: above },
      { label: "δ⁻ extrapolated (safe)", colour: "--c1", dash: DASHED, draw: "line", tell: below },
    ],
    data: (from, until, points, log) => {
      const ns = whole(from, until, points, log);
      const value = positive(log);
      return [
        ns,
        within(ns, (n) => n <= known, (n) => value(curves.safeDeltaMin(n))),
        within(ns, (n) => n - 2 < curves.deltaMax.length, (n) => value(curves.deltaMax[n - 2])),
        within(ns, (n) => n >= known, (n) => value(curves.safeDeltaMin(n))),
      ];
    },
    where: (plot, index) => `Any ${count(plot.data[0][index])} activations in a row:`,
    drawMore: (plot, colour) => border(plot, colour, known),
  };
}

function activations(stream) {
  const curves = stream.curves;
  const known = Math.max(1, curves.deltaMin.at(-1));
  const longest = curves.deltaMax.at(-1) ?? 0;
  const gap = curves.deltaMin.find((value) => value > 0) ?? known;
  const few = curves.deltaMin.length <= 50;
  const figure = ofIntervals(curves, number("activations"), [
    { label: "most observed, η⁺", colour: "--c1", draw: "steps-before", tell: count,
      of: (span) => (span <= known ? curves.safeEtaMax(span) : null) },
    { label: "fewest observed, η⁻", colour: "--c2", draw: "step", tell: count,
      of: (span) => (span < longest ? curves.etaMin(span) : null) },
    { label: "η⁺ extrapolated (safe)", colour: "--c1", dash: DASHED, draw: "steps-before", tell: count,
      of: (span) => (span >= known ? curves.safeEtaMax(span) : null) },
  ]);
  return {
    ...figure,
    view: [0, few ? known * 1.5 : figure.view[1]],
    limits: [0, BEYOND * known],
    log: { x: true, y: true, range: [Math.max(1, Math.min(gap / 2, known / 100)), BEYOND * known] },
    logFirst: !few,
    drawMore: (plot, colour) => border(plot, colour, known),
  };
}

const KINDS = {
  arrivals,
  activations,
  distances,
  request,
  wcet,
  raster,
  responses,
  lateness: (stream) => histogram(stream.lateness, stream.raster.lateness ? "lateness" : "separation"),
  cost: (stream) => histogram(stream.cost, "processor time of a job"),
  response: (stream) => histogram(stream.response, "response time"),
};
