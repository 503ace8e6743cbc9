// What is looked at: the part of the time axis, the selection, the search; shared by chart, strips and tables.

import type { Recording } from "./data";
import type { Tree } from "./tree";

export type Order = "tree" | "step" | "time" | "category";
export type Change = "window" | "selection" | "search" | "focus" | "rows" | "theme" | "hover";

/** Most processes whose tree is shown at first. */
const TREE_MAX = 3000;
/** Smallest visible span: a microsecond. */
const SPAN_MIN = 1000;

export class View {
  from = 0;
  to: number;
  selection: [number, number] | null = null;
  query = "";
  /** 1 for each process that was searched for; null without a search. */
  found: Uint8Array | null = null;
  foundCount = 0;
  onlyFound = false;
  order: Order = "tree";
  threads = false;
  path = true;
  byOutcome = false;
  /** Bar under the keyboard's focus; -1 for none. */
  focus = -1;
  hover: number | null = null;
  private readonly listeners: ((change: Change) => void)[] = [];

  /** The end of what is shown at first. Waiting for processes that outlive the command is not part of its time. */
  readonly home: number;

  constructor(readonly recording: Recording) {
    this.home = Math.min(recording.length, recording.jobEnd < recording.length ? recording.jobEnd * 1.04 : recording.length);
    this.to = this.home;
    // The tree of very many processes has rows that cannot be told apart.
    if (recording.n > TREE_MAX) this.order = "category";
    if (recording.steps && recording.steps.all.length > 1) this.order = "step";
  }

  /** The tree that is shown; null if rows are in another order. */
  get tree(): Tree | null {
    const { births, steps } = this.recording;
    return this.order === "tree" ? births : this.order === "step" ? steps!.tree : null;
  }

  /** What a row of a process is called: as the step that begins with it, if rows are steps, or as its program. */
  nameOf(process: number): string {
    const step = this.order === "step" ? this.recording.steps?.begunBy(process) : null;
    return step ?? this.recording.name(process);
  }

  on(listener: (change: Change) => void): void {
    this.listeners.push(listener);
  }

  tell(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  get span(): number {
    return this.to - this.from;
  }

  /** Shows this part of the time axis, limited to what there is. */
  look(from: number, to: number): void {
    const length = this.recording.length;
    const span = Math.min(length, Math.max(SPAN_MIN, to - from));
    if (to - from < SPAN_MIN) from = (from + to - span) / 2;
    from = Math.min(Math.max(0, from), length - span);
    if (from === this.from && from + span === this.to) return;
    this.from = from;
    this.to = from + span;
    this.tell("window");
  }

  pan(by: number): void {
    this.look(this.from + by, this.to + by);
  }

  /** Changes the span by a factor; what is at `at` stays where it is. */
  zoom(factor: number, at = (this.from + this.to) / 2): void {
    const span = Math.min(this.recording.length, Math.max(SPAN_MIN, this.span * factor));
    const from = at - ((at - this.from) / this.span) * span;
    this.look(from, from + span);
  }

  select(range: [number, number] | null): void {
    if (range) {
      const [a, b] = range[0] <= range[1] ? range : [range[1], range[0]];
      range = [Math.max(0, a), Math.min(this.recording.length, b)];
    }
    if (!range && !this.selection) return;
    this.selection = range;
    this.tell("selection");
  }

  point(time: number | null): void {
    if (time === this.hover) return;
    this.hover = time;
    this.tell("hover");
  }

  setFocus(bar: number): void {
    if (bar === this.focus) return;
    this.focus = bar;
    this.tell("focus");
  }

  /** Processes alive in the selection and found by the search, in order of birth. */
  shownProcesses(): Uint32Array {
    const { n, start, end } = this.recording;
    const [from, to] = this.selection ?? [-Infinity, Infinity];
    const rows = new Uint32Array(n);
    let length = 0;
    for (let at = 0; at < n; at++) {
      if (start[at] <= to && end[at] >= from && (!this.found || this.found[at])) rows[length++] = at;
    }
    return rows.subarray(0, length);
  }

  /** Looks for a pid, or for a part of a step's or program's name or of a command line. */
  search(query: string): void {
    this.query = query.trim();
    this.found = this.query ? this.match(this.query.toLowerCase()) : null;
    this.foundCount = this.found ? this.found.reduce((sum, one) => sum + one, 0) : 0;
    this.tell("search");
  }

  private match(query: string): Uint8Array {
    const { n, programs, program, rest, processes, steps } = this.recording;
    const found = new Uint8Array(n);
    const has = (text: string | null) => text !== null && text.toLowerCase().includes(query);
    const wanted = programs.map((one) => has(one.name) || has(one.category));
    for (let at = 0; at < n; at++) if (wanted[program[at]]) found[at] = 1;
    steps?.all.forEach((step) => { if (has(step.name)) found[step.process] = 1; });
    if (/^\d+$/.test(query)) {
      const pids = processes.column("pid");
      const pid = Number(query);
      for (let at = 0; at < n; at++) if (pids[at] === pid) found[at] = 1;
    }
    if (rest) {
      // Each string is looked at once.
      const execs = rest.table("execs");
      const [owner, line, exe] = ["process", "arguments", "exe"].map((name) => execs.column(name));
      const known = new Int8Array(rest.strings.length).fill(-1);
      const matches = (number: number) => {
        if (Number.isNaN(number)) return false;
        if (known[number] < 0) known[number] = has(rest.strings[number].replaceAll("\0", " ")) ? 1 : 0;
        return known[number] === 1;
      };
      for (let row = 0; row < execs.rows; row++) {
        if (matches(line[row]) || matches(exe[row])) found[owner[row]] = 1;
      }
    }
    return found;
  }
}
