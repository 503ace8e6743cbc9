// Trees of processes, with what is folded in them: by birth, and by steps of a workflow.

export class Tree {
  readonly children: { first: Uint32Array; of: Uint32Array };
  /** Number of descendants. */
  readonly below: Uint32Array;
  /** 1 for a process whose descendants are in its row. */
  readonly folded: Uint8Array;
  /** What the user has chosen to be folded. */
  choice = "none";

  /** `parent` is -1 for none, and otherwise comes before its children; `inner` is 1 for those that never have a row of their own. */
  constructor(readonly parent: Int32Array, readonly inner: Uint8Array | null = null) {
    const n = parent.length;
    this.children = childrenOf(parent);
    this.folded = new Uint8Array(n);
    this.below = new Uint32Array(n);
    for (let at = n - 1; at > 0; at--) if (parent[at] >= 0) this.below[parent[at]] += this.below[at] + 1;
  }

  /** Whether a process is in the row of the one above it, if that has a row. */
  isWithin(at: number): boolean {
    const above = this.parent[at];
    return above >= 0 && (this.folded[above] === 1 || this.inner?.[at] === 1);
  }

  /** Folds what is at this depth or below; 0 folds nothing. */
  foldBelow(level: number): void {
    const { parent, folded } = this;
    folded.fill(0);
    if (!level) return;
    const depth = new Uint32Array(parent.length);
    for (let at = 0; at < parent.length; at++) {
      depth[at] = parent[at] >= 0 ? depth[parent[at]] + 1 : 0;
      if (depth[at] >= level) folded[at] = 1;
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
    // Others have a row if there are steps below them.
    const inner = new Uint8Array(n);
    const holds = new Uint8Array(n);
    for (let at = n - 1; at >= 0; at--) {
      if (of[at] >= 0) holds[at] = 1;
      inner[at] = holds[at] ? 0 : 1;
      if (holds[at] && above[at] >= 0) holds[above[at]] = 1;
    }
    this.tree = new Tree(above, inner);
    this.tree.choice = "steps";
    this.fold();
  }

  /** Folds each step. */
  fold(): void {
    this.tree.folded.fill(0);
    for (const { process } of this.all) this.tree.folded[process] = 1;
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
