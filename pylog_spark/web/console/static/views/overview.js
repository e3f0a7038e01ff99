// The cluster at a glance: its brokers, whether its partitions are well, and what this broker does.

import { el, at, empty, badge } from "../dom.js";
import { get } from "../api.js";
import { follow, troubles } from "../live.js";
import { number, grouped, sizeText } from "../format.js";
import { table } from "../table.js";
import { plot } from "../plot.js";

const perSecond = (value) => `${value < 100 && value !== Math.round(value) ? value.toFixed(1) : grouped(value)} /s`;
const PLOTS = [
  ["Records in", perSecond],
  ["Bytes in", (value) => `${sizeText(value)}/s`],
  ["Bytes out", (value) => `${sizeText(value)}/s`],
  ["Requests", perSecond],
];

export async function overview(place, route, signal) {
  const facts = el("dl", { class: "facts" });
  const health = el("dl", { class: "facts" });
  const plots = PLOTS.map(([label, text]) => plot(label, text));
  const brokers = table({
    label: "Brokers", unit: "broker", key: (row) => row.id, nothing: () => empty("The cluster names no broker."),
    columns: [
      { name: "Broker", cell: (row) => [el("span", {}, row.id), " ", row.is_controller ? badge("controller") : null], sort: (row) => row.id, kind: "main" },
      { name: "Address", cell: (row) => `${row.host}:${row.port}`, sort: (row) => row.host },
      { name: "Rack", cell: (row) => row.rack ?? "", sort: (row) => row.rack, wide: true },
      { name: "Leads", cell: (row) => number(row.leads), sort: (row) => row.leads, num: true, title: "partitions that it leads" },
      { name: "Replicas", cell: (row) => number(row.replicas), sort: (row) => row.replicas, num: true },
    ],
  });
  const shown = el("section", { class: "plots" }, plots.map((each) => each.node));
  const trouble = troubles();
  place.append(el("h1", {}, "Overview"), trouble,
    el("section", { class: "cards" }, el("div", { class: "card" }, facts), el("div", { class: "card" }, health)),
    el("h2", {}, "This broker"), shown,
    el("h2", {}, "Brokers"), brokers.node);

  follow(async () => {
    const [cluster, rates] = await Promise.all([get(["cluster"], {}, signal), ratesOrWhyNot(signal)]);
    facts.replaceChildren(...pairs([
      ["Cluster", el("code", {}, cluster.cluster_id)],
      ["Controller", cluster.controller === null ? badge("none", "bad") : `broker ${cluster.controller}`],
      ["Brokers", number(cluster.brokers.length)],
      ["Version", cluster.version],
    ]));
    health.replaceChildren(...pairs(healthOf(cluster)));
    brokers.show(cluster.brokers.map((each) => ({ ...each, is_controller: each.id === cluster.controller })));
    shown.replaceChildren(...(rates.refused ? [el("p", { class: "dim" }, rates.refused)] : plots.map((each) => each.node)));
    plots.forEach((each, column) => each.show(rates.points.map((point) => [point[0], point[column + 1]])));
  }, trouble, signal);
}

/** The rates, which not everybody may see. */
async function ratesOrWhyNot(signal) {
  try {
    return await get(["rates"], {}, signal);
  } catch (error) {
    if (error.status !== 403) throw error;
    return { points: [], refused: error.message };
  }
}

function healthOf(cluster) {
  const { under_replicated: under, offline } = cluster;
  return [
    ["Topics", el("a", { href: at("topics") }, number(cluster.topics))],
    ["Partitions", number(cluster.partitions)],
    ["Under-replicated", under ? badge(String(under), "warn") : badge("none", "good")],
    ["Offline", offline ? badge(String(offline), "bad") : badge("none", "good")],
  ];
}

function pairs(list) {
  return list.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}
