// Sums over processes: by program, by who started what, by command line, by end, by what was missed or waited for.

import type { Recording } from "./data";
import { outcome } from "./format";
import type { Column } from "./grid";

/** Rows of a table that is computed from some processes. */
export interface Group {
  columns: Column[];
  rows: number;
  /** A process of a row, to open. */
  example?: (row: number) => number;
}

/** Groups of processes by a key. */
class Sums {
  readonly keys: number[] = [];
  readonly number = new Map<number, number>();
  readonly of: Int32Array;
  private firsts: Uint32Array | null = null;

  constructor(readonly processes: Uint32Array, key: (process: number) => number) {
    this.of = new Int32Array(processes.length);
    processes.forEach((process, at) => {
      const k = key(process);
      let group = this.number.get(k);
      if (group === undefined) {
        group = this.keys.length;
        this.number.set(k, group);
        this.keys.push(k);
      }
      this.of[at] = group;
    });
  }

  sum(values: Float64Array): Float64Array {
    const sums = new Float64Array(this.keys.length);
    this.processes.forEach((process, at) => { sums[this.of[at]] += values[process]; });
    return sums;
  }

  largest(values: Float64Array): Float64Array {
    const most = new Float64Array(this.keys.length).fill(NaN);
    this.processes.forEach((process, at) => {
      const value = values[process];
      if (!(value <= most[this.of[at]]) && !Number.isNaN(value)) most[this.of[at]] = value;
    });
    return most;
  }

  count(): Float64Array {
    const counts = new Float64Array(this.keys.length);
    for (const group of this.of) counts[group]++;
    return counts;
  }

  /** The first process of each group. */
  first(): Uint32Array {
    if (!this.firsts) {
      this.firsts = new Uint32Array(this.keys.length);
      for (let at = this.of.length - 1; at >= 0; at--) this.firsts[this.of[at]] = this.processes[at];
    }
    return this.firsts;
  }

  median(values: Float64Array): Float64Array {
    const lists: number[][] = this.keys.map(() => []);
    this.processes.forEach((process, at) => {
      if (!Number.isNaN(values[process])) lists[this.of[at]].push(values[process]);
    });
    return Float64Array.from(lists, (list) => list.sort((a, b) => a - b)[list.length >> 1] ?? NaN);
  }
}

const whole = (title: string, unit: Column["unit"], values: ArrayLike<number>, more: Partial<Column> = {}): Column =>
  ({ title, unit, value: (row) => values[row], ...more });

export function programs(recording: Recording, processes: Uint32Array, colours: string[]): Group {
  const { processes: table } = recording;
  const sums = new Sums(processes, (at) => recording.program[at]);
  const of = (row: number) => recording.programs[sums.keys[row]];
  const sum = (title: string, unit: Column["unit"], name: string) =>
    whole(title, unit, sums.sum(table.column(name)), { unknown: table.unknown(name) });
  const cpu = sums.sum(table.column("cpu_ns"));
  const all = cpu.reduce((a, b) => a + b, 0);
  return {
    rows: sums.keys.length,
    example: (row) => sums.first()[row],
    columns: [
      { title: "program", unit: "text", wide: true, value: (row) => of(row)?.name ?? null, colour: (row) => colours[of(row)?.lane ?? 0] },
      { title: "category", unit: "text", value: (row) => of(row)?.category ?? null },
      { title: "class", unit: "text", value: (row) => of(row)?.kind ?? null },
      whole("processes", "count", sums.count()),
      sum("threads", "count", "threads"),
      whole("CPU", "nanoseconds", cpu, { unknown: table.unknown("cpu_ns") }),
      { title: "of all", unit: "percent", value: (row) => (all > 0 ? (100 * cpu[row]) / all : NaN), help: "share of the CPU time of the processes shown" },
      sum("system", "nanoseconds", "system_ns"),
      whole("median life", "nanoseconds", sums.median(table.column("life_ns"))),
      whole("peak RSS", "bytes", sums.largest(table.column("peak_rss_bytes")), { unknown: table.unknown("peak_rss_bytes") }),
      sum("failed look-ups", "count", "failed_lookups"),
      sum("read", "bytes", "read_bytes"),
      sum("written", "bytes", "write_bytes"),
      sum("switches", "count", "voluntary_switches"),
    ],
  };
}

export function pairs(recording: Recording, processes: Uint32Array, colours: string[]): Group {
  const spawner = recording.processes.column("spawner");
  const many = recording.programs.length + 1;
  const started = processes.filter((at) => !Number.isNaN(spawner[at]));
  const sums = new Sums(started, (at) => (recording.canonical[spawner[at]] ?? 0) * many + recording.program[at]);
  const parent = (row: number) => recording.programs[Math.floor(sums.keys[row] / many)];
  const child = (row: number) => recording.programs[sums.keys[row] % many];
  const cpu = "cpu_ns";
  return {
    rows: sums.keys.length,
    example: (row) => sums.first()[row],
    columns: [
      { title: "parent", unit: "text", wide: true, value: (row) => parent(row)?.name ?? null, colour: (row) => colours[parent(row)?.lane ?? 0] },
      { title: "child", unit: "text", wide: true, value: (row) => child(row)?.name ?? null, colour: (row) => colours[child(row)?.lane ?? 0] },
      whole("processes", "count", sums.count()),
      whole("CPU", "nanoseconds", sums.sum(recording.processes.column(cpu)), { unknown: recording.processes.unknown(cpu) }),
      whole("median life", "nanoseconds", sums.median(recording.processes.column("life_ns"))),
    ],
  };
}

export function commands(recording: Recording, processes: Uint32Array, colours: string[]): Group {
  const { processes: table } = recording;
  const rest = recording.rest!;
  const shape = table.column("shape");
  const known = processes.filter((at) => !Number.isNaN(shape[at]));
  const sums = new Sums(known, (at) => shape[at] * recording.programs.length + recording.program[at]);
  const program = (row: number) => recording.programs[sums.keys[row] % recording.programs.length];
  return {
    rows: sums.keys.length,
    example: (row) => sums.first()[row],
    columns: [
      {
        title: "command line", unit: "text", wide: true, unknown: table.unknown("shape"),
        help: "numbers and random characters are replaced by #",
        value: (row) => rest.text(Math.floor(sums.keys[row] / recording.programs.length)),
        colour: (row) => colours[program(row)?.lane ?? 0],
      },
      { title: "program", unit: "text", value: (row) => program(row)?.name ?? null },
      whole("processes", "count", sums.count()),
      whole("CPU", "nanoseconds", sums.sum(table.column("cpu_ns")), { unknown: table.unknown("cpu_ns") }),
      whole("median life", "nanoseconds", sums.median(table.column("life_ns"))),
      whole("failed look-ups", "count", sums.sum(table.column("failed_lookups")), { unknown: table.unknown("failed_lookups") }),
    ],
  };
}

export function ends(recording: Recording, processes: Uint32Array, colours: string[]): Group {
  const status = recording.processes.column("status");
  const failed = processes.filter((at) => status[at] !== 0);
  const many = recording.programs.length;
  // 2^16 stands for an end that was not recorded.
  const sums = new Sums(failed, (at) => (Number.isNaN(status[at]) ? 65536 : status[at]) * many + recording.program[at]);
  const how = (row: number) => Math.floor(sums.keys[row] / many);
  const program = (row: number) => recording.programs[sums.keys[row] % many];
  return {
    rows: sums.keys.length,
    example: (row) => sums.first()[row],
    columns: [
      { title: "program", unit: "text", wide: true, value: (row) => program(row)?.name ?? null, colour: (row) => colours[program(row)?.lane ?? 0] },
      { title: "end", unit: "text", value: (row) => (how(row) === 65536 ? "not recorded" : outcome(how(row))) },
      whole("processes", "count", sums.count()),
      { title: "first pid", unit: "text", value: (row) => recording.pid(sums.first()[row]) },
      { title: "started by", unit: "text", value: (row) => startedBy(recording, sums.first()[row]) },
    ],
  };
}

export function startedBy(recording: Recording, process: number): string {
  return recording.programs[recording.processes.column("spawner")[process]]?.name ?? "-";
}

export function misses(recording: Recording, processes: Uint32Array): Group {
  const rest = recording.rest!;
  const table = rest.table("misses");
  const [list, directory, errno, call, counts] =
    ["list", "directory", "errno", "call", "count"].map((name) => table.column(name));
  const lists = table.rows ? list[table.rows - 1] + 1 : 0;
  const index = table.index("list", lists);
  const of = recording.processes.column("misses");
  const groups = new Map<string, { row: number; count: number; processes: number }>();
  for (const process of processes) {
    const which = of[process];
    if (Number.isNaN(which)) continue;
    for (let row = index[which]; row < index[which + 1]; row++) {
      const key = `${directory[row]} ${call[row]} ${errno[row]}`;
      let group = groups.get(key);
      if (!group) groups.set(key, (group = { row, count: 0, processes: 0 }));
      group.count += counts[row];
      group.processes++;
    }
  }
  const rows = [...groups.values()];
  const unknown = recording.processes.unknown("failed_lookups");
  return {
    rows: rows.length,
    columns: [
      { title: "directory", unit: "text", wide: true, unknown, value: (row) => rest.text(directory[rows[row].row]) },
      { title: "call", unit: "text", value: (row) => rest.text(call[rows[row].row]) },
      { title: "errno", unit: "text", value: (row) => rest.text(errno[rows[row].row]) },
      { title: "failed", unit: "count", value: (row) => rows[row].count },
      { title: "processes", unit: "count", value: (row) => rows[row].processes },
    ],
  };
}

export function waits(recording: Recording, processes: Uint32Array, colours: string[]): Group {
  const rest = recording.rest!;
  const table = rest.table("waits");
  const [what, counts, asleep, cpu, longest] =
    ["waits_for", "count", "asleep_ns", "cpu_wait_ns", "longest_ns"].map((name) => table.column(name));
  const groups = new Map<string, { program: number; what: number; count: number; asleep: number; cpu: number; longest: number; process: number }>();
  for (const process of processes) {
    const [from, to] = rest.rowsOf("waits", process);
    for (let row = from; row < to; row++) {
      const key = `${recording.program[process]} ${what[row]}`;
      let group = groups.get(key);
      if (!group) {
        group = { program: recording.program[process], what: what[row], count: 0, asleep: 0, cpu: 0, longest: -1, process };
        groups.set(key, group);
      }
      group.count += counts[row];
      group.asleep += asleep[row];
      group.cpu += cpu[row];
      if (longest[row] > group.longest) [group.longest, group.process] = [longest[row], process];
    }
  }
  const rows = [...groups.values()];
  return {
    rows: rows.length,
    example: (row) => rows[row].process,
    columns: [
      {
        title: "program", unit: "text", wide: true, unknown: table.unknown("count"),
        value: (row) => recording.programs[rows[row].program]?.name ?? null,
        colour: (row) => colours[recording.programs[rows[row].program]?.lane ?? 0],
      },
      { title: "waits for", unit: "text", value: (row) => rest.text(rows[row].what) },
      { title: "times", unit: "count", value: (row) => rows[row].count },
      { title: "asleep", unit: "nanoseconds", value: (row) => rows[row].asleep },
      { title: "then for a CPU", unit: "nanoseconds", value: (row) => rows[row].cpu },
      { title: "longest", unit: "nanoseconds", value: (row) => rows[row].longest },
    ],
  };
}

/** The critical path within a time, by program and what it did. */
export function path(recording: Recording, found: Uint8Array | null, range: [number, number], colours: string[]): Group {
  const rest = recording.rest!;
  const table = rest.table("path");
  const [owner, begin, length, doing] = ["process", "begin_ns", "length_ns", "doing"].map((name) => table.column(name));
  const groups = new Map<string, { process: number; doing: number; ns: number; parts: number; longest: number }>();
  let all = 0;
  for (let row = 0; row < table.rows; row++) {
    const process = owner[row];
    if (Number.isNaN(process) || (found && !found[process])) continue;
    const ns = Math.min(range[1], begin[row] + length[row]) - Math.max(range[0], begin[row]);
    if (ns <= 0) continue;
    const key = `${recording.program[process]} ${doing[row]}`;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { process, doing: doing[row], ns: 0, parts: 0, longest: -1 }));
    group.ns += ns;
    group.parts++;
    all += ns;
    if (ns > group.longest) [group.longest, group.process] = [ns, process];
  }
  const rows = [...groups.values()];
  const program = (row: number) => recording.programs[recording.program[rows[row].process]];
  return {
    rows: rows.length,
    example: (row) => rows[row].process,
    columns: [
      {
        title: "program", unit: "text", wide: true, unknown: table.unknown("process"),
        value: (row) => program(row)?.name ?? null, colour: (row) => colours[program(row)?.lane ?? 0],
      },
      { title: "doing", unit: "text", value: (row) => rest.text(rows[row].doing) },
      { title: "time on the path", unit: "nanoseconds", value: (row) => rows[row].ns },
      { title: "of it", unit: "percent", value: (row) => (100 * rows[row].ns) / all },
      { title: "parts", unit: "count", value: (row) => rows[row].parts },
      { title: "longest", unit: "nanoseconds", value: (row) => rows[row].longest },
    ],
  };
}
