// Trees of processes, with what is folded in them: by birth, and by steps of a workflow.

const ALL = 1;
const NOT_STEPS = 2;

export class Tree {
  readonly children: { first: Uint32Array; of: Uint32Array };
  /** Number of descendants. */
  readonly below: Uint32Array;
  /** For a process whose descendants are in its row: all of them (ALL), or those that lead to no step (NOT_STEPS). */
  readonly folded: Uint8Array;
  /** What the user has chosen to be folded. */
  choice = "none";

  /** `parent` is -1 for none, and otherwise comes before its children; `leads` is 1 if a step begins with a process or below it. */
  constructor(readonly parent: Int32Array, readonly leads: Uint8Array | null = null) {
    const n = parent.length;
    this.children = childrenOf(parent);
    this.folded = new Uint8Array(n);
    this.below = new Uint32Array(n);
    for (let at = n - 1; at > 0; at--) if (parent[at] >= 0) this.below[parent[at]] += this.below[at] + 1;
  }

  /** Whether a process is in the row of the one above it, if that has a row. */
  isWithin(at: number): boolean {
    const above = this.parent[at];
    if (above < 0) return false;
    return this.folded[above] === ALL || (this.folded[above] === NOT_STEPS && !this.leads?.[at]);
  }

  /** Number of processes that are folded into the row of this one; 0 if steps below it have rows of their own. */
  hidden(at: number): number {
    if (this.folded[at] === 0) return 0;
    const { first, of } = this.children;
    const hasSteps = () => of.subarray(first[at], first[at + 1]).some((child) => this.leads?.[child] === 1);
    return this.folded[at] === NOT_STEPS && hasSteps() ? 0 : this.below[at];
  }

  /** Folds what is at this depth or below; 0 folds nothing. */
  foldBelow(level: number): void {
    const { parent, folded } = this;
    folded.fill(0);
    if (!level) return;
    const depth = new Uint32Array(parent.length);
    for (let at = 0; at < parent.length; at++) {
      depth[at] = parent[at] >= 0 ? depth[parent[at]] + 1 : 0;
      if (depth[at] >= level) folded[at] = ALL;
    }
  }
}

function childrenOf(parent: Int32Array): { first: Uint32Array; of: Uint32Array } {
  const n = parent.length;
  const first = new Uint32Array(n + 2);
  for (let at = 0; at < n; at++) if (parent[at] >= 0) first[parent[at] + 2]++;
  for (let at = 0; at < n; at++) first[at + 2] += first[at + 1];
  const of = new Uint32Array(n);
  for (let at = 0; at < n; at++) if (parent[at] >= 0) of[first[parent[at] + 1]++] = at;
  return { first, of };
}

/** A unit of work of the program that coordinates the job. `process` is its first one. */
export interface Step { name: string; process: number; parent: number | null }

/** Steps of a recording, and which process belongs to which. */
export class Steps {
  readonly tree: Tree;
  private readonly at = new Map<number, number[]>();

  /** `of` has the innermost step of each process, -1 for none; `parent` those who started them. */
  constructor(readonly all: Step[], readonly of: Int32Array, parent: Int32Array) {
    all.forEach(({ process }, step) => {
      const known = this.at.get(process);
      if (known) known.push(step);
      else this.at.set(process, [step]);
    });
    const n = parent.length;
    const above = parent.slice();
    for (let at = 0; at < n; at++) {
      // What a shell starts after a mark is not below the process that made the mark.
      const first = of[at] >= 0 ? all[of[at]].process : at;
      if (first < at && (parent[at] < 0 || !this.isWithin(of[parent[at]], of[at]))) above[at] = first;
    }
    this.leaveOutWrappers(above);
    this.tree = new Tree(above, this.leading(above));
    this.tree.choice = "steps";
    this.fold();
  }

  /** 1 for a process with which a step begins, or below which one does. */
  private leading(parent: Int32Array): Uint8Array {
    const leads = new Uint8Array(parent.length);
    for (const { process } of this.all) leads[process] = 1;
    for (let at = parent.length - 1; at >= 0; at--) if (leads[at] && parent[at] >= 0) leads[parent[at]] = 1;
    return leads;
  }

  /** A process that is no step and leads to one only, such as time(1), does not come between it and the coordinator. */
  private leaveOutWrappers(parent: Int32Array): void {
    const leads = this.leading(parent);
    const ways = new Uint32Array(parent.length);
    for (let at = 0; at < parent.length; at++) if (leads[at] && parent[at] >= 0) ways[parent[at]]++;
    const isWrapper = (at: number) => parent[at] >= 0 && ways[at] === 1 && !this.at.has(at);
    for (let at = 0; at < parent.length; at++) {
      if (leads[at]) while (parent[at] >= 0 && isWrapper(parent[at])) parent[at] = parent[parent[at]];
    }
  }

  /** Leaves a row for each step and for what leads to it. */
  fold(): void {
    this.tree.folded.fill(NOT_STEPS);
  }

  /** The names of the steps that begin with a process, outermost first; null if none does. */
  begunBy(process: number): string | null {
    return this.at.get(process)?.map((step) => this.all[step].name).join(" › ") ?? null;
  }

  /** The names of the steps that a process belongs to, outermost first; null if to none. */
  around(process: number): string | null {
    const names: string[] = [];
    for (let step: number | null = this.of[process]; step !== null && step >= 0; step = this.all[step].parent) {
      names.unshift(this.all[step].name);
    }
    return names.length ? names.join(" › ") : null;
  }

  /** Whether a step is another one or a part of it. */
  private isWithin(step: number, whole: number): boolean {
    for (let at: number | null = step; at !== null && at >= 0; at = this.all[at].parent) if (at === whole) return true;
    return false;
  }
}
