// A table of which only the visible rows are in the document: sorts, filters, copies.

import { announce, h, replace, swatch } from "./dom";
import { count, shown, type Unit } from "./format";

export interface Column {
  title: string;
  unit: Unit;
  /** A number, a string, or null (or NaN) where it is not known. */
  value: (row: number) => number | string | null;
  /** How it is written, if not after its unit. */
  text?: (row: number) => string;
  colour?: (row: number) => string;
  /** Takes the space that the others leave. */
  wide?: boolean;
  /** Why none of its values is known. */
  unknown?: string | null;
  help?: string;
}

const ROW = 27;
const COPY_MAX = 100_000;
const PRINTED = 60;

export class Grid {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly scroller: HTMLElement;
  private readonly status = h("span", { class: "status", role: "status" });
  private readonly headers: HTMLTableCellElement[] = [];
  private readonly table: HTMLTableElement;
  private all: ArrayLike<number> = [];
  private rows: Uint32Array = new Uint32Array(0);
  private sortBy: number;
  private descending: boolean;
  private filter = "";
  private drawnFrom = -1;
  private focusRow = 0;
  private note = "";

  constructor(
    name: string, private readonly columns: Column[], options: {
      sort?: number; ascending?: boolean; open?: (row: number) => void; height?: number;
    } = {},
  ) {
    this.sortBy = options.sort ?? -1;
    this.descending = !options.ascending;
    const head = h("tr", {}, ...columns.map((column, at) => this.header(column, at)));
    this.table = h("table", { "aria-label": name, class: "grid" }, h("thead", {}, head), this.body);
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": `${name}, rows` }, this.table);
    if (options.height) this.scroller.style.maxHeight = `${options.height}px`;
    const filter = h("input", {
      type: "search", placeholder: "Filter rows", "aria-label": `Filter rows of ${name}`, spellcheck: "false",
      input: (event: Event) => {
        this.filter = (event.target as HTMLInputElement).value.toLowerCase();
        this.refresh();
      },
    });
    const copy = h("button", { type: "button", click: () => this.copy() }, "Copy");
    this.element = h("div", { class: "table" }, h("div", { class: "bar" }, filter, this.status, copy), this.scroller);
    this.scroller.addEventListener("scroll", () => this.draw());
    const open = options.open;
    if (open) {
      this.table.classList.add("opens");
      this.body.addEventListener("click", (event) => {
        const row = (event.target as Element).closest("tr")?.dataset.row;
        if (row !== undefined && !getSelection()?.toString()) open(Number(row));
      });
    }
    this.scroller.addEventListener("keydown", (event) => this.key(event, open));
    new ResizeObserver(() => this.draw(true)).observe(this.scroller);
  }

  private header(column: Column, at: number): HTMLTableCellElement {
    const help = column.unknown ? `not known: ${column.unknown}` : column.help ?? null;
    const button = h("button", { type: "button", title: help, click: () => this.sort(at) }, column.title);
    const numeric = !["text", "list", "figure"].includes(column.unit);
    const cell = h("th", { scope: "col", class: `${numeric ? "number" : ""}${column.wide ? " wide" : ""}` }, button);
    this.headers.push(cell);
    return cell;
  }

  /** Shows these rows. */
  show(rows: ArrayLike<number>, note = ""): void {
    this.all = rows;
    this.note = note;
    this.refresh();
  }

  private sort(at: number): void {
    if (this.sortBy === at) this.descending = !this.descending;
    else {
      this.sortBy = at;
      this.descending = !["text", "list"].includes(this.columns[at].unit);
    }
    this.refresh();
    announce(`sorted by ${this.columns[at].title}, ${this.descending ? "descending" : "ascending"}`);
  }

  private text(column: Column, row: number): string {
    return column.text ? column.text(row) : shown(column.value(row), column.unit);
  }

  private refresh(): void {
    let rows = Uint32Array.from(this.all);
    if (this.filter) {
      const texts = this.columns.filter((column) => ["text", "list", "figure"].includes(column.unit));
      const wanted = this.filter;
      rows = rows.filter((row) => texts.some((column) => this.text(column, row).toLowerCase().includes(wanted)));
    }
    const column = this.columns[this.sortBy];
    if (column) rows = sorted(rows, column, this.descending);
    this.rows = rows;
    this.headers.forEach((cell, at) => {
      if (at === this.sortBy) cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    const of = this.all.length;
    this.status.textContent =
      (rows.length === of ? `${count(of)} ${of === 1 ? "row" : "rows"}` : `${count(rows.length)} of ${count(of)} rows`) +
      (this.note ? ` · ${this.note}` : "");
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.focusRow = Math.min(this.focusRow, Math.max(0, rows.length - 1));
    this.draw(true);
  }

  private draw(always = false): void {
    const { scroller, rows } = this;
    const room = Math.max(10, Math.ceil((scroller.clientHeight || 400) / ROW) + 12);
    const from = Math.max(0, Math.min(Math.floor(scroller.scrollTop / ROW) - 5, rows.length - room));
    if (!always && Math.abs(from - this.drawnFrom) < 4 && from !== 0) return;
    this.drawnFrom = from;
    const to = Math.min(rows.length, from + room);
    this.fill(from, to);
  }

  private fill(from: number, to: number): void {
    const filler = (height: number) => {
      const row = h("tr", { class: "filler", "aria-hidden": "true" });
      row.style.height = `${height}px`;
      return row;
    };
    const made: HTMLElement[] = [];
    if (from > 0) made.push(filler(from * ROW));
    for (let at = from; at < to; at++) made.push(this.row(at));
    if (to < this.rows.length) made.push(filler((this.rows.length - to) * ROW));
    replace(this.body, ...made);
  }

  private row(at: number): HTMLElement {
    const row = this.rows[at];
    const cells = this.columns.map((column) => {
      const text = this.text(column, row);
      const numeric = !["text", "list", "figure"].includes(column.unit);
      const long = !numeric && text.length > 24;
      return h("td", { class: `${numeric ? "number" : ""}${column.wide ? " wide" : ""}`, title: long ? text.slice(0, 2000) : null },
        column.colour && swatch(column.colour(row)), text);
    });
    const made = h("tr", { "aria-rowindex": at + 2, "data-row": row }, ...cells);
    if (at === this.focusRow) made.classList.add("current");
    return made;
  }

  private key(event: KeyboardEvent, open?: (row: number) => void): void {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[event.key];
    if (by !== undefined) {
      this.focusRow = Math.max(0, Math.min(this.rows.length - 1, this.focusRow + by));
      const top = this.focusRow * ROW;
      const { scroller } = this;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (top + 3 * ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + 3 * ROW - scroller.clientHeight;
      this.draw(true);
      const row = this.rows[this.focusRow];
      if (row !== undefined) announce(this.columns.map((c) => `${c.title} ${this.text(c, row)}`).join(", "));
      event.preventDefault();
    } else if (event.key === "Enter" && open && this.rows[this.focusRow] !== undefined) {
      open(this.rows[this.focusRow]);
      event.preventDefault();
    }
  }

  /** All rows, with tabs between the cells. */
  private copy(): void {
    const lines = [this.columns.map((column) => column.title).join("\t")];
    const rows = this.rows.subarray(0, COPY_MAX);
    for (const row of rows) lines.push(this.columns.map((column) => cell(this.text(column, row))).join("\t"));
    copyText(`${lines.join("\n")}\n`, `${count(rows.length)} rows copied`);
  }

  /** More rows than are visible, for paper. */
  print(): void {
    this.fill(0, Math.min(this.rows.length, PRINTED));
    this.body.querySelector(".filler")?.remove();
  }

  unprint(): void {
    this.draw(true);
  }
}

/** A cell that a spreadsheet does not take for a formula. */
export function cell(text: string): string {
  const plain = text.replaceAll("\t", " ");
  const formula = /^'*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(plain) && plain !== "-" && Number.isNaN(Number(plain));
  return formula ? `'${plain}` : plain;
}

export function copyText(text: string, done: string): void {
  const old = () => {
    const area = h("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    announce(done);
  };
  if (!navigator.clipboard) return old();
  navigator.clipboard.writeText(text).then(() => announce(done), old);
}

function sorted(rows: Uint32Array<ArrayBuffer>, column: Column, descending: boolean): Uint32Array<ArrayBuffer> {
  const sign = descending ? -1 : 1;
  if (["text", "list", "figure"].includes(column.unit) && typeof firstKnown(rows, column) === "string") {
    const texts = new Map<number, string>();
    for (const row of rows) texts.set(row, String(column.value(row) ?? ""));
    const collator = new Intl.Collator("en", { numeric: true });
    return rows.sort((a, b) => sign * collator.compare(texts.get(a)!, texts.get(b)!) || a - b);
  }
  let largest = 0;
  for (const row of rows) largest = Math.max(largest, row);
  const keys = new Float64Array(largest + 1);
  for (const row of rows) {
    const value = column.value(row);
    // What is not known comes last.
    keys[row] = typeof value === "number" && !Number.isNaN(value) ? sign * value : Infinity;
  }
  return rows.sort((a, b) => keys[a] - keys[b] || a - b);
}

function firstKnown(rows: Uint32Array, column: Column): number | string | null {
  for (const row of rows) {
    const value = column.value(row);
    if (value !== null) return value;
  }
  return null;
}
