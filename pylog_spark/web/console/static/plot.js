// Small plots of numbers over time, in SVG: a line, its area, what it is now and was at most, and its value under the pointer.

import { el, svg } from "./dom.js";
import { clockText } from "./format.js";

const WIDTH = 600;
const HEIGHT = 120;
/** A plot is at least so wide, in milliseconds: the first numbers of a broker are a beginning, not all. */
const SPAN_MS = 300_000;
const NO_NUMBERS = "no numbers yet";

/**
 * A plot.
 * @param {string} label what the numbers are.
 * @param {function} text a number with its unit, as text.
 * @returns {{node: Element, show: function(Array): void}} `show` takes [[ms, number or null]], oldest first.
 */
export function plot(label, text) {
  const now = el("strong", { class: "n" }, "–");
  const most = el("span", { class: "dim n" });
  const line = svg("path", { class: "line" });
  const area = svg("path", { class: "area" });
  const dots = svg("g");
  const cross = svg("line", { class: "cross", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const grid = [0.5, 1].map((part) => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: part * HEIGHT, y2: part * HEIGHT }));
  const frame = { viewBox: `0 -4 ${WIDTH} ${HEIGHT + 8}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}: ${NO_NUMBERS}` };
  const picture = svg("svg", frame, grid, area, line, dots, cross);
  const from = el("span");
  const under = el("span", { class: "under" });
  const to = el("span");
  const node = el("figure", { class: "plot" },
    el("figcaption", {}, el("span", {}, label), now, most),
    picture,
    el("div", { class: "axis dim n" }, from, under, to));
  let scale = null;

  picture.addEventListener("pointermove", (event) => {
    if (!scale) return;
    const box = picture.getBoundingClientRect();
    const ms = scale.first + ((event.clientX - box.left) / box.width) * (scale.last - scale.first);
    const near = scale.points.reduce((best, each) => (Math.abs(each[0] - ms) < Math.abs(best[0] - ms) ? each : best));
    const x = scale.x(near[0]);
    for (const name of ["x1", "x2"]) cross.setAttribute(name, x);
    cross.setAttribute("visibility", "visible");
    under.textContent = `${clockText(near[0])}: ${near[1] === null ? "not known" : text(near[1])}`;
  });
  picture.addEventListener("pointerleave", () => {
    cross.setAttribute("visibility", "hidden");
    under.textContent = "";
  });

  return {
    node,
    show(points) {
      const known = points.filter(([, value]) => value !== null);
      node.classList.toggle("bare", known.length === 0);
      scale = known.length ? scaled(points, known) : null;
      if (!scale) {
        under.textContent = NO_NUMBERS;
        // An image has a name, also when it shows nothing.
        picture.setAttribute("aria-label", `${label}: ${NO_NUMBERS}`);
        for (const each of [line, area]) each.removeAttribute("d");
        return;
      }
      const pieces = split(points);
      const lines = pieces.map((piece) => path(piece, scale));
      line.setAttribute("d", lines.join(" "));
      area.setAttribute("d", pieces.map((piece, place) => closed(lines[place], piece, scale)).join(" "));
      const last = known[known.length - 1];
      now.textContent = text(last[1]);
      most.textContent = `at most ${text(scale.most)}`;
      from.textContent = clockText(scale.first);
      to.textContent = clockText(scale.last);
      if (under.textContent === NO_NUMBERS) under.textContent = "";
      picture.setAttribute("aria-label", `${label}: now ${text(last[1])}, at most ${text(scale.most)} since ${clockText(scale.first)}`);
    },
  };
}

function scaled(points, known) {
  const last = points[points.length - 1][0];
  const first = Math.min(points[0][0], last - SPAN_MS);
  const most = known.reduce((best, [, value]) => Math.max(best, value), 0);
  return {
    points, first, last, most,
    x: (ms) => ((ms - first) / (last - first)) * WIDTH,
    y: (value) => HEIGHT - (most ? value / most : 0) * HEIGHT,
  };
}

/** The runs of points with a number: a gap is drawn as one. */
function split(points) {
  const pieces = [];
  let piece = [];
  for (const point of [...points, [0, null]]) {
    if (point[1] !== null) piece.push(point);
    else if (piece.length) {
      pieces.push(piece);
      piece = [];
    }
  }
  return pieces;
}

function path(piece, scale) {
  const steps = piece.map(([ms, value], place) => `${place ? "L" : "M"}${scale.x(ms).toFixed(1)} ${scale.y(value).toFixed(1)}`);
  // A point alone is a short line, or it would not be seen.
  return piece.length === 1 ? `${steps[0]} h-3` : steps.join(" ");
}

function closed(line, piece, scale) {
  return `${line} L${scale.x(piece[piece.length - 1][0]).toFixed(1)} ${HEIGHT} L${scale.x(piece[0][0]).toFixed(1)} ${HEIGHT} Z`;
}
