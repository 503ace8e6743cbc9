// The sections of the report: their figures as images, which cannot act, and their tables.

import type { Rest, ShownTable } from "./data";
import { h, prose } from "./dom";
import { count } from "./format";
import { Grid } from "./grid";

export function sections(rest: Rest): HTMLElement {
  const all = rest.sections.filter((section) => section.tables.some((table) => table.of > 0) || section.charts.length);
  return h("section", { id: "sections", "aria-labelledby": "sections-title" },
    h("h2", { id: "sections-title" }, "Sections of the report"),
    h("p", { class: "scope" }, "Of the whole recording, whatever is selected above."),
    ...all.map((section) => {
      const place = h("div", { class: "content" });
      const details = h("details", { id: `section-${section.name}` },
        h("summary", {}, h("strong", {}, section.name), " ", ...prose(section.help)), place);
      const fill = () => {
        if (place.childElementCount) return;
        for (const chart of section.charts) {
          place.append(h("figure", {},
            h("img", { src: `data:image/svg+xml;base64,${base64(chart.svg)}`, alt: chart.title, loading: "lazy" }),
            chart.notes.length ? h("figcaption", {}, ...prose(chart.notes.join(" "))) : null));
        }
        for (const table of section.tables) if (table.of > 0 || table.notes.length) place.append(shownTable(table));
      };
      details.addEventListener("toggle", () => { if (details.open) fill(); });
      return details;
    }));
}

function shownTable(table: ShownTable): HTMLElement {
  const rows = table.columns[0]?.values.length ?? 0;
  const columns = table.columns.map((column, at) => ({
    title: column.title || column.name, unit: column.unit, wide: at === 0,
    value: (row: number) => {
      const value = column.values[row];
      return typeof value === "boolean" ? (value ? "yes" : "no") : value;
    },
  }));
  const grid = new Grid(table.title, columns, { height: 340 });
  grid.show(Array.from({ length: rows }, (_, row) => row), rows < table.of ? `first ${count(rows)} of ${count(table.of)}` : "");
  return h("div", { class: "section-table" }, h("h3", {}, table.title), grid.element,
    ...table.notes.map((note) => h("p", { class: "note" }, ...prose(note))));
}

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32768) binary += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(binary);
}
