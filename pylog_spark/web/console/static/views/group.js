// One group: its lag in records and seconds, over time and by partition, and its members.

import { el, at, empty } from "../dom.js";
import { get } from "../api.js";
import { follow, troubles } from "../live.js";
import { number, grouped, span, spanText, counted } from "../format.js";
import { table } from "../table.js";
import { plot } from "../plot.js";
import { state } from "./groups.js";

/** How many points a view keeps of what it has seen itself. */
const SEEN_MAX = 600;

export async function group(place, route, signal) {
  const { name } = route;
  const trouble = troubles();
  const seen = [];
  const facts = el("dl", { class: "facts row-facts" });
  const lag = plot("Lag", (value) => counted(grouped(value), "record"));
  const age = plot("Behind", spanText);
  const offsets = table({
    label: "Offsets", unit: "partition", key: (row) => `${row.topic}/${row.partition}`,
    nothing: () => empty("The group has committed no offset."),
    columns: [
      { name: "Topic", cell: (row) => el("a", { href: at("topics", row.topic, "partitions") }, row.topic), sort: (row) => row.topic, kind: "main" },
      { name: "Partition", cell: (row) => number(row.partition), sort: (row) => row.partition, num: true },
      { name: "Offset", cell: (row) => number(row.offset), sort: (row) => row.offset, num: true, wide: true, title: "the next that it reads" },
      { name: "End", cell: (row) => number(row.end), sort: (row) => row.end, num: true, wide: true },
      { name: "Lag", cell: (row) => number(row.lag), sort: (row) => row.lag, num: true, title: "records that it has not read" },
      { name: "Behind", cell: (row) => behind(row), sort: (row) => row.seconds, num: true, title: "age of the first record that it has not read" },
    ],
  });
  const members = table({
    label: "Members", unit: "member", key: (row) => row.id,
    nothing: () => empty("No member now."),
    columns: [
      { name: "Member", cell: (row) => el("span", { class: "clip", title: row.id }, row.id), sort: (row) => row.id, kind: "main" },
      { name: "Client", cell: (row) => row.client, sort: (row) => row.client, wide: true },
      { name: "Host", cell: (row) => row.host, sort: (row) => row.host, wide: true },
      { name: "Partitions", cell: (row) => assigned(row.partitions), sort: (row) => row.partitions.length },
    ],
  });
  place.append(
    el("div", { class: "head" }, el("h1", {}, el("a", { class: "up", href: at("groups") }, "Groups"), el("span", { class: "name" }, name))),
    trouble, facts,
    el("section", { class: "plots two-plots" }, lag.node, age.node),
    el("h2", {}, "Offsets"), offsets.node, el("h2", {}, "Members"), members.node);

  follow(async () => {
    const [found, history] = await Promise.all([get(["groups", name], {}, signal), get(["groups", name, "history"], {}, signal)]);
    const all = found.offsets.reduce((sum, each) => sum + Number(each.lag ?? 0), 0);
    const oldest = found.offsets.reduce((most, each) => Math.max(most, each.seconds ?? 0), 0);
    facts.replaceChildren(...[
      ["State", state(found)], ["Type", found.type], ["Members", number(found.members.length)], ["Lag", number(all)], ["Behind", span(oldest)],
    ].map(([word, value]) => el("div", {}, el("dt", {}, word), el("dd", {}, value))));
    offsets.show(found.offsets);
    members.show(found.members);
    seen.push([Date.now(), all, oldest]);
    if (seen.length > SEEN_MAX) seen.shift();
    // The group's coordinator has its history; at another broker the plots begin when the view is opened.
    const points = history.points.length ? history.points : seen;
    lag.show(points.map(([ms, records]) => [ms, records]));
    age.show(points.map(([ms, , seconds]) => [ms, seconds]));
  }, trouble, signal);
}

function behind(row) {
  return row.lag === 0 ? el("span", { class: "dim" }, "0 s") : span(row.seconds);
}

/** "orders 0, 1, 2; payments 0". */
function assigned(partitions) {
  const topics = new Map();
  for (const each of partitions) {
    const [topic, partition] = Array.isArray(each) ? each : [each.topic, each.partition];
    topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  }
  if (!topics.size) return el("span", { class: "dim" }, "none");
  return [...topics].map(([topic, list]) => `${topic} ${list.join(", ")}`).join("; ");
}
