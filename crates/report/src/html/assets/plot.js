// One interactive figure: a uPlot with a legend that tells values, zooming by drag, keys and buttons, and
// drawing again for what is seen.
"use strict";

const PLOT_HEIGHT = 280;
// On paper: half of a page across, or all of it.
const PAPER = { half: 350, whole: 720, height: 190 };
const KEYS_HELP = "Arrow keys move the cursor, plus and minus zoom, Escape shows all again.";

// What a kind of figure gives (kinds.js):
//   x, y       { label, marks(list, log), whole }      axes
//   view       [from, until]                           what is shown at first
//   limits     [from, until]                           what can be shown
//   log        { x, y, range: [from, until] }          which axes can be logarithmic, and the range of x then
//   logFirst   whether they are at first
//   series     [{ label, colour, dash, draw, cut, tell }]
//              draw: "step", "steps-before", "line", "points", "bars", "spans", "rings" (both by drawMore)
//              cut: on a linear axis it may leave the figure at the top
//   data(from, until, points, log)                     [xs, ...ys] for what is seen
//   where(plot, index)                                 the cursor's place in words
//   stride     how many values an arrow key passes
class Plot {
  constructor(figure, kind) {
    this.figure = figure;
    this.kind = kind;
    this.log = Boolean(kind.logFirst);
    this.range = [...this.home()];
    this.hidden = new Set();
    this.index = null;
    this.build();
  }

  home() {
    return this.log ? (this.kind.log.range ?? this.kind.view) : this.kind.view;
  }

  limits() {
    return this.log && this.kind.log.range ? this.kind.log.range : this.kind.limits;
  }

  // The parts around the canvas: made once, kept when the canvas is thrown away.
  build() {
    const title = this.figure.querySelector("h4");
    const bar = element("div", "bar");
    title.replaceWith(bar);
    const tools = element("div", "tools");
    bar.append(title, tools);
    const tool = (text, name, action) => {
      const button = element("button", "", text);
      button.type = "button";
      button.title = name;
      button.setAttribute("aria-label", `${name}: ${title.textContent}`);
      button.addEventListener("click", action);
      tools.append(button);
      return button;
    };
    if (this.kind.log) {
      this.logButton = tool("log", "Logarithmic scale", () => this.setLog(!this.log));
      this.logButton.setAttribute("aria-pressed", String(this.log));
    }
    tool("+", "Zoom in", () => this.zoom(0.5));
    tool("−", "Zoom out", () => this.zoom(2));
    this.resetButton = tool("Reset", "Show all again", () => this.reset());
    this.resetButton.disabled = true;

    this.canvas = element("div", "canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "group");
    this.canvas.setAttribute("aria-label", `${title.textContent}. ${KEYS_HELP}`);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.point(null));

    this.place = element("output", "place");
    this.legend = element("ul", "series");
    this.values = this.kind.series.map((series, index) => {
      const item = element("li");
      const button = element("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.title = "Show or hide";
      button.append(swatch(series), element("span", "", series.label));
      button.addEventListener("click", () => this.toggle(index, button));
      const value = element("output");
      item.append(button, value);
      this.legend.append(item);
      return value;
    });
    bar.after(this.canvas, this.place, this.legend);
  }

  get drawn() {
    return Boolean(this.uplot);
  }

  // For a printer, until the next time: the size of the window says nothing about that of a sheet.
  print() {
    this.erase();
    this.paper = {
      width: this.figure.classList.contains("wide") ? PAPER.whole : PAPER.half,
      height: PAPER.height,
    };
    this.draw();
    this.paper = null;
  }

  draw() {
    if (this.drawn) return;
    const [from, until] = this.range;
    const data = this.kind.data(from, until, this.points(), this.log);
    this.uplot = new uPlot(this.options(), data, this.canvas);
    this.canvas.dataset.drawn = "";
    for (const index of this.hidden) this.uplot.setSeries(index + 1, { show: false });
  }

  erase() {
    if (!this.drawn) return;
    this.uplot.destroy();
    this.uplot = null;
    delete this.canvas.dataset.drawn;
  }

  again() {
    this.erase();
    this.draw();
  }

  resize() {
    const width = this.canvas.clientWidth;
    if (this.drawn && width > 0 && width !== this.uplot.width) {
      this.uplot.setSize({ width, height: PLOT_HEIGHT });
      this.show(...this.range);
    }
  }

  // How many values across are worth computing.
  points() {
    return Math.max(200, 2 * this.canvas.clientWidth);
  }

  options() {
    const { kind } = this;
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const ink = colour("--ink-soft");
    const font = "12px system-ui, sans-serif";
    const marks = (axis, log, across) => (u, index, min, max) => {
      const wanted = across ? Math.max(2, u.bbox.width / devicePixelRatio / 90) : 5;
      return (log ? logMarks : linearMarks)(min, max, wanted, axis.whole);
    };
    const axis = (axis, log, across) => ({
      label: axis.label,
      labelFont: font,
      labelSize: 18,
      font,
      stroke: ink,
      grid: { stroke: colour("--grid"), width: 1 },
      ticks: { stroke: colour("--grid"), width: 1, size: 5 },
      splits: marks(axis, log, across),
      values: (u, list) => axis.marks(list, log),
      filter: (u, list) => list,
      ...(across
        ? { size: 30, gap: 4 }
        : { size: (u, texts) => 18 + 7 * Math.max(3, ...(texts ?? []).map((text) => String(text).length)) }),
    });
    const [logX, logY] = [this.log && kind.log.x, this.log && kind.log.y];
    return {
      ...(this.paper ?? { width: Math.max(200, this.canvas.clientWidth), height: PLOT_HEIGHT }),
      padding: [12, 28, 0, 0],
      legend: { show: false },
      cursor: {
        drag: { x: true, y: false, setScale: false },
        points: {
          show: (u, index) => !["spans", "rings", "bars"].includes(kind.series[index - 1].draw),
          size: 8,
        },
        bind: { dblclick: () => () => this.reset() },
      },
      scales: {
        x: { time: false, distr: logX ? 3 : 1, range: () => this.range },
        y: {
          distr: logY ? 3 : 1,
          range: (u, min, max) => rangeOfY(kind, logY, min, logY ? max : topOf(kind, u, max)),
        },
      },
      axes: [axis(kind.x, logX, true), axis(kind.y, logY, false)],
      series: [{}, ...kind.series.map((series) => this.series(series, colour))],
      hooks: {
        setSelect: [
          (u) => {
            if (u.select.width < 4) return;
            const from = u.posToVal(u.select.left, "x");
            const until = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            this.show(from, until);
          },
        ],
        setCursor: [(u) => this.tell(u.cursor.left >= 0 ? u.cursor.idx : null)],
        draw: [(u) => kind.drawMore?.(u, colour)],
      },
    };
  }

  series(series, colour) {
    const stroke = colour(series.colour);
    const paths = {
      step: uPlot.paths.stepped({ align: 1 }),
      // A bound for all intervals up to here holds back to the one before.
      "steps-before": uPlot.paths.stepped({ align: -1 }),
      line: uPlot.paths.linear(),
      points: () => null,
      spans: () => null,
      rings: () => null,
      bars: barPaths,
    }[series.draw];
    return {
      label: series.label,
      stroke,
      fill: series.draw === "bars" ? stroke : undefined,
      width: series.draw === "bars" ? 0 : series.width ?? 2,
      dash: series.dash,
      paths,
      points: { show: series.draw === "points", size: 4, fill: stroke, width: 0 },
    };
  }

  // Shows this stretch of x.
  show(from, until) {
    const [least, most] = this.limits();
    const tiniest = this.kind.x.whole ? 4 : 20;
    if (this.log && this.kind.log?.x) {
      from = Math.max(from, least);
    } else if (until - from < tiniest) {
      const middle = (from + until) / 2;
      [from, until] = [middle - tiniest / 2, middle + tiniest / 2];
    }
    this.range = [Math.max(least, from), Math.min(most, until)];
    const [home, end] = this.home();
    this.resetButton.disabled = this.range[0] === home && this.range[1] === end;
    if (!this.drawn) return;
    const data = this.kind.data(...this.range, this.points(), this.log);
    this.uplot.batch(() => {
      this.uplot.setData(data, false);
      this.uplot.setScale("x", { min: this.range[0], max: this.range[1] });
    });
    this.canvas.dataset.range = this.range.join(" ");
  }

  reset() {
    this.show(...this.home());
  }

  // Around the cursor, if there is one, else the middle.
  zoom(factor) {
    const [from, until] = this.range;
    const forth = this.log && this.kind.log.x ? Math.log : (value) => value;
    const back = this.log && this.kind.log.x ? Math.exp : (value) => value;
    const centre =
      this.index === null || !this.drawn
        ? (forth(from) + forth(until)) / 2
        : forth(this.uplot.data[0][this.index] ?? from);
    const to = (edge) => back(centre + (forth(edge) - centre) * factor);
    this.show(to(from), to(until));
  }

  setLog(log) {
    this.log = log;
    this.logButton.setAttribute("aria-pressed", String(log));
    this.range = [...this.home()];
    this.resetButton.disabled = true;
    this.index = null;
    if (this.drawn) this.again();
  }

  toggle(index, button) {
    const show = this.hidden.delete(index);
    if (!show) this.hidden.add(index);
    button.setAttribute("aria-pressed", String(show));
    this.uplot?.setSeries(index + 1, { show });
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.drawn) return;
    const xs = this.uplot.data[0];
    const stride = (this.kind.stride?.(xs.length) ?? 1) * (event.shiftKey ? 10 : 1);
    const shown = (index) => xs[index] >= this.range[0] && xs[index] <= this.range[1];
    const first = xs.findIndex((_, index) => shown(index));
    const last = xs.findLastIndex((_, index) => shown(index));
    const actions = {
      ArrowRight: () => this.step(this.index === null ? first : this.index + stride, first, last),
      ArrowLeft: () => this.step(this.index === null ? last : this.index - stride, first, last),
      Home: () => this.step(first, first, last),
      End: () => this.step(last, first, last),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      "0": () => this.reset(),
      Escape: () => this.reset(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // Moves the cursor; at an edge, what is shown moves with it.
  step(index, first, last) {
    const [from, until] = this.range;
    const [least, most] = this.limits();
    const linear = !(this.log && this.kind.log.x);
    const width = until - from;
    if (linear && index > last && until < most) {
      const to = Math.min(most, until + width / 4);
      this.show(to - width, to);
    } else if (linear && index < first && from > least) {
      const to = Math.max(least, from - width / 4);
      this.show(to, to + width);
    }
    const xs = this.uplot.data[0];
    this.point(Math.min(xs.length - 1, Math.max(0, index)));
  }

  point(index) {
    if (!this.drawn) return;
    if (index === null) {
      this.uplot.setCursor({ left: -10, top: -10 });
      return;
    }
    const left = Math.min(
      this.uplot.over.clientWidth,
      Math.max(0, this.uplot.valToPos(this.uplot.data[0][index], "x")),
    );
    // Only what keys do is read aloud.
    this.place.setAttribute("aria-live", "polite");
    this.uplot.setCursor({ left, top: 0 });
    this.tell(index);
  }

  tell(index) {
    this.index = index;
    if (index === null || index === undefined) {
      this.index = null;
      this.place.value = "";
      this.values.forEach((value) => (value.value = ""));
      return;
    }
    this.place.value = this.kind.where(this.uplot, index);
    this.kind.series.forEach((series, at) => {
      const value = this.uplot.data[at + 1][index];
      this.values[at].value = value === null || value === undefined ? "–" : series.tell(value, index);
    });
  }
}

// How many times as high as the others a series is drawn that may be cut.
const MOST_ABOVE = 2;

// The greatest value that a linear axis must show of the series in view.
function topOf(kind, u, max) {
  let top = -Infinity;
  kind.series.forEach((series, index) => {
    if (series.cut || !u.series[index + 1].show) return;
    for (const value of u.data[index + 1]) if (value > top) top = value;
  });
  return top > 0 ? Math.min(max, MOST_ABOVE * top) : max;
}

function rangeOfY(kind, log, min, max) {
  if (min === null || max === null) return log ? [1, 10] : [0, 1];
  if (log) {
    const least = kind.y.least ?? Math.max(min, max / 1e9, Number.MIN_VALUE);
    return [kind.y.least ?? least / 1.5, Math.max(max, least) * 1.5];
  }
  const most = Math.max(max, kind.y.whole ? 1 : 0);
  const least = Math.min(0, min);
  return [least, most + (most - least) * 0.06 || 1];
}

// Bars from one x to the next, from the bottom.
function barPaths(u, index, first, last) {
  const path = new Path2D();
  const [xs, ys] = [u.data[0], u.data[index]];
  const bottom = u.bbox.top + u.bbox.height;
  for (let at = first; at <= last; at++) {
    if (!ys[at]) continue;
    const middle = xs[at];
    const half = (xs[1] - xs[0]) / 2;
    const left = Math.max(u.bbox.left, u.valToPos(middle - half, "x", true));
    const right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(middle + half, "x", true));
    const top = u.valToPos(ys[at], "y", true);
    const gap = right - left > 6 * devicePixelRatio ? devicePixelRatio : 0;
    if (right > left) path.rect(left, top, Math.max(1, right - left - gap), bottom - top);
  }
  return { fill: path, stroke: null };
}

// The sample of a series in the legend: its colour, and its dashes for whoever does not tell colours apart.
function swatch(series) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 10");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("swatch", series.colour.slice(2));
  const shape = document.createElementNS(
    svg.namespaceURI,
    { points: "circle", rings: "circle", bars: "rect", spans: "rect" }[series.draw] ?? "line",
  );
  const attributes = {
    points: { cx: 12, cy: 5, r: 3 },
    rings: { cx: 12, cy: 5, r: 3.5, class: "hollow" },
    bars: { x: 6, y: 0, width: 12, height: 10 },
    spans: { x: 11, y: 0, width: 2, height: 10 },
  }[series.draw] ?? { x1: 0, y1: 5, x2: 24, y2: 5, "stroke-dasharray": (series.dash ?? []).join(" ") };
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
  svg.append(shape);
  return svg;
}

function element(name, classes = "", text = "") {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  if (text) made.textContent = text;
  return made;
}
