// Which bar is in which row. Bars are the processes and, if they are shown, their threads.

import type { Recording } from "./data";
import type { Tree } from "./tree";
import type { View } from "./view";

export interface Rows {
  /** Number of rows. */
  count: number;
  /** Bars, threads included. */
  start: Float64Array;
  end: Float64Array;
  /** The process of each bar. */
  process: Uint32Array;
  /** The row of each bar; -1 if it is not shown. */
  rowOf: Int32Array;
  /** The bars of a row: `bars[first[row]]` to `bars[first[row + 1]]`, in order of their start. */
  first: Uint32Array;
  bars: Uint32Array;
  /** The bar after which a row is named. */
  head: Uint32Array;
  /** How deep in the tree a bar is. */
  depth: Uint16Array;
  /** Bars that are drawn within the row of a folded ancestor. */
  nested: Uint8Array;
  longest: number;
}

export function isThread(recording: Recording, bar: number): boolean {
  return bar >= recording.n;
}

export function rowsOf(view: View): Rows {
  const { recording } = view;
  const threads = view.threads ? recording.rest?.table("threads") ?? null : null;
  const bars = recording.n + (threads?.rows ?? 0);
  const start = new Float64Array(bars);
  const end = new Float64Array(bars);
  const process = new Uint32Array(bars);
  start.set(recording.start);
  end.set(recording.end);
  for (let at = 0; at < recording.n; at++) process[at] = at;
  if (threads) {
    const [owner, born, life] = ["process", "start_ns", "life_ns"].map((name) => threads.column(name));
    for (let row = 0, bar = recording.n; row < threads.rows; row++, bar++) {
      process[bar] = owner[row];
      start[bar] = born[row];
      const ended = born[row] + life[row];
      end[bar] = Math.min(recording.length, Number.isNaN(ended) ? recording.end[owner[row]] : ended);
    }
  }
  const made = { start, end, process, rowOf: new Int32Array(bars).fill(-1), depth: new Uint16Array(bars) };
  const nested = new Uint8Array(bars);
  const shown = shownIn(view);
  const firstThread = threads ? threads.index("process", recording.n) : null;
  const count =
    view.order === "category" ? packed(view, shown, made, bars)
    : view.tree ? inTree(view.tree, shown, made, nested, firstThread)
    : byBirth(shown, made, bars);
  return { ...made, nested, ...index(made, count, bars), count };
}

type Made = Pick<Rows, "start" | "end" | "process" | "rowOf" | "depth">;

/** Processes that have a row: all, or those that were found, in the tree with their ancestors. */
function shownIn(view: View): Uint8Array {
  const { n } = view.recording;
  if (!view.onlyFound || !view.found) return new Uint8Array(n).fill(1);
  const shown = view.found.slice();
  const parent = view.tree?.parent;
  if (parent) {
    for (let at = n - 1; at >= 0; at--) if (shown[at] && parent[at] >= 0) shown[parent[at]] = 1;
  }
  return shown;
}

/** Children below their parent; the descendants of a folded process are in its row. */
function inTree(tree: Tree, shown: Uint8Array, made: Made, nested: Uint8Array, threads: Uint32Array | null): number {
  const { parent, children } = tree;
  const n = parent.length;
  let row = 0;
  const stack: number[] = [];
  const place = (root: number) => {
    stack.push(root);
    while (stack.length) {
      const at = stack.pop()!;
      const above = parent[at];
      const inFold = above >= 0 && (nested[above] === 1 || tree.isWithin(at));
      made.depth[at] = above >= 0 ? Math.min(65535, made.depth[above] + 1) : 0;
      if (shown[at]) {
        nested[at] = inFold ? 1 : 0;
        made.rowOf[at] = inFold ? made.rowOf[above] : row++;
        if (threads && !inFold) {
          for (let t = threads[at]; t < threads[at + 1]; t++) {
            made.depth[n + t] = made.depth[at] + 1;
            made.rowOf[n + t] = row++;
          }
        }
      }
      for (let c = children.first[at + 1] - 1; c >= children.first[at]; c--) stack.push(children.of[c]);
    }
  };
  for (let at = 0; at < n; at++) if (parent[at] < 0) place(at);
  return row;
}

function byBirth(shown: Uint8Array, made: Made, bars: number): number {
  const order: number[] = [];
  for (let bar = 0; bar < bars; bar++) if (shown[made.process[bar]]) order.push(bar);
  if (bars > shown.length) order.sort((a, b) => made.start[a] - made.start[b] || a - b);
  order.forEach((bar, row) => { made.rowOf[bar] = row; });
  return order.length;
}

/** By category; bars that do not overlap share a row. */
function packed(view: View, shown: Uint8Array, made: Made, bars: number): number {
  const { lanes, lane } = view.recording;
  const of: number[][] = lanes.map(() => []);
  for (let bar = 0; bar < bars; bar++) if (shown[made.process[bar]]) of[lane[made.process[bar]]]?.push(bar);
  let base = 0;
  for (const bars of of) {
    bars.sort((a, b) => made.start[a] - made.start[b] || a - b);
    // Rows by the end of their last bar: a heap, so that the row that is free first is at its top.
    const heap: number[] = [];
    const ends: number[] = [];
    for (const bar of bars) {
      let row: number;
      if (heap.length && ends[heap[0]] <= made.start[bar]) {
        row = heap[0];
        ends[row] = made.end[bar];
        sink(heap, ends);
      } else {
        row = ends.length;
        ends.push(made.end[bar]);
        heap.push(row);
        rise(heap, ends);
      }
      made.rowOf[bar] = base + row;
    }
    base += ends.length;
  }
  return base;
}

function sink(heap: number[], key: number[]): void {
  for (let at = 0; ;) {
    let least = at;
    for (const child of [2 * at + 1, 2 * at + 2]) {
      if (child < heap.length && key[heap[child]] < key[heap[least]]) least = child;
    }
    if (least === at) return;
    [heap[at], heap[least]] = [heap[least], heap[at]];
    at = least;
  }
}

function rise(heap: number[], key: number[]): void {
  for (let at = heap.length - 1; at > 0;) {
    const up = (at - 1) >> 1;
    if (key[heap[up]] <= key[heap[at]]) return;
    [heap[at], heap[up]] = [heap[up], heap[at]];
    at = up;
  }
}

/** The bars of each row. Bars of one row are in order of birth already. */
function index(made: Made, count: number, bars: number): Pick<Rows, "first" | "bars" | "head" | "longest"> {
  const first = new Uint32Array(count + 1);
  for (let bar = 0; bar < bars; bar++) if (made.rowOf[bar] >= 0) first[made.rowOf[bar] + 1]++;
  let longest = 0;
  for (let row = 0; row < count; row++) {
    longest = Math.max(longest, first[row + 1]);
    first[row + 1] += first[row];
  }
  const next = first.slice();
  const of = new Uint32Array(first[count]);
  for (let bar = 0; bar < bars; bar++) if (made.rowOf[bar] >= 0) of[next[made.rowOf[bar]]++] = bar;
  const head = new Uint32Array(count);
  for (let row = 0; row < count; row++) head[row] = of[first[row]];
  return { first, bars: of, head, longest };
}
