// All groups: who reads, and how far each is behind.

import { el, at, empty, badge } from "../dom.js";
import { get } from "../api.js";
import { follow, troubles } from "../live.js";
import { number, counted } from "../format.js";
import { table } from "../table.js";

const STATES = { stable: "good", empty: "", dead: "", preparingrebalance: "warn", completingrebalance: "warn", reconciling: "warn", assigning: "warn" };

export async function groups(place, route, signal) {
  const search = el("input", { type: "search", placeholder: "Search groups", "aria-label": "Search groups", "data-key-search": true, title: "/" });
  const count = el("span", { class: "dim", role: "status" });
  const trouble = troubles();
  let answer = { groups: [], cut: null };
  const list = table({
    label: "Groups", unit: "group", by: "Group", key: (row) => row.name,
    nothing: () => (search.value
      ? empty(`No group's name has “${search.value}” in it.`)
      : empty("No group has read yet. Consumers with a group.id appear here, and Spark queries that keep their progress in a group.")),
    columns: [
      { name: "Group", cell: (row) => [el("a", { href: at("groups", row.name) }, row.name || "(no name)"), " ", row.query ? badge("Spark query", "accent") : null], sort: (row) => row.name, kind: "main" },
      { name: "State", cell: state, sort: (row) => row.state },
      { name: "Type", cell: (row) => row.type, sort: (row) => row.type, wide: true },
      { name: "Protocol", cell: (row) => row.protocol || "", sort: (row) => row.protocol, wide: true },
      { name: "Members", cell: (row) => number(row.members), sort: (row) => row.members, num: true },
      { name: "Lag", cell: (row) => number(row.lag), sort: (row) => row.lag, num: true, title: "records that it has not read, in all its partitions" },
    ],
  });
  function draw(fromTop = false) {
    const wanted = search.value.trim().toLowerCase();
    const found = answer.groups.filter((each) => each.name.toLowerCase().includes(wanted));
    list.show(found, fromTop);
    const all = counted(answer.groups.length, "group");
    count.textContent = (found.length === answer.groups.length ? all : `${found.length} of ${all}`) + (answer.cut ? ". There are more, which are not shown." : "");
  }
  search.addEventListener("input", () => draw(true));
  place.append(el("div", { class: "head" }, el("h1", {}, "Groups")), el("div", { class: "tools" }, search, count), trouble, list.node);
  follow(async () => {
    answer = await get(["groups"], {}, signal);
    draw();
  }, trouble, signal);
}

/** The state of a group, as a mark. */
export function state(row) {
  return badge(row.state || "unknown", STATES[String(row.state).toLowerCase()] ?? "");
}
