// Text of JSON in colours, and bytes as a dump.

import { el } from "./dom.js";

const TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;
const BYTES_A_LINE = 16;

/** JSON as nodes: names, strings, numbers and words told apart. */
export function json(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(TOKENS)) {
    const [all, string, colon, word] = found;
    nodes.push(text.slice(from, found.index));
    from = found.index + all.length;
    if (string) nodes.push(el("span", { class: colon ? "j-name" : "j-string" }, string), colon ?? "");
    else nodes.push(el("span", { class: word ? "j-word" : "j-number" }, all));
  }
  nodes.push(text.slice(from));
  return el("code", {}, nodes);
}

/** Bytes, given as hexadecimal digits, sixteen a line with their place and their letters. */
export function dump(hex) {
  const bytes = hex.match(/../g) ?? [];
  const lines = [];
  for (let at = 0; at < bytes.length; at += BYTES_A_LINE) {
    const row = bytes.slice(at, at + BYTES_A_LINE);
    const letters = row.map((each) => letter(parseInt(each, 16))).join("");
    lines.push(
      el("span", { class: "dim" }, at.toString(16).padStart(6, "0")),
      `  ${row.slice(0, 8).join(" ")}  ${row.slice(8).join(" ")}`.padEnd(BYTES_A_LINE * 3 + 4),
      el("span", { class: "dim" }, letters), "\n");
  }
  return el("code", {}, lines);
}

function letter(byte) {
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·";
}
