// The page itself: the table, the list of contents, and drawing what comes into view.
"use strict";

// ---- The table sorts by column and filters by text.

function sortable(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  rows.forEach((row, place) => (row.dataset.place = place));
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = element("button", "", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      // The third time, the order in which they were.
      const order = { none: "ascending", ascending: "descending", descending: "none" }[before];
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", order);
      const ranked = head.dataset.ranked !== undefined;
      body.append(...rows.sort((a, b) => compare(a, b, column, ranked, order)));
    });
  });
}

function compare(a, b, column, ranked, order) {
  const places = a.dataset.place - b.dataset.place;
  if (order === "none") return places;
  const value = (row) => {
    const cell = row.cells[column];
    if (!ranked) return cell.textContent;
    return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
  };
  const [one, other] = [value(a), value(b)];
  if (one === null || other === null) return (one === null) - (other === null) || places;
  const sign = order === "ascending" ? 1 : -1;
  return sign * (ranked ? one - other : one.localeCompare(other, "en")) || places;
}

function filterable(table) {
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, `${row.textContent} ${row.dataset.words}`.toLowerCase()]));
  const input = document.getElementById("filter");
  const folded = document.getElementById("folded");
  const shown = document.getElementById("shown");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const isOut = (row) => row.dataset.folded !== undefined && !folded.checked && words.length === 0;
    rows.forEach((row) => (row.hidden = isOut(row) || !words.every((word) => texts.get(row).includes(word))));
    const left = rows.filter((row) => !row.hidden).length;
    shown.value =
      left === rows.length
        ? `${count(left)} ${left === 1 ? "row" : "rows"}`
        : `${count(left)} of ${count(rows.length)} rows`;
  };
  [input, folded].forEach((control) => control?.addEventListener("input", filter));
  input.closest(".controls").hidden = false;
  filter();
}

// ---- Figures are drawn when they come into view; of those out of view, only so many stay drawn.

const MOST_DRAWN = 48;

class Figures {
  constructor(streams) {
    this.streams = streams;
    this.plots = new Map();
    this.visible = new Set();
    this.seen = new IntersectionObserver((entries) => entries.forEach((entry) => this.see(entry)), {
      rootMargin: "300px 0px",
    });
    this.sized = new ResizeObserver((entries) =>
      entries.forEach(({ target }) => this.plots.get(target.parentElement)?.resize()),
    );
    document.querySelectorAll("figure.plot").forEach((figure) => this.seen.observe(figure));
  }

  plot(figure) {
    if (!this.plots.has(figure)) {
      const data = this.streams[figure.dataset.stream];
      // Curves are expanded once, and only where they are looked at.
      data.curves ??= new Curves(data);
      const plot = new Plot(figure, KINDS[figure.dataset.kind](data));
      this.sized.observe(plot.canvas);
      this.plots.set(figure, plot);
    }
    return this.plots.get(figure);
  }

  see({ target, isIntersecting }) {
    if (!isIntersecting) {
      this.visible.delete(target);
      return;
    }
    this.visible.add(target);
    const plot = this.plot(target);
    plot.draw();
    // Last in the order in which they are thrown away.
    this.plots.delete(target);
    this.plots.set(target, plot);
    let drawn = [...this.plots.values()].filter((other) => other.drawn).length;
    for (const [figure, other] of this.plots) {
      if (drawn <= MOST_DRAWN) break;
      if (other.drawn && !this.visible.has(figure) && !figure.contains(document.activeElement)) {
        other.erase();
        drawn--;
      }
    }
  }

  // In the colours of now.
  again() {
    for (const plot of this.plots.values()) {
      if (plot.drawn) plot.again();
    }
  }

  // Every one that is not folded away.
  print() {
    document.querySelectorAll("figure.plot").forEach((figure) => {
      if (figure.checkVisibility()) this.plot(figure).print();
    });
  }

  // What was drawn for the printer is drawn anew where it is in view, and later where it is not.
  printed() {
    for (const [figure, plot] of this.plots) {
      plot.erase();
      if (this.visible.has(figure)) plot.draw();
    }
  }
}

// ---- Paper: everything that is not folded away, in light colours (theme.js sees to those first).

function printable(figures) {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.words:not([open])")];
    opened.forEach((details) => (details.open = true));
    figures.print();
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => (details.open = false));
    figures.printed();
  });
}

// ---- The worst jobs are shown over time, among the jobs around them.

const AROUND = 25;

function showable(figures) {
  document.querySelectorAll("button.show").forEach((button) => {
    const { stream, kind, job, atUs } = button.dataset;
    const figure = document.querySelector(`figure[data-kind="${kind}"][data-stream="${stream}"]`);
    if (!figure) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const plot = figures.plot(figure);
      const data = figures.streams[stream][kind];
      // At its point, if it has one: jobs are drawn at their releases.
      const place = sums(data.number).indexOf(Number(job));
      const at = (place < 0 ? Number(atUs) : sums(data.at_us)[place]) * 1000;
      figures.streams[stream].mark = { at, name: `job ${job}` };
      figure.scrollIntoView({ block: "center" });
      plot.draw();
      const [from, until] = plot.kind.limits;
      const span = ((until - from) / Math.max(1, data.jobs)) * AROUND;
      plot.show(at - span, at + span);
      plot.canvas.focus({ preventScroll: true });
    });
  });
}

// ---- The list of contents says where the reader is.

function followed(list) {
  const links = new Map();
  list.querySelectorAll("a").forEach((link) => {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (section) links.set(section, link);
  });
  const seen = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      entries.forEach(({ target, isIntersecting }) =>
        isIntersecting ? seen.add(target) : seen.delete(target),
      );
      const first = [...links.keys()].find((section) => seen.has(section));
      for (const [section, link] of links) {
        if (section !== first) link.removeAttribute("aria-current");
        else if (!link.hasAttribute("aria-current")) {
          link.setAttribute("aria-current", "true");
          // Within the list alone: the page stays where it is.
          const top = link.offsetTop - list.offsetTop;
          if (top < list.scrollTop || top + link.offsetHeight > list.scrollTop + list.clientHeight) {
            list.scrollTop = top - list.clientHeight / 2;
          }
        }
      }
    },
    { rootMargin: "-15% 0px -60% 0px" },
  );
  links.forEach((_, section) => observer.observe(section));
}

const table = document.getElementById("overview");
if (table) {
  sortable(table);
  filterable(table);
}
const figures = new Figures(JSON.parse(document.getElementById("data").textContent).streams);
addEventListener("recolour", () => figures.again());
printable(figures);
showable(figures);
followed(document.querySelector(".contents"));
