// All topics, searched while one types; ten thousand are drawn piece by piece.

import { el, at, button, empty, badge } from "../dom.js";
import { get } from "../api.js";
import { follow, troubles } from "../live.js";
import { number, grouped, counted } from "../format.js";
import { table } from "../table.js";
import { createTopic } from "./create_topic.js";

const FOLLOW_TOPICS_S = 15;

export async function topics(place, route, signal) {
  const search = el("input", {
    type: "search", placeholder: "Search topics", "aria-label": "Search topics", "data-key-search": true, title: "/",
    value: route.query.get("search"),
  });
  const internal = el("input", { type: "checkbox" });
  const count = el("span", { class: "dim", role: "status" });
  const trouble = troubles();
  let answer = { topics: [], total: 0, cut: false };
  let searched = "";
  const list = table({
    label: "Topics", unit: "topic", by: "Topic", key: (row) => row.name,
    nothing: () => (search.value
      ? empty(`No topic's name has “${search.value}” in it.`)
      : empty("There is no topic yet. Create one, or let a producer write to one.")),
    columns: [
      { name: "Topic", cell: (row) => [el("a", { href: at("topics", row.name) }, row.name), " ", row.internal ? badge("internal") : null], sort: (row) => row.name, kind: "main" },
      { name: "Partitions", cell: (row) => number(row.partitions), sort: (row) => row.partitions, num: true },
      { name: "Replicas", cell: (row) => number(row.replication), sort: (row) => row.replication, num: true, title: "of each partition" },
      { name: "State", cell: state, sort: (row) => row.offline * 1e6 + row.under_replicated },
    ],
  });

  function draw(fromTop = false) {
    const wanted = search.value.trim().toLowerCase();
    const found = answer.topics.filter((each) => each.name.toLowerCase().includes(wanted));
    list.show(found, fromTop);
    count.textContent = answer.cut
      ? `${grouped(found.length)} of ${counted(grouped(answer.total), "topic")}: search for the others`
      : found.length === answer.topics.length ? counted(grouped(found.length), "topic") : `${grouped(found.length)} of ${counted(grouped(answer.topics.length), "topic")}`;
  }

  const again = follow(async () => {
    searched = answer.cut || route.query.get("search") ? search.value.trim() : "";
    answer = await get(["topics"], { search: searched, internal: internal.checked ? 1 : 0 }, signal);
    draw();
  }, trouble, signal, FOLLOW_TOPICS_S);

  search.addEventListener("input", () => {
    route.query.delete("search");
    draw(true);
    // The broker knows the names that were cut from the answer, or that a search before has left out.
    if (answer.cut || (searched && !search.value.includes(searched))) again();
  });
  internal.addEventListener("change", again);
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
