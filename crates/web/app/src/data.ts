// The recording: two containers of packed columns in the page, as crates/web/src/payload.rs writes them.

import type { Unit } from "./format";
import { type Step, Steps, Tree } from "./tree";

interface ColumnHead { name: string; ascending: boolean; unknown: string | null; blob: number }
interface TableHead { name: string; rows: number; columns: ColumnHead[] }
interface Container { header: any; part(number: number): Uint8Array }

async function open(id: string): Promise<Container> {
  const element = document.getElementById(id)!;
  const text = atob(element.textContent!.replace(/\s+/g, ""));
  // Not needed any more, and large.
  element.remove();
  const packed = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) packed[at] = text.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const offsets = [4 + length];
  for (const part of header.blobs as number[]) offsets.push(offsets[offsets.length - 1] + part);
  return { header, part: (number) => bytes.subarray(offsets[number], offsets[number + 1]) };
}

/** LEB128 integers, 0 for a missing value: crates/findings/src/page.rs. */
export function decode(bytes: Uint8Array, rows: number, ascending: boolean): Float64Array {
  const out = new Float64Array(rows);
  let at = 0;
  let last = 0;
  for (let row = 0; row < rows; row++) {
    let byte = bytes[at++];
    let value = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = bytes[at++];
      value += (byte & 127) * scale;
    }
    if (value === 0) {
      out[row] = NaN;
    } else if (ascending) {
      value -= 1;
      last += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      out[row] = last;
    } else {
      out[row] = value - 1;
    }
  }
  return out;
}

/** A table whose columns are unpacked when they are first asked for. */
export class Table {
  readonly rows: number;
  private readonly packed = new Map<string, [ColumnHead, Uint8Array]>();
  private readonly columns = new Map<string, Float64Array>();

  constructor(head: TableHead, from: Container) {
    this.rows = head.rows;
    this.extend(head, from);
  }

  extend(head: TableHead, from: Container): void {
    for (const column of head.columns) this.packed.set(column.name, [column, from.part(column.blob)]);
  }

  has(name: string): boolean {
    return this.packed.has(name);
  }

  /** Why a column is not known; null if it is. */
  unknown(name: string): string | null {
    return this.packed.get(name)?.[0].unknown ?? null;
  }

  column(name: string): Float64Array {
    let values = this.columns.get(name);
    if (!values) {
      const packed = this.packed.get(name);
      if (!packed || packed[0].unknown !== null) values = new Float64Array(this.rows).fill(NaN);
      else values = decode(packed[1], this.rows, packed[0].ascending);
      this.columns.set(name, values);
    }
    return values;
  }

  /** For a table ordered by a column: the first row of each value below `n`, and the end. */
  index(name: string, n: number): Uint32Array {
    const keys = this.column(name);
    const first = new Uint32Array(n + 1);
    for (let row = 0; row < keys.length; row++) if (keys[row] < n) first[keys[row] + 1]++;
    for (let key = 0; key < n; key++) first[key + 1] += first[key];
    return first;
  }
}

export interface Lane { name: string; colour: string | null; rest: boolean; processes: number; threads: number }
export interface Strip {
  title: string; unit: Unit; by_lane: boolean; limit: { at: number; name: string } | null;
  unknown: string | null; series: { name: string; values: Float32Array }[];
}
export interface Program { name: string; category: string; kind: string; lane: number }
export interface ShownTable {
  name: string; title: string; notes: string[]; of: number;
  columns: { name: string; title: string; unit: Unit; values: (number | string | boolean | null)[] }[];
}
export interface Section {
  name: string; help: string; tables: ShownTable[];
  charts: { name: string; title: string; notes: string[]; svg: Uint8Array }[];
}

/** As crates/findings/src/lib.rs has it. */
export interface After {
  wait_ns: number; others: number;
  last: { pid: number; program: string; command: string | null; phase: string | null; life_ns: number | null } | null;
}

/** What is there at first: enough for the picture. */
export class Recording {
  readonly head: any;
  readonly length: number;
  /** The wait for processes that outlived the command; null if it is not noticeable. */
  readonly after: After | null;
  /** When the command ended; the end of the recording, if nothing was waited for. */
  readonly jobEnd: number;
  readonly lanes: Lane[];
  /** Moments that the payload named, in order of time. */
  readonly marks: [number, string][];
  readonly programs: Program[];
  /** The first program with the same name, category and class as each. */
  readonly canonical: Uint32Array;
  readonly strips: Strip[];
  readonly edges: Float64Array;
  readonly processes: Table;
  /** Number of processes; the arrays below have one value for each, in order of birth. */
  readonly n: number;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly program: Uint32Array;
  readonly lane: Uint8Array;
  /** -1 for none. */
  readonly parent: Int32Array;
  /** Who started whom. */
  readonly births: Tree;
  /** null if there are none. */
  readonly steps: Steps | null;
  rest: Rest | null = null;

  constructor(from: Container) {
    this.head = from.header;
    this.length = this.head.length_ns;
    const { run } = this.head.findings;
    this.after = run.after ?? null;
    this.jobEnd = this.after && run.wall_ns !== null ? Math.min(run.wall_ns, this.length) : this.length;
    this.lanes = this.head.lanes;
    this.marks = this.head.marks;
    this.programs = this.head.programs.map((row: any[]) => (
      { name: row[0] ?? "-", category: row[1] ?? "-", kind: row[2] ?? "-", lane: row[3] ?? 0 }
    ));
    // Programs that rules tell apart but that are named the same are one here.
    const same = new Map<string, number>();
    this.canonical = Uint32Array.from(this.programs, (one, at) => {
      const key = `${one.name}\n${one.category}\n${one.kind}`;
      if (!same.has(key)) same.set(key, at);
      return same.get(key)!;
    });
    const floats = (bytes: Uint8Array) => bytes.slice().buffer;
    this.edges = new Float64Array(floats(from.part(this.head.edges)));
    this.strips = this.head.strips.map((strip: any) => ({
      ...strip,
      series: strip.series.map((one: any) => (
        { name: one.name, values: new Float32Array(floats(from.part(one.blob))) }
      )),
    }));
    this.processes = new Table(this.head.tables[0], from);
    this.n = this.processes.rows;
    this.start = this.processes.column("start_ns");
    const life = this.processes.column("life_ns");
    this.end = new Float64Array(this.n);
    this.program = Uint32Array.from(this.processes.column("program"), (at) => this.canonical[at] ?? at);
    this.lane = new Uint8Array(this.n);
    this.parent = new Int32Array(this.n);
    const back = this.processes.column("parent");
    for (let at = 0; at < this.n; at++) {
      // One that was alive at the end has a bar to the end.
      this.end[at] = Number.isNaN(life[at]) ? this.length : Math.min(this.length, this.start[at] + life[at]);
      this.lane[at] = this.programs[this.program[at]]?.lane ?? 0;
      this.parent[at] = back[at] > 0 ? at - back[at] : -1;
    }
    this.births = new Tree(this.parent);
    const steps: Step[] = this.head.steps.map(([name, process, parent]: [string, number, number | null]) => ({ name, process, parent }));
    const of = () => Int32Array.from(this.processes.column("step"), (step) => (Number.isNaN(step) ? -1 : step));
    this.steps = steps.length ? new Steps(steps, of(), this.parent) : null;
  }

  name(at: number): string {
    return this.programs[this.program[at]]?.name ?? "-";
  }

  pid(at: number): string {
    const pid = this.processes.column("pid")[at];
    return Number.isNaN(pid) ? "-" : String(pid);
  }

  /** Whether its end was recorded. */
  ended(at: number): boolean {
    return !Number.isNaN(this.processes.column("life_ns")[at]);
  }
}

/** What comes a moment later: arguments, accounting, look-ups, waits, sections. */
export class Rest {
  readonly strings: string[];
  readonly sections: Section[];
  readonly leftOut: { what: string; shown: number; of: number }[];
  private readonly tables = new Map<string, Table>();
  private readonly indices = new Map<string, Uint32Array>();

  constructor(from: Container, private readonly recording: Recording) {
    this.sections = from.header.sections.map((section: any) => ({
      ...section, charts: section.charts.map((chart: any) => ({ ...chart, svg: from.part(chart.svg) })),
    }));
    this.leftOut = from.header.left_out;
    const text = new TextDecoder().decode(from.part(from.header.strings));
    this.strings = text.split("\n");
    for (const head of from.header.tables as TableHead[]) {
      if (head.name === "processes") recording.processes.extend(head, from);
      else this.tables.set(head.name, new Table(head, from));
    }
  }

  table(name: string): Table {
    return this.tables.get(name)!;
  }

  /** A string by number; null for NaN. */
  text(number: number): string | null {
    return this.strings[number] ?? null;
  }

  /** The rows of a process in a table that is ordered by process. */
  rowsOf(name: string, process: number): [number, number] {
    let index = this.indices.get(name);
    if (!index) {
      index = this.table(name).index("process", this.recording.n);
      this.indices.set(name, index);
    }
    return [index[process], index[process + 1]];
  }

  /** The arguments of the program that a process ran last, or null. */
  command(process: number): string | null {
    // One that never called exec runs the program of the nearest ancestor that did.
    for (let at = process; at >= 0; at = this.recording.parent[at]) {
      const [from, to] = this.rowsOf("execs", at);
      if (to > from) return this.line(this.table("execs").column("arguments")[to - 1]);
    }
    return null;
  }

  /** Arguments in one line. */
  line(number: number): string | null {
    const text = this.text(number);
    return text === null ? null : text.split("\0").map(quoted).join(" ");
  }
}

/** An argument as a shell would take it. */
export function quoted(argument: string): string {
  if (/^[\w@%+=:,./-]+$/.test(argument)) return argument;
  return `'${argument.replaceAll("'", "'\\''")}'`;
}

export async function openFirst(): Promise<Recording> {
  return new Recording(await open("first"));
}

export async function openRest(recording: Recording): Promise<Rest> {
  recording.rest = new Rest(await open("rest"), recording);
  return recording.rest;
}
