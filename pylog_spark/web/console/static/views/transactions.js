// Open transactions: who has one, since when, and which stand still and hold readers up.

import { el, at, empty, badge } from "../dom.js";
import { get } from "../api.js";
import { follow, troubles } from "../live.js";
import { number, grouped, span, time, counted } from "../format.js";
import { table } from "../table.js";

export async function transactions(place, route, signal) {
  const trouble = troubles();
  const only = el("input", { type: "checkbox" });
  const count = el("span", { class: "dim", role: "status" });
  let answer = { transactions: [], cut: null };
  const list = table({
    label: "Transactions", unit: "transaction", key: (row) => row.id, by: "Age", down: true,
    nothing: () => empty(only.checked ? "No transaction stands still." : "No transaction is known to the brokers. A producer with a transactional.id appears here."),
    mark: (row) => (row.stalled ? "warn" : null),
    columns: [
      { name: "Transactional id", cell: (row) => [el("span", {}, row.id), " ", row.stalled ? badge("stalled", "warn", "open for longer than it should be: readers of committed records wait for it") : null], sort: (row) => row.id, kind: "main" },
      { name: "State", cell: (row) => row.state, sort: (row) => row.state },
      { name: "Age", cell: (row) => (row.age_s === null ? "" : span(row.age_s)), sort: (row) => row.age_s, num: true },
      { name: "Started", cell: (row) => (row.started_ms === null ? "" : time(row.started_ms)), sort: (row) => row.started_ms, wide: true },
      { name: "Timeout", cell: (row) => span(row.timeout_ms / 1000), sort: (row) => row.timeout_ms, num: true, wide: true },
      { name: "Producer", cell: (row) => [number(row.producer_id), el("span", { class: "dim" }, ` / ${row.epoch}`)], num: true, wide: true, title: "producer id / epoch" },
      { name: "Coordinator", cell: (row) => number(row.coordinator), sort: (row) => row.coordinator, num: true, wide: true },
      { name: "Partitions", cell: (row) => partitions(row.partitions), kind: "long" },
    ],
  });
  function draw() {
    const found = answer.transactions.filter((each) => each.stalled || !only.checked);
    list.show(found);
    const stalled = answer.transactions.filter((each) => each.stalled).length;
    count.textContent = `${counted(grouped(answer.transactions.length), "transaction")}, ${stalled} stalled${answer.cut ? ". There are more, which are not shown." : ""}`;
  }
  only.addEventListener("change", draw);
  place.append(
    el("div", { class: "head" }, el("h1", {}, "Transactions")),
    el("div", { class: "tools" }, el("label", { class: "tick" }, only, "Only stalled"), count),
    trouble, list.node,
    el("p", { class: "dim" }, "A stalled one is ended by its producer, by its timeout, or by ", el("code", {}, "pylog transaction abort"), "."));
  follow(async () => {
    answer = await get(["transactions"], {}, signal);
    draw();
  }, trouble, signal);
}

function partitions(list) {
  if (!list.length) return "";
  return list.map(([topic, partition], place) => [place ? ", " : "", el("a", { href: `${at("topics", topic, "messages")}?partition=${partition}` }, `${topic}-${partition}`)]);
}
