// Tables: sorted by a click on a column's name, drawn piece by piece, walked with j, k and the arrows.

import { el, button, empty } from "./dom.js";
import { counted, grouped } from "./format.js";

/** Rows that are drawn at once; the next come when the end is scrolled to. */
export const PIECE_ROWS = 200;

/**
 * A table.
 * @param {object} given
 *   label: its name for screen readers; unit: what a row is ("topic"); key(row): what tells rows apart;
 *   columns: [{name, cell(row), sort(row), num, wide, silent, title}]: num: right-aligned; wide: left out on narrow screens;
 *   silent: its name is for screen readers;
 *   nothing(): what is shown without rows; mark(row): a class for a row, or null;
 *   asks: of a list that the broker orders and gives by pages: {order(column's name, down), more()}, each followed by a `show`.
 * @returns {{node: Element, show: function(Array, boolean, number): void}} redrawn only when rows differ; the number is how many there
 *   are, with those that were not asked for yet.
 */
export function table(given) {
  const body = el("tbody");
  const heads = given.columns.map((column) => head(column));
  const scroller = el("div", { class: "scroller", tabindex: "-1" },
    el("table", { "aria-label": given.label }, el("thead", {}, el("tr", {}, heads)), body));
  const foot = el("div", { class: "foot" });
  const place = el("div", { class: "nothing" });
  const node = el("div", { class: "table" }, scroller, foot, place);
  const state = { rows: [], all: 0, seen: null, drawn: PIECE_ROWS, by: given.by ?? null, down: given.down ?? false };

  function head(column) {
    const name = column.sort
      ? button(column.name, () => sortBy(column), { class: "sort", title: column.title })
      : el("span", { title: column.title, class: column.silent ? "unseen" : null }, column.name);
    return el("th", { scope: "col", class: classes(column) }, name);
  }

  function sortBy(column) {
    const again = state.by === column.name;
    state.down = again ? !state.down : Boolean(column.num);
    state.by = column.name;
    mark();
    if (given.asks) given.asks.order(state.by, state.down);
    else draw();
  }

  function mark() {
    given.columns.forEach((each, place) => {
      const direction = state.down ? "descending" : "ascending";
      if (each.sort) heads[place].setAttribute("aria-sort", each.name === state.by ? direction : "none");
    });
  }

  function draw() {
    const column = given.columns.find((each) => each.name === state.by);
    const rows = column && !given.asks ? sorted(state.rows, column.sort, state.down) : state.rows;
    mark();
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.key : null;
    body.replaceChildren(...rows.slice(0, state.drawn).map(line));
    if (focused !== null && focused !== undefined) again(focused);
    scroller.hidden = rows.length === 0;
    place.replaceChildren(...(rows.length === 0 ? [given.nothing()] : []));
    end();
  }

  function end() {
    const all = Math.max(state.rows.length, state.all);
    foot.replaceChildren(...(all > state.drawn ? [more(all)] : []));
  }

  function again(key) {
    for (const row of body.rows) if (row.dataset.key === key) handle(row)?.focus({ preventScroll: true });
  }

  function more(all) {
    const next = button(`Show more: ${grouped(state.drawn)} of ${counted(grouped(all), given.unit)} shown`, grow, { class: "quiet" });
    new IntersectionObserver((seen, observer) => {
      if (!seen.some((each) => each.isIntersecting)) return;
      observer.disconnect();
      grow();
    }).observe(next);
    return next;
  }

  function grow() {
    if (state.drawn < state.rows.length) {
      state.drawn += PIECE_ROWS;
      draw();
    } else {
      given.asks.more();
    }
  }

  function line(row) {
    const cells = given.columns.map((column) => el("td", { class: classes(column) }, column.cell(row)));
    return el("tr", { "data-key": given.key(row), class: given.mark?.(row) || null }, cells);
  }

  return {
    node,
    show(rows, fromTop = false, all = rows.length) {
      const text = JSON.stringify([rows, all]);
      if (text === state.seen) {
        end(); // What was asked for more may have been given up for this.
        return;
      }
      state.seen = text;
      Object.assign(state, { rows, all });
      if (fromTop) state.drawn = PIECE_ROWS;
      if (given.asks) state.drawn = rows.length;
      draw();
    },
  };
}

function classes(column) {
  return [column.num && "num", column.wide && "wide", column.kind].filter(Boolean).join(" ") || null;
}

function sorted(rows, of, down) {
  const keyed = rows.map((row) => [of(row), row]);
  const text = new Intl.Collator("en", { numeric: true });
  keyed.sort(([one], [other]) => {
    if (one === other) return 0;
    if (one === null || one === undefined) return 1; // What is not known comes last, either way.
    if (other === null || other === undefined) return -1;
    const order = typeof one === "number" && typeof other === "number" ? one - other : text.compare(one, other);
    return down ? -order : order;
  });
  return keyed.map(([, row]) => row);
}

/** What takes the focus of a row: its first link or button. */
function handle(row) {
  return row.querySelector("a, button");
}

/** Move the focus by `step` rows in the table that has it, or into the first one. Whether there was a row to go to. */
export function walk(step) {
  const active = document.activeElement?.closest?.("tr");
  const shown = [...document.querySelectorAll("main tbody tr")].filter((row) => handle(row));
  const from = active ? shown.indexOf(active) : -1;
  const next = shown[from < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, from + step))];
  if (!next) return false;
  handle(next).focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}
