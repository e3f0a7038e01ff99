// All topics, searched while one types. The broker searches and orders them and gives them by pages, so that ten thousand are soon there.

import { el, at, button, empty, badge } from "../dom.js";
import { get } from "../api.js";
import { follow, troubles } from "../live.js";
import { number, grouped, counted } from "../format.js";
import { table, PIECE_ROWS } from "../table.js";
import { createTopic } from "./create_topic.js";

const FOLLOW_TOPICS_S = 15;
/** What the broker calls the orders of the columns. */
const ORDERS = { Topic: "name", Partitions: "partitions", Replicas: "replication", State: "state" };

export async function topics(place, route, signal) {
  const search = el("input", {
    type: "search", placeholder: "Search topics", "aria-label": "Search topics", "data-key-search": true, title: "/",
    value: route.query.get("search"),
  });
  const internal = el("input", { type: "checkbox" });
  const count = el("span", { class: "dim", role: "status" });
  const trouble = troubles();
  const asked = { sort: null, descending: null };
  let rows = [];
  let turn = 0;
  const list = table({
    label: "Topics", unit: "topic", by: "Topic", key: (row) => row.name,
    nothing: () => (search.value
      ? empty(`No topic's name has “${search.value}” in it.`)
      : empty("There is no topic yet. Create one, or let a producer write to one.")),
    asks: {
      order(column, down) {
        Object.assign(asked, { sort: ORDERS[column], descending: down ? 1 : null });
        fromTop();
      },
      more: () => follow(() => page(rows.length, PIECE_ROWS), trouble, signal, 0),
    },
    columns: [
      { name: "Topic", cell: (row) => [el("a", { href: at("topics", row.name) }, row.name), " ", row.internal ? badge("internal") : null], sort: (row) => row.name, kind: "main" },
      { name: "Partitions", cell: (row) => number(row.partitions), sort: (row) => row.partitions, num: true },
      { name: "Replicas", cell: (row) => number(row.replication), sort: (row) => row.replication, num: true, title: "of each partition" },
      { name: "State", cell: state, sort: (row) => row.offline },
    ],
  });

  /** Show the rows from `skip` on behind those before; without any, all that is shown is asked again. */
  async function page(skip, limit) {
    const mine = ++turn;
    const wanted = search.value.trim();
    const answer = await get(["topics"], { search: wanted, internal: internal.checked ? 1 : null, ...asked, skip: skip || null, limit }, signal);
    // Another question was asked meanwhile, such as by the next letter.
    if (mine !== turn) return;
    const known = new Set(answer.topics.map((each) => each.name));
    const before = skip ? rows.filter((each) => !known.has(each.name)) : [];
    rows = [...before, ...answer.topics];
    list.show(rows, !skip, answer.total);
    const all = counted(grouped(answer.all), "topic");
    count.textContent = answer.total === answer.all ? all : `${grouped(answer.total)} of ${all}`;
  }

  const again = follow(() => page(0, Math.max(rows.length, PIECE_ROWS)), trouble, signal, FOLLOW_TOPICS_S);

  function fromTop() {
    rows = [];
    again();
  }

  search.addEventListener("input", fromTop);
  internal.addEventListener("change", fromTop);
  const create = button("Create topic", () => createTopic((name) => (location.hash = at("topics", name))), { class: "primary", "data-key-new": true });
  place.append(
    el("div", { class: "head" }, el("h1", {}, "Topics"), create),
    el("div", { class: "tools" }, search, el("label", { class: "tick" }, internal, "Internal topics"), count),
    trouble, list.node);
}

function state(row) {
  if (row.offline) return badge(`${row.offline} offline`, "bad", "partitions without a leader");
  if (row.under_replicated) return badge(`${row.under_replicated} under-replicated`, "warn", "partitions with a replica that is not in sync");
  return el("span", { class: "dim" }, "in sync");
}
