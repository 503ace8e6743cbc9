// The page of a process.

import type { Recording } from "./data";
import { quoted } from "./data";
import { announce, h, replace, swatch } from "./dom";
import { count, outcome, shown, time, type Unit } from "./format";
import { copyText } from "./grid";
import type { Colours } from "./theme";

const LISTED = 50;

/** What is shown of a process besides its figures. */
const COUNTS: [string, string, Unit][] = [["execs", "execs", "count"], ["threads", "threads besides the first", "count"]];

const HELP: Record<string, string> = {
  cpu_ns: "exact",
  user_ns: "estimated from pooled ticks; not reliable for a single short process",
  system_ns: "estimated from pooled ticks; not reliable for a single short process",
};

export class ProcessPage {
  readonly element = h("aside", { id: "process", role: "dialog", "aria-labelledby": "process-title", tabindex: "-1", hidden: true });
  private returnTo: HTMLElement | null = null;
  shown = -1;

  constructor(
    private readonly recording: Recording, private colours: Colours,
    private readonly go: (process: number | null) => void, private readonly reveal: (process: number) => void,
  ) {
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.go(null);
    });
  }

  recolour(colours: Colours): void {
    this.colours = colours;
    if (this.shown >= 0) this.show(this.shown);
  }

  hide(): void {
    if (this.shown < 0) return;
    this.shown = -1;
    this.element.hidden = true;
    document.body.classList.remove("with-process");
    this.returnTo?.focus();
  }

  show(process: number): void {
    const { recording } = this;
    if (this.shown < 0) this.returnTo = document.activeElement as HTMLElement | null;
    this.shown = process;
    const name = recording.name(process);
    const close = h("button", { type: "button", class: "close", "aria-label": "Close", click: () => this.go(null) }, "×");
    const reveal = h("button", { type: "button", click: () => this.reveal(process) }, "Show in the chart");
    const subtree = h("button", { type: "button", click: () => this.go(this.recording.parent[process]), disabled: recording.parent[process] < 0 }, "Parent");
    replace(this.element,
      h("header", {},
        h("h2", { id: "process-title" }, swatch(this.colours.lanes[recording.lane[process]]), `${name} `, h("small", {}, `pid ${recording.pid(process)}`)),
        close),
      h("p", { class: "buttons" }, reveal, subtree),
      this.life(process),
      ...(recording.rest
        ? [this.execs(process), this.relatives(process), this.account(process), this.waits(process), this.misses(process),
          this.environment(process)]
        : [h("p", { class: "quiet" }, "Unpacking…")]));
    this.element.hidden = false;
    document.body.classList.add("with-process");
    this.element.scrollTop = 0;
    this.element.focus();
    announce(`${name}, pid ${recording.pid(process)}`);
  }

  private life(process: number): HTMLElement {
    const { recording } = this;
    const { processes, rest } = recording;
    const rows: [string, string | Node][] = [
      ["started", `${time(recording.start[process])} after the beginning`],
      ["lived", recording.ended(process) ? time(recording.end[process] - recording.start[process]) : "alive at the end of the recording"],
      ["ended", recording.ended(process) ? outcome(processes.column("status")[process]) : "-"],
    ];
    const step = recording.steps?.around(process);
    if (step) rows.push(["step", step]);
    const role = rest?.text(processes.column("role")[process]);
    if (role) rows.push(["role", role]);
    if (rest && processes.column("detached")[process] === 1) rows.push(["detached", "it outlived its parent"]);
    if (rest) rows.push(...this.signals(process));
    return list(rows);
  }

  private signals(process: number): [string, string | Node][] {
    const rest = this.recording.rest!;
    const table = rest.table("signals");
    const [owner, at, signal, sender, name] =
      ["process", "time_ns", "signal", "sender", "sender_name"].map((column) => table.column(column));
    const rows: [string, string | Node][] = [];
    for (let row = 0; row < table.rows; row++) {
      if (owner[row] !== process) continue;
      const from = Number.isNaN(sender[row]) ? rest.text(name[row]) || "not known" : this.link(sender[row]);
      rows.push(["signal", h("span", {}, `${rest.text(signal[row])} at ${time(at[row])} from `, from)]);
    }
    return rows;
  }

  private link(process: number): HTMLElement {
    const { recording } = this;
    return h("a", { href: `#process-${process}` }, `${recording.name(process)} ${recording.pid(process)}`);
  }

  private execs(process: number): HTMLElement {
    const rest = this.recording.rest!;
    const table = rest.table("execs");
    const [at, line, cwd, exe, interpreter, here] =
      ["time_ns", "arguments", "cwd", "exe", "interpreter", "happened_here"].map((column) => table.column(column));
    const [from, to] = rest.rowsOf("execs", process);
    const parts: HTMLElement[] = [];
    for (let row = from; row < Math.min(to, from + LISTED); row++) {
      const text = rest.text(line[row]);
      const words = text?.split("\0") ?? [];
      const command = h("code", { class: "command" });
      words.forEach((word, index) => command.append(h("span", {}, quoted(word)), index + 1 < words.length ? " " : ""));
      if (text === null) command.textContent = table.unknown("arguments") ? `arguments not known: ${table.unknown("arguments")}` : "-";
      const facts: [string, string][] = [
        ["file", rest.text(exe[row]) || "-"], ["directory", rest.text(cwd[row]) || "-"],
      ];
      const through = rest.text(interpreter[row]);
      if (through) facts.push(["interpreter", through]);
      facts.push(["at", here[row] === 0 ? "before the recording began" : time(at[row])]);
      const copy = h("button", { type: "button", click: () => copyText(words.map(quoted).join(" "), "command copied") }, "Copy");
      parts.push(h("div", { class: "exec" }, command, text === null ? null : copy, list(facts)));
    }
    if (to === from) {
      const inherited = rest.command(process);
      parts.push(h("p", {}, "It never called exec and ran its parent's program",
        inherited ? h("code", { class: "command" }, inherited) : "."));
    }
    return part(to - from > 1 ? `Executed, ${first(to - from)}` : "Executed", ...parts);
  }

  private relatives(process: number): HTMLElement {
    const { recording } = this;
    const { children, below: descendants } = recording.births;
    const reaper = recording.processes.column("reaper")[process];
    const above: Node[] = [];
    for (let at = recording.parent[process]; at >= 0 && above.length < 40; at = recording.parent[at]) {
      above.unshift(h("li", {}, this.link(at)));
    }
    const rows: [string, string | Node][] = [
      ["ancestors", above.length ? h("ol", { class: "chain" }, ...above) : "none recorded"],
    ];
    if (reaper > 0 && process - reaper !== recording.parent[process]) rows.push(["adopted by", this.link(process - reaper)]);
    const [from, to] = [children.first[process], children.first[process + 1]];
    const below = [...children.of.subarray(from, Math.min(to, from + LISTED))].map((at) => h("li", {}, this.link(at),
      h("span", { class: "quiet" }, ` ${time(recording.end[at] - recording.start[at])}`)));
    rows.push([`children, ${first(to - from)}`, below.length ? h("ul", { class: "chain" }, ...below) : "none"]);
    if (descendants[process] > to - from) rows.push(["descendants", count(descendants[process])]);
    return part("Relatives", list(rows));
  }

  private account(process: number): HTMLElement {
    const { processes, head } = this.recording;
    const figures = head.figures as [string, string, Unit][];
    return part("Accounting", list([...figures, ...COUNTS].map(([name, title, unit]) => {
      const why = processes.unknown(name);
      const value = processes.column(name)[process];
      return [title, h("span", { title: why ? `not known: ${why}` : HELP[name] ?? null }, why ? "not known" : shown(value, unit))];
    })));
  }

  private waits(process: number): HTMLElement {
    const rest = this.recording.rest!;
    const table = rest.table("waits");
    const [from, to] = rest.rowsOf("waits", process);
    const why = table.unknown("count");
    if (why) return part("Waits", h("p", { class: "quiet" }, `Not known: ${why}.`));
    if (from === to) return part("Waits", h("p", { class: "quiet" }, "None of at least the recorded length."));
    const [what, times, asleep, cpu, longest, waker] =
      ["waits_for", "count", "asleep_ns", "cpu_wait_ns", "longest_ns", "waker"].map((column) => table.column(column));
    const rows = [];
    for (let row = from; row < to; row++) {
      rows.push([rest.text(what[row]) ?? "-", count(times[row]), time(asleep[row]), time(cpu[row]), time(longest[row]),
        Number.isNaN(waker[row]) ? "-" : this.link(waker[row])]);
    }
    return part("Waits", small(["for", "times", "asleep", "then for a CPU", "longest", "ended by"], rows));
  }

  private misses(process: number): HTMLElement {
    const { recording } = this;
    const rest = recording.rest!;
    const table = rest.table("misses");
    const why = recording.processes.unknown("failed_lookups");
    if (why) return part("Failed look-ups", h("p", { class: "quiet" }, `Not known: ${why}.`));
    const total = recording.processes.column("failed_lookups")[process];
    const which = recording.processes.column("misses")[process];
    if (!(total > 0)) return part("Failed look-ups", h("p", { class: "quiet" }, "None."));
    if (Number.isNaN(which)) return part("Failed look-ups", h("p", { class: "quiet" }, `${count(total)}; the directories are left out of this page.`));
    const [list, directory, errno, call, counts] =
      ["list", "directory", "errno", "call", "count"].map((column) => table.column(column));
    const rows = [];
    let listed = 0;
    for (let row = lower(list, which); row < table.rows && list[row] === which; row++) {
      rows.push([count(counts[row]), rest.text(call[row]) ?? "-", rest.text(errno[row]) ?? "-", rest.text(directory[row]) ?? "-"]);
      listed += counts[row];
    }
    const note = listed < total ? h("p", { class: "quiet" }, `The directories with most: ${count(listed)} of ${count(total)}.`) : null;
    return part(`Failed look-ups, ${count(total)}`, small(["failed", "call", "errno", "directory"], rows), note);
  }

  private environment(process: number): HTMLElement {
    const rest = this.recording.rest!;
    const execs = rest.table("execs");
    const [, to] = rest.rowsOf("execs", process);
    const [from] = rest.rowsOf("execs", process);
    const which = to > from ? execs.column("environment")[to - 1] : NaN;
    if (Number.isNaN(which)) return part("Environment", h("p", { class: "quiet" }, "Not recorded for this process."));
    const table = rest.table("variables");
    const [owner, name, value] = ["environment", "name", "value"].map((column) => table.column(column));
    const rows: [string, string][] = [];
    for (let row = lower(owner, which); row < table.rows && owner[row] === which; row++) {
      rows.push([rest.text(name[row]) ?? "-", rest.text(value[row]) ?? "-"]);
    }
    return part("Environment, recorded variables", list(rows, "environment"));
  }
}

/** The first row of an ascending column with at least this value. */
function lower(values: Float64Array, wanted: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

function first(of: number): string {
  return of > LISTED ? `first ${LISTED} of ${count(of)}` : count(of);
}

function part(title: string, ...content: (Node | null)[]): HTMLElement {
  return h("section", {}, h("h3", {}, title), ...content);
}

export function list(rows: [string, string | Node][], kind = ""): HTMLElement {
  const all = h("dl", { class: kind });
  for (const [name, value] of rows) all.append(h("dt", {}, name), h("dd", {}, value));
  return all;
}

function small(titles: string[], rows: (string | Node)[][]): HTMLElement {
  return h("div", { class: "small" }, h("table", {},
    h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value) => h("td", {}, value)))))));
}
