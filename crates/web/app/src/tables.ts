// The tables below the chart, one at a time, of the processes in the selection.

import type { Recording } from "./data";
import { h, replace } from "./dom";
import { count, outcome, time } from "./format";
import { type Column, Grid } from "./grid";
import { commands, ends, type Group, misses, pairs, path, programs, startedBy, waits } from "./groups";
import type { Colours } from "./theme";
import type { View } from "./view";

interface Tab {
  name: string; title: string; sort: number;
  /** What the figures mean where processes are selected. */
  note?: string;
  group: (processes: Uint32Array) => Group;
}

export class Tables {
  readonly element: HTMLElement;
  private readonly scope = h("p", { class: "scope", role: "status" });
  private readonly place = h("div", { role: "tabpanel", id: "tables-panel", tabindex: "-1" });
  private readonly buttons: HTMLButtonElement[];
  private active = 0;
  grid: Grid | null = null;

  constructor(
    private readonly recording: Recording, private readonly view: View, private colours: Colours,
    private readonly open: (process: number) => void,
  ) {
    this.buttons = TABS(this).map((tab, at) => h("button", {
      type: "button", role: "tab", id: `tab-${tab.name}`, "aria-controls": "tables-panel",
      click: () => this.show(at),
    }, tab.title));
    const list = h("div", { role: "tablist", "aria-label": "Tables", class: "tabs" }, ...this.buttons);
    list.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      this.show((this.active + by + this.buttons.length) % this.buttons.length);
      this.buttons[this.active].focus();
      event.preventDefault();
    });
    this.element = h("section", { id: "tables", "aria-labelledby": "tables-title" },
      h("h2", { id: "tables-title" }, "Tables"), this.scope, list, this.place);
    this.show(0);
  }

  recolour(colours: Colours): void {
    this.colours = colours;
    this.refresh();
  }

  private show(at: number): void {
    this.active = at;
    this.buttons.forEach((button, index) => {
      button.setAttribute("aria-selected", String(index === at));
      button.tabIndex = index === at ? 0 : -1;
    });
    this.place.setAttribute("aria-labelledby", this.buttons[at].id);
    this.refresh();
  }

  /** Of the processes that are selected now. */
  refresh(): void {
    const { recording, view } = this;
    if (!recording.rest) {
      replace(this.place, h("p", { class: "quiet" }, "Unpacking…"));
      return;
    }
    const processes = view.shownProcesses();
    const parts = [];
    if (view.selection) {
      parts.push(`alive between ${time(view.selection[0])} and ${time(view.selection[1])}`);
    }
    if (view.found) parts.push(`found by “${view.query}”`);
    replace(this.scope, parts.length
      ? `${count(processes.length)} of ${count(recording.n)} processes: ${parts.join(", ")}. Their figures are of their whole lives.`
      : `All ${count(recording.n)} processes. Select a time in the strips, or search, to see fewer.`);
    const tab = TABS(this)[this.active];
    const group = tab.group(processes);
    const why = group.columns.find((column) => column.unknown)?.unknown;
    if (why && group.rows === 0) {
      this.grid = null;
      replace(this.place, h("p", { class: "quiet" }, `Not known: ${why}.`));
      return;
    }
    const grid = new Grid(tab.title, group.columns, {
      sort: tab.sort, ascending: tab.name === "processes",
      open: group.example ? (row) => this.open(group.example!(row)) : undefined,
    });
    grid.show(Uint32Array.from({ length: group.rows }, (_, row) => row), tab.note);
    this.grid = grid;
    replace(this.place, grid.element);
  }

  lanes(): string[] {
    return this.colours.lanes;
  }

  range(): [number, number] {
    return this.view.selection ?? [0, this.recording.length];
  }

  /** The table of processes themselves. */
  processes(processes: Uint32Array): Group {
    const { recording, colours } = this;
    const { processes: table, rest } = recording;
    const of = (row: number) => processes[row];
    const number = (title: string, unit: Column["unit"], name: string, help?: string): Column => {
      const values = table.column(name);
      return { title, unit, value: (row) => values[of(row)], unknown: table.unknown(name), help };
    };
    const status = table.column("status");
    return {
      rows: processes.length,
      example: of,
      columns: [
        { title: "start", unit: "nanoseconds", value: (row) => recording.start[of(row)] },
        { title: "pid", unit: "text", value: (row) => recording.pid(of(row)) },
        {
          title: "program", unit: "text", value: (row) => recording.name(of(row)),
          colour: (row) => colours.lanes[recording.lane[of(row)]],
        },
        { title: "command line", unit: "text", wide: true, value: (row) => rest!.command(of(row)) },
        number("life", "nanoseconds", "life_ns", "- if it was alive at the end"),
        number("CPU", "nanoseconds", "cpu_ns"),
        { title: "end", unit: "text", value: (row) => outcome(status[of(row)]) },
        { title: "started by", unit: "text", value: (row) => startedBy(recording, of(row)) },
        number("threads", "count", "threads"),
        number("execs", "count", "execs"),
        number("failed look-ups", "count", "failed_lookups"),
        number("peak RSS", "bytes", "peak_rss_bytes"),
        number("waited for a CPU", "nanoseconds", "run_delay_ns"),
        number("read", "bytes", "read_bytes"),
        number("written", "bytes", "write_bytes"),
      ],
    };
  }

  get data(): Recording {
    return this.recording;
  }

  get found(): Uint8Array | null {
    return this.view.found;
  }
}

function TABS(of: Tables): Tab[] {
  const { data } = of;
  return [
    { name: "programs", title: "Programs", sort: 5, group: (p) => programs(data, p, of.lanes()) },
    { name: "processes", title: "Processes", sort: 0, group: (p) => of.processes(p) },
    { name: "commands", title: "Command lines", sort: 2, group: (p) => commands(data, p, of.lanes()) },
    { name: "pairs", title: "Who starts whom", sort: 2, group: (p) => pairs(data, p, of.lanes()) },
    { name: "path", title: "Critical path", sort: 2, group: () => path(data, of.found, of.range(), of.lanes()) },
    { name: "waits", title: "Waits", sort: 3, group: (p) => waits(data, p, of.lanes()) },
    {
      name: "misses", title: "Failed look-ups", sort: 3, group: (p) => misses(data, p),
      note: "of each process the 20 directories with most",
    },
    { name: "ends", title: "Failures", sort: 2, group: (p) => ends(data, p, of.lanes()) },
  ];
}
