// One topic: its messages, its partitions, its settings, and what can be done to it.

import { el, at, button, empty, badge } from "../dom.js";
import { get, change } from "../api.js";
import { follow, toast, troubles } from "../live.js";
import { number, size, counted } from "../format.js";
import { table } from "../table.js";
import { ask, field, refuse } from "../dialog.js";
import { messages } from "./messages.js";
import { settings } from "./settings.js";
import { produce } from "./produce.js";
import { whole } from "./create_topic.js";

const TABS = { messages: "Messages", partitions: "Partitions", settings: "Settings" };

export async function topic(place, route, signal) {
  const { name } = route;
  const tab = route.rest[0] in TABS ? route.rest[0] : "messages";
  const described = await get(["topics", name], {}, signal);
  const inside = el("div", { class: "inside" });
  const links = Object.entries(TABS).map(([each, title]) =>
    el("a", { href: at("topics", name, each), "aria-current": each === tab ? "page" : null }, title));
  const count = described.partitions.length;
  place.append(
    el("div", { class: "head" },
      el("h1", {}, el("a", { class: "up", href: at("topics") }, "Topics"), el("span", { class: "name" }, name), described.internal ? badge("internal") : null),
      el("div", { class: "buttons" },
        button("Produce", () => produce(name, count, () => inside.dispatchEvent(new Event("written"))), { class: "primary", "data-key-new": true }),
        button("Add partitions", () => addPartitions(name, count), {}),
        button("Delete", () => remove(name), { class: "danger-quiet" }))),
    el("nav", { class: "tabs", "aria-label": "Of this topic" }, links),
    inside);
  if (tab === "partitions") partitions(inside, name, described, signal);
  else if (tab === "settings") settings(inside, name, described, signal);
  else await messages(inside, name, count, route.query, signal);
}

function partitions(place, name, described, signal) {
  const trouble = troubles();
  const facts = el("p", { class: "dim" });
  const list = table({
    label: "Partitions", unit: "partition", key: (row) => row.partition, nothing: () => empty("The topic has no partition."),
    mark: (row) => (row.offline ? "bad" : null),
    columns: [
      { name: "Partition", cell: (row) => el("a", { href: `${at("topics", name, "messages")}?partition=${row.partition}`, title: "its messages" }, String(row.partition)), sort: (row) => row.partition, num: true },
      { name: "Leader", cell: (row) => (row.offline ? badge("none", "bad") : String(row.leader)), sort: (row) => row.leader, num: true, wide: true },
      { name: "Replicas", cell: (row) => row.replicas.join(", "), wide: true },
      { name: "In sync", cell: (row) => inSync(row), sort: (row) => row.isr.length },
      { name: "Start", cell: (row) => number(row.start), sort: (row) => row.start, num: true, wide: true },
      { name: "End", cell: (row) => number(row.end), sort: (row) => row.end, num: true },
      { name: "Offsets", cell: (row) => number(between(row)), sort: between, num: true, title: "from start to end; with compaction or transactions there are fewer records" },
      { name: "Open", cell: (row) => number(open(row)), sort: open, num: true, wide: true, title: "offsets behind the first open transaction, which read_committed does not read yet" },
      { name: "Size", cell: (row) => size(row.bytes), sort: (row) => row.bytes, num: true, title: "of the replica at this broker" },
    ],
  });
  place.append(trouble, facts, list.node);
  let now = described;
  follow(async () => {
    now = now ?? (await get(["topics", name], {}, signal));
    const all = now.partitions.reduce((sum, each) => sum + (between(each) ?? 0), 0);
    facts.replaceChildren(counted(now.partitions.length, "partition"), ", ", number(all), " offsets", ...(now.id ? [", id ", el("code", {}, now.id)] : []));
    list.show(now.partitions);
    now = null;
  }, trouble, signal);
}

function inSync(row) {
  const text = row.isr.join(", ");
  return row.isr.length < row.replicas.length ? badge(`${text || "none"}: ${row.isr.length} of ${row.replicas.length}`, "warn") : text;
}

function between(row) {
  return row.end === null || row.start === null ? null : Number(row.end) - Number(row.start);
}

function open(row) {
  return row.end === null || row.stable === null ? null : Number(row.end) - Number(row.stable);
}

function addPartitions(name, count) {
  const wanted = el("input", { type: "number", min: count + 1, value: count + 1 });
  ask({
    title: `Add partitions to ${name}`,
    verb: "Add",
    fields: [field("Partitions in all", wanted, `There are ${count}. Keys are spread anew: records with the same key may then be in two partitions.`)],
    does: () => {
      if (whole(wanted, "Partitions") <= count) throw refuse(`Give more than ${count}: partitions cannot be taken away.`);
      return change("POST", ["topics", name, "partitions"], { count: Number(wanted.value) });
    },
    done: () => {
      toast(`${name} has ${counted(wanted.value, "partition")}.`);
      location.hash = `${at("topics", name, "partitions")}?of=${wanted.value}`;
    },
  });
}

function remove(name) {
  const typed = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  ask({
    title: `Delete ${name}`,
    verb: "Delete the topic",
    danger: true,
    fields: [
      el("p", {}, "All its records are removed, on all brokers. This cannot be undone."),
      field("Type the topic's name", typed),
    ],
    does: () => {
      if (typed.value !== name) throw refuse(`That is another name: type ${name}.`);
      return change("DELETE", ["topics", name], { name });
    },
    done: () => {
      toast(`${name} is deleted.`);
      location.hash = at("topics");
    },
  });
}
