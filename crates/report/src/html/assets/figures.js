// Figures as text: durations with a unit that fits, counts with their thousands set apart; and the marks of
// axes.
"use strict";

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

function unitOf(ns) {
  return UNITS.find(([size]) => Math.abs(ns) >= size) ?? UNITS[3];
}

// To `digits` significant digits, as short as that allows. Rounded up, down or to the nearest.
function significant(value, digits, rounding = Math.round) {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const power = Math.floor(Math.log10(Math.abs(value))) - digits + 1;
  // Powers of ten below one are not exact: divide by their inverse.
  const rounded =
    power >= 0 ? rounding(value / 10 ** power) * 10 ** power : rounding(value * 10 ** -power) / 10 ** -power;
  return rounded.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, -power) });
}

function duration(ns, rounding, digits = 4) {
  const [size, name] = unitOf(ns);
  return `${significant(ns / size, digits, rounding).replace("-", "−")} ${name}`;
}

const above = (ns) => duration(ns, Math.ceil);
const below = (ns) => duration(ns, Math.floor);
const count = (number) => number.toLocaleString("en-US");

// Where an axis from `min` to `max` is marked: about `wanted` multiples of 1, 2 or 5 times a power of ten.
function linearMarks(min, max, wanted, whole = false) {
  const rough = (max - min) / Math.max(1, wanted);
  if (!(rough > 0)) return [min];
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999);
  if (whole) step = Math.max(1, step);
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * step);
}

// Powers of ten, some of them if there are many, with 2 and 5 times them if there are few.
function logMarks(min, max, wanted, whole = false) {
  const decades = Math.log10(max / min);
  if (decades < 1) return linearMarks(min, max, wanted, whole);
  const digits = decades * 3 <= wanted ? [1, 2, 5] : [1];
  const stride = Math.max(1, Math.ceil(decades / wanted));
  const marks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
    if (power % stride !== 0) continue;
    for (const digit of digits) {
      const mark = power >= 0 ? digit * 10 ** power : digit / 10 ** -power;
      if (mark >= min * 0.999 && mark <= max * 1.001) marks.push(mark);
    }
  }
  return marks;
}

// Marks of durations: all of a linear axis in one unit.
function durationMarks(marks, log) {
  const greatest = Math.max(...marks.map(Math.abs));
  return marks.map((mark) => {
    const [size, name] = unitOf(log ? mark : greatest);
    const text = (mark / size).toLocaleString("en-US", { maximumFractionDigits: 9 }).replace("-", "−");
    return mark === 0 ? "0" : `${text} ${name}`;
  });
}

const countMarks = (marks) => marks.map((mark) => (Number.isInteger(mark) ? count(mark) : ""));
