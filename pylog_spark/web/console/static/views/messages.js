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
  const older = el("div", { class: "foot" });
  const more = el("div", { class: "foot" });
  const detail = el("aside", { class: "detail", "aria-label": "Record", hidden: true });
  const state = { rows: [], searched: 0, begin: null, end: null, open: null, run: new AbortController() };
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
  place.append(form.node, trouble, said, el("div", { class: "split" }, el("div", { class: "list" }, older, list.node, more), detail));

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

  /** The records of a search, or with `goes` those `after` or `before` others. */
  async function page(asked, goes, signal) {
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await get(["topics", topic, "records"], { ...asked, limit: LIMIT, ...goes }, signal);
      // The newest come first where nothing else is asked for; else they are in the log's order, so that more can follow.
      const down = isNewestFirst(asked);
      const records = down ? answer.records.reverse() : answer.records;
      const isAbove = goes?.before && !down;
      state.rows = isAbove ? [...records, ...state.rows] : goes ? [...state.rows, ...records] : records;
      state.searched = (goes ? state.searched : 0) + Number(answer.searched ?? 0);
      if (!goes?.before) state.end = answer.end ? null : answer.next;
      if (!goes?.after) state.begin = answer.begin ? null : answer.previous;
      list.show(state.rows, !goes);
      tell(asked, answer, goes);
      if (state.open !== null && !handle(state.open)) close();
    } finally {
      place.removeAttribute("aria-busy");
    }
  }

  function tell(asked, answer, goes) {
    const found = counted(state.rows.length, "record");
    const filtered = asked.key || asked.contains;
    const reached = isNewestFirst(asked) ? goes?.before && !state.begin && ", to the beginning" : !state.end && asked.from !== "latest" && ", to the end";
    said.replaceChildren(filtered ? `${found} found, ${grouped(state.searched)} searched` : found, reached || "", answer.cut ? `. ${answer.cut}` : "");
    const on = (goes) => () => follow(() => page(asked, goes, state.run.signal), trouble, state.run.signal, 0);
    const back = state.begin && !filtered ? [button("Load older", leaving(on({ before: state.begin })), { class: "quiet" })] : [];
    const forth = state.end && !isNewestFirst(asked) ? [button(filtered ? "Search on" : "Load more", on({ after: state.end }), { class: "quiet" })] : [];
    older.replaceChildren(...(isNewestFirst(asked) ? [] : back));
    more.replaceChildren(...(isNewestFirst(asked) ? back : forth));
  }

  /** Who goes back no longer follows: the newest would take the place of what was come to. */
  function leaving(does) {
    return () => {
      form.unfollow();
      state.run.abort();
      state.run = new AbortController();
      does();
    };
  }

  start();
}

function isNewestFirst(asked) {
  return asked.from === "latest" && !asked.key && !asked.contains;
}

/** What tells records of a topic apart. */
function name(row) {
  return `${row.partition}:${row.offset}`;
}
