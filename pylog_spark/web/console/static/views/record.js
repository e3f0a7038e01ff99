// One record in full: key, value and headers, each as JSON, Avro, text or bytes.

import { el, button, badge } from "../dom.js";
import { number, size, time, sizeText } from "../format.js";
import { json, dump } from "../code.js";

/** Characters of a cell in the list. */
const PREVIEW_CHARS = 160;
const VIEWS = [["avro", "Avro", json], ["json", "JSON", json], ["text", "Text", (text) => text], ["hex", "Hex", dump]];
/** The kind that was last chosen, which the next record is shown in, too, where it has it. */
let chosen = null;

/** What a cell of the list shows of a key or a value. */
export function preview(view) {
  if (view === null) return el("span", { class: "none" }, "null");
  const text = view.avro ?? view.text;
  if (text === null || text === undefined) return el("span", { class: "dim" }, `${sizeText(view.size)}: ${view.hex.slice(0, PREVIEW_CHARS)}`);
  if (text === "") return el("span", { class: "none" }, "empty");
  return text.slice(0, PREVIEW_CHARS).replace(/\s+/g, " ");
}

/** The record beside the list. */
export function record(row, close) {
  const facts = [
    ["Time", [time(row.timestamp), row.timestamp_type ? el("span", { class: "dim" }, ` ${word(row.timestamp_type)}`) : null]],
    ["Size", size(row.size)],
  ];
  return el("div", {},
    el("div", { class: "detail-head" },
      el("h2", {}, `Partition ${row.partition}, offset `, number(row.offset)),
      button("×", close, { class: "quiet", "data-key-close": true, "aria-label": "Close", title: "Close (Esc)" })),
    el("dl", { class: "facts row-facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    part("Key", row.key), part("Value", row.value), headers(row.headers));
}

function word(type) {
  return { CreateTime: "by the producer", LogAppendTime: "by the broker" }[type] ?? type;
}

function part(title, view) {
  const place = el("div");
  const head = el("div", { class: "part-head" }, el("h3", {}, title));
  const node = el("section", { class: "part", "aria-label": title }, head, place);
  if (view === null) {
    place.append(el("p", { class: "none" }, "null"));
    return node;
  }
  const kinds = VIEWS.filter(([kind]) => view[kind] !== null && view[kind] !== undefined);
  const buttons = kinds.map(([kind, name]) => button(name, () => choose(kind), { "data-view-kind": kind }));
  head.append(
    el("span", { class: "dim" }, sizeText(view.size)),
    view.schema !== null && view.schema !== undefined ? badge(`schema ${view.schema}`, "accent") : "",
    el("span", { class: "kinds", role: "group", "aria-label": `${title} as` }, buttons),
    ...(navigator.clipboard ? [button("Copy", copy, { class: "quiet small" })] : []));

  let shown = null;
  function show(wanted) {
    shown = kinds.find(([kind]) => kind === wanted) ?? kinds[0];
    buttons.forEach((each, at) => each.setAttribute("aria-pressed", kinds[at] === shown));
    const text = view[shown[0]];
    place.replaceChildren(
      text === "" ? el("p", { class: "none" }, "empty") : el("pre", { tabindex: "0", "aria-label": `${title} as ${shown[1]}` }, shown[2](text)),
      ...(view.cut ? [el("p", { class: "dim" }, `Only its beginning is shown: all of it has ${view.size} bytes.`)] : []));
  }
  function choose(kind) {
    chosen = kind;
    show(kind);
  }
  async function copy(event) {
    await navigator.clipboard.writeText(view[shown[0]]);
    event.target.textContent = "Copied";
  }
  show(chosen);
  return node;
}

function headers(list) {
  if (!list.length) return el("section", { class: "part" }, el("div", { class: "part-head" }, el("h3", {}, "Headers")), el("p", { class: "none" }, "none"));
  return el("section", { class: "part", "aria-label": "Headers" },
    el("div", { class: "part-head" }, el("h3", {}, "Headers"), el("span", { class: "dim" }, String(list.length))),
    el("div", { class: "scroller" }, el("table", { class: "headers", "aria-label": "Headers" },
      el("tbody", {}, list.map(([name, view]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, preview(view))))))));
}
