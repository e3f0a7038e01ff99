// The records of a topic: from where, which of them, and one of them in full beside the list.

import { el, button, empty } from "../dom.js";
import { get } from "../api.js";
import { follow, troubles, say, FOLLOW_S } from "../live.js";
import { counted, grouped, number, size, time } from "../format.js";
import { table } from "../table.js";
import { record, preview } from "./record.js";
import { searchForm } from "./search_form.js";

/** Records of one answer. */
const LIMIT = 50;

export async function messages(place, topic, partitions, query, signal) {
  const trouble = troubles();
  const said = el("p", { class: "dim", role: "status" });
  const more = el("div", { class: "foot" });
  const detail = el("aside", { class: "detail", "aria-label": "Record", hidden: true });
  const state = { rows: [], searched: 0, open: null, run: new AbortController() };
  const form = searchForm(partitions, query, start);
  const list = table({
    label: "Messages", unit: "record", key: name,
    nothing: () => empty(form.isPlain() ? "There is no record yet." : "No record found. Look from an earlier place, in all partitions, or for less."),
    mark: (row) => (name(row) === state.open ? "open" : null),
    columns: [
      { name: "Partition", cell: (row) => String(row.partition), num: true },
      { name: "Offset", cell: (row) => el("button", { type: "button", class: "cell", "data-record": name(row) }, number(row.offset)), num: true },
      { name: "Time", cell: (row) => time(row.timestamp), kind: "time" },
      { name: "Key", cell: (row) => preview(row.key), kind: "text" },
      { name: "Value", cell: (row) => preview(row.value), kind: "text value" },
      { name: "Size", cell: (row) => size(row.size), num: true, wide: true },
    ],
  });
  place.append(form.node, trouble, said, el("div", { class: "split" }, el("div", { class: "list" }, list.node, more), detail));

  list.node.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row && !String(getSelection())) open(row.dataset.key);
  });
  // While a record is open, walking through the list shows each that is come to.
  list.node.addEventListener("focusin", (event) => {
    if (state.open !== null && event.target.dataset.record) open(event.target.dataset.record);
  });
  place.addEventListener("written", start);
  signal.addEventListener("abort", () => state.run.abort());

  function open(key) {
    const found = state.rows.find((row) => name(row) === key);
    if (!found) return;
    state.open = key;
    detail.replaceChildren(record(found, close));
    detail.hidden = false;
    place.classList.add("with-detail");
    marked();
  }

  function close() {
    const was = state.open;
    state.open = null;
    detail.hidden = true;
    place.classList.remove("with-detail");
    marked();
    handle(was)?.focus();
  }

  function marked() {
    for (const row of list.node.querySelectorAll("tbody tr")) row.classList.toggle("open", row.dataset.key === state.open);
  }

  function handle(key) {
    return [...list.node.querySelectorAll("[data-record]")].find((each) => each.dataset.record === key);
  }

  /** A search from its beginning; with "Follow" again and again. */
  function start() {
    state.run.abort();
    state.run = new AbortController();
    if (signal.aborted) return;
    let asked;
    try {
      asked = form.asked();
    } catch (error) {
      say(trouble, error);
      return;
    }
    history.replaceState(null, "", `${location.hash.split("?")[0]}${form.text()}`);
    follow(() => page(asked, null, state.run.signal), trouble, state.run.signal, form.follows() ? FOLLOW_S : 0);
  }

  async function page(asked, after, signal) {
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await get(["topics", topic, "records"], { ...asked, limit: LIMIT, after }, signal);
      // The newest come first where nothing else is asked for; else they are in the log's order, so that more can follow.
      const records = asked.from === "latest" && !asked.key && !asked.contains ? answer.records.reverse() : answer.records;
      state.rows = after ? [...state.rows, ...records] : records;
      state.searched = (after ? state.searched : 0) + Number(answer.searched ?? 0);
      list.show(state.rows, !after);
      tell(asked, answer);
      if (state.open !== null && !handle(state.open)) close();
    } finally {
      place.removeAttribute("aria-busy");
    }
  }

  function tell(asked, answer) {
    const found = counted(state.rows.length, "record");
    const filtered = asked.key || asked.contains;
    said.replaceChildren(filtered ? `${found} found, ${grouped(state.searched)} searched` : found, answer.end && asked.from !== "latest" ? ", to the end" : "", answer.cut ? `. ${answer.cut}` : "");
    const on = () => follow(() => page(asked, answer.next, state.run.signal), trouble, state.run.signal, 0);
    more.replaceChildren(...(answer.next && !answer.end ? [button(filtered ? "Search on" : "Load more", on, { class: "quiet" })] : []));
  }

  start();
}

/** What tells records of a topic apart. */
function name(row) {
  return `${row.partition}:${row.offset}`;
}
