// Numbers, sizes and times as they are shown. Digits are grouped by the style sheet, so that what is copied is the number alone.

import { el } from "./dom.js";

/** A whole number, digits grouped. A string has more than 2^53 of it. */
export function number(value) {
  if (value === null || value === undefined) return none();
  const text = String(typeof value === "number" ? Math.round(value) : value);
  const sign = text.startsWith("-") ? "-" : "";
  const digits = text.slice(sign.length);
  if (digits.length < 4 || !/^\d+$/.test(digits)) return el("span", { class: "n" }, text);
  const groups = [];
  for (let end = digits.length; end > 0; end -= 3) groups.unshift(digits.slice(Math.max(0, end - 3), end));
  return el("span", { class: "n" }, sign, groups.map((group, place) => (place ? el("i", {}, group) : group)));
}

/** A whole number as text, where no element can be: digits grouped by narrow spaces. */
export function grouped(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** What stands for a number that is not known. */
export function none(title = "not known") {
  return el("span", { class: "none", title }, "–");
}

/** A rate: one digit behind the point where it is small. */
export function rate(value) {
  if (value === null || value === undefined) return none();
  return value < 100 && value !== Math.round(value) ? el("span", { class: "n" }, value.toFixed(1)) : number(value);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Bytes as text: 1.5 MiB. */
export function sizeText(bytes) {
  let value = Number(bytes);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const shown = unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1);
  return `${shown} ${UNITS[unit]}`;
}

/** Bytes, with the exact number in the title. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return none("other brokers have it");
  return el("span", { class: "n", title: `${bytes} bytes` }, sizeText(bytes));
}

/** Seconds as text: 4.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function spanText(seconds) {
  const whole = Math.round(seconds);
  if (seconds < 10) return `${Number(seconds).toFixed(1)} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Seconds, with the exact number in the title. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return none();
  return el("span", { class: "n", title: `${seconds} seconds` }, spanText(seconds));
}

const two = (part) => String(part).padStart(2, "0");

/** The local time of a day in text, with seconds. */
export function clockText(ms) {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function dayText(date) {
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** A time of Kafka's, milliseconds since 1970: local, with UTC in the title. */
export function time(ms) {
  if (ms === null || ms === undefined || Number(ms) < 0) return none("the record has no time");
  const date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return el("span", { class: "n", title: "no date that a browser can show" }, String(ms));
  const utc = date.toISOString();
  return el("time", { class: "n", datetime: utc, title: `${utc.replace("T", " ").replace("Z", "")} UTC` },
    el("span", { class: "day" }, `${dayText(date)} `), `${clockText(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`);
}

/** "1 topic", "2 topics". */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${Number(count) === 1 ? one : many}`;
}
