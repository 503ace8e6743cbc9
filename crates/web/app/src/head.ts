// The top of the page: what was recorded, whether to trust it, why it failed, the key figures, and the advice.

import type { After, Recording } from "./data";
import { type Child, h, prose } from "./dom";
import { bytes, count, counted, figure, signalName, time } from "./format";
import { list } from "./process";

/** Letters of a command in a sentence. */
const NAME_MAX = 40;

export function head(recording: Recording, theme: HTMLElement): HTMLElement {
  const { run, health } = recording.head.findings;
  const subject = run.command.length ? run.command.join(" ")
    : run.scope === "system" ? "the whole machine" : "processes that were already running";
  // An imported log may say neither when nor where.
  const started = run.started_unix_ns
    ? `${new Date(run.started_unix_ns / 1e6).toISOString().replace("T", " ").slice(0, 19)} UTC` : "date not known";
  const cores = run.cores ? counted(run.cores, "core", "cores") : "";
  const machine = [run.host && `on ${run.host}`, run.kernel && `Linux ${run.kernel}`];
  const wall = `${time(run.wall_ns)} wall`;
  const facts = [ended(run), wall, cores, started, ...machine];
  return h("header", { class: "top" },
    h("div", { class: "title" }, h("h1", { title: subject.length > 100 ? subject : null }, subject), theme),
    h("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    trust(health, recording.head.findings));
}

function ended(run: any): string {
  if (!run.outcome) return run.command.length ? "end not recorded" : "";
  if (typeof run.outcome === "object") {
    const [how, number] = Object.entries(run.outcome)[0] as [string, any];
    if (how.toLowerCase() === "code" || how === "exit_code") return `exit ${number}`;
    return `killed by ${signalName(Number(number?.number ?? number))}`;
  }
  return String(run.outcome);
}

/** Of a job that failed: its end, who failed first, and what followed from that. Null of one that succeeded. */
export function failure(recording: Recording, open: (process: number) => void): HTMLElement | null {
  const { run, ends } = recording.head.findings;
  const how = ended(run);
  if (!run.outcome || how === "exit 0") return null;
  const cause = (ends?.cause ?? []) as any[];
  const who = (step: any) => {
    const process = processOf(recording, step.pid, step.time_ns);
    return process < 0 ? `${step.program} ${step.pid}` : h("button", {
      type: "button", class: "link", title: "Open this process", click: () => open(process),
    }, step.program, h("small", {}, ` ${step.pid}`));
  };
  const steps = cause.map((step, at) => h("li", {}, at > 0 && !step.is_certain ? "probably " : null, who(step), ` ${step.how}`,
    step.sent_by ? ` ${step.how.startsWith("exit ") ? "after a signal from" : "from"} ${step.sent_by}` : null,
    at === 0 && step.time_ns !== null ? ` at ${time(step.time_ns)}` : null));
  return h("section", { class: "failure", id: "failure", "aria-labelledby": "failure-title" },
    h("h2", { id: "failure-title" }, `Failed: ${how}`),
    cause.length ? h("ol", { class: "steps", "aria-label": "What failed first, and what failed because of it" }, ...steps)
      : h("p", {}, "No process that failed before it explains this."),
    cause[0]?.last_failed ? h("p", { class: "last" }, ...lastFailed(cause[0])) : null);
}

/** What the first that failed looked for last, as crates/report/src/ends.rs says it. */
function lastFailed(step: any): Child[] {
  const last = step.last_failed;
  // 127: a shell did not find the command (POSIX), or a linker not the library. If the kernel does not find the interpreter of
  // a script, that is the same error (execve(2)).
  if (step.how === "exit 127" && last.error === "ENOENT") {
    const name = last.path.slice(last.path.lastIndexOf("/") + 1);
    const or = last.call === "exec" ? " or its interpreter" : null;
    return ["Not found: ", h("code", {}, name), or, ", last tried as ", h("code", {}, last.path)];
  }
  const what = last.call === "exec" ? "Tried last: " : "Last failed look-up: ";
  return [what, h("code", {}, `${last.call} ${last.path}`), ` (${last.error}), ${time(last.before_ns)} before`];
}

/** How long the recording went on after the command, and for whom, as crates/report/src/head.rs says it. */
export function waited({ wait_ns: waitNs, last, others }: After): Child[] {
  const wait = `After the end of the command, the recording went on for ${time(waitNs)}`;
  if (!last) return [`${wait}, until the last descendant ended.`];
  const phase = last.phase === null ? ""
    : last.phase === "(before)" ? ", started before the first mark" : `, started in phase ${last.phase}`;
  const name = last.command ?? last.program;
  const more = others ? ` and ${counted(others, "other", "others")}` : "";
  return [`${wait}, ${last.life_ns === null ? "with" : "until"} `,
    h("code", { title: name.length > NAME_MAX ? name : null }, name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name),
    ` (pid ${last.pid}${phase})${more} ${last.life_ns === null ? "still running" : "ended"}.`];
}

/** The process of a pid that ended at this time: pids are used again. */
function processOf(recording: Recording, pid: number, endNs: number): number {
  const pids = recording.processes.column("pid");
  let [best, away] = [-1, Infinity];
  for (let at = 0; at < recording.n; at++) {
    const distance = Math.abs(recording.end[at] - endNs);
    if (pids[at] === pid && distance < away) [best, away] = [at, distance];
  }
  return best;
}

/** Losses, damage and failed checks, or that there are none; then what could not be seen. */
function trust(health: any, findings: any): HTMLElement {
  const alarms: string[] = [];
  if (health.recording_now) alarms.push("Still recording: the figures cover only what has been written so far.");
  else if (!health.complete) alarms.push("Incomplete: the recorder did not finish this trace.");
  for (const loss of health.losses) {
    alarms.push(`Lost: ${counted(loss.count, "record", "records")} of kind ${loss.kind} (${loss.reason})`);
  }
  for (const damage of health.damage.slice(0, 5)) alarms.push(`Damaged: ${damage}`);
  if (health.damage.length > 5) alarms.push(`Damaged: and in ${health.damage.length - 5} more places`);
  const laws = health.laws as any[];
  for (const law of laws.filter((law) => law.holds === false)) {
    alarms.push(`Check failed: ${law.says}: found ${law.found}, expected ${law.expected} ${law.unit}`);
  }
  const unchecked = laws.filter((law) => law.holds === null).map((law) => law.name);
  const good = alarms.length ? null : h("p", { class: "good" }, unchecked.length
    ? `No records lost; ${laws.length - unchecked.length} of ${laws.length} consistency checks passed (not checked: ${unchecked.join(", ")}).`
    : "No records lost; all consistency checks passed.");
  const spots = (findings.blind_spots as any[]).map((spot) => h("li", {}, ...prose(`Blind spot: ${spot.says}${spot.programs?.length ? ` (${spot.programs.join(", ")})` : ""}`)));
  const known = (findings.known as any[]).filter((one) => one.state !== "exact");
  const words: Record<string, string> = { estimate: "estimated", lower_bound: "at least", absent: "not known" };
  return h("div", { class: "trust" },
    alarms.length ? h("ul", { class: "alarm", role: "alert" }, ...alarms.map((text) => h("li", {}, text))) : null,
    good,
    spots.length ? h("ul", { class: "spots" }, ...spots) : null,
    known.length ? h("details", {},
      h("summary", {}, `${counted(known.filter((one) => one.state === "absent").length, "quantity", "quantities")} not known, `
        + `${known.filter((one) => one.state === "estimate").length} estimated, `
        + `of ${known.filter((one) => one.state === "lower_bound").length} a lower bound`),
      list(known.map((one) => [`${one.quantity.replaceAll("_", " ")}`, `${words[one.state] ?? one.state}: ${one.why ?? ""}`]))) : null);
}

export function figures(recording: Recording): HTMLElement {
  const { summary: s, run } = recording.head.findings;
  const is = (value: unknown) => value !== null && value !== undefined;
  const number = (value: number | null, write: (n: number) => string) => (is(value) ? write(value as number) : "not known");
  const share = is(s.system_low_percent)
    ? `system ${figure((100 * s.system_ns) / s.cpu_ns, "percent")} (${s.system_low_percent.toFixed(0)}-${s.system_high_percent.toFixed(0)})`
    : is(s.system_ns) ? `system ${figure((100 * s.system_ns) / Math.max(1, s.cpu_ns), "percent")}` : "system not known";
  const path = recording.head.findings.critical_path;
  const wall = run.wall_ns;
  const part = (ns: number) => `${Math.round((100 * ns) / Math.max(1, wall))} %`;
  const tiles: [string, string, string][] = [
    ["Wall time", time(wall), path ? `running ${part(path.running_ns)}, for a CPU ${part(path.waiting_for_cpu_ns)}, waiting ${part(path.waiting_ns)}` : "critical path not known"],
    ["CPU time", number(s.cpu_ns, time), `${share}${is(s.efficiency_percent) ? ` · ${s.efficiency_percent.toFixed(0)} % of ${counted(run.cores, "core", "cores")}` : ""}`],
    ["Processes", number(s.processes, count), `${number(s.threads, (n) => counted(n, "thread", "threads"))} · ${number(s.execs, (n) => counted(n, "exec", "execs"))} · median life ${number(s.median_life_ns, time)}`],
    ["Peak RSS", number(s.maxrss_bytes, bytes), `${s.maxrss_program ?? ""}${is(s.faults_major) ? ` · ${counted(s.faults_major, "major fault", "major faults")}` : ""}`],
    ["Storage", is(s.read_bytes) ? `${bytes(s.read_bytes)} read` : "not known", is(s.write_bytes) ? `${bytes(s.write_bytes)} written` : ""],
    ["Switches", is(s.switches_voluntary) ? count(s.switches_voluntary + s.switches_involuntary) : "not known",
      is(s.run_delay_ns) ? `${time(s.run_delay_ns)} spent waiting for a CPU` : ""],
    ["Failed look-ups", number(s.lookups_in_vain, count), is(s.lookups_in_vain) && s.execs ? `${figure(s.lookups_in_vain / s.execs, "count")} per exec` : ""],
  ];
  return h("section", { class: "figures", "aria-label": "Key figures" }, ...tiles.map(([title, value, more]) =>
    h("div", { class: "tile", title: more || null }, h("span", { class: "name" }, title), " ", h("strong", {}, value), " ", h("span", { class: "more" }, more))));
}

interface Gain { low: number; middle: number; high: number }

/** Advice that is shown at first: less where the window is low, so that the timeline is visible. */
const SHOWN = 3;
const LOW = 720;

export function advice(recording: Recording, find: (command: string) => void): HTMLElement {
  const { advised } = recording.head;
  const title = h("h2", { id: "advice-title" }, "Advice");
  const about = (text: string) => h("section", { id: "advice", class: "none", "aria-labelledby": "advice-title" }, title, h("p", { class: "quiet" }, text));
  if (!advised) return about("The recording lacks what predictions need: forks, execs, arguments, CPU time and waits.");
  if (!advised.advice.length) return about(`No change that proctrace knows pays more than ${advised.min_percent} %.`);
  const items = (advised.advice as any[]).map((one, at) => item(one, at + 1, advised, find));
  // What is mostly part of better advice, or may gain nothing, is shown when asked for.
  const places: number[] = advised.advice.map((_: any, at: number) => at);
  const shown = innerHeight < LOW ? 1 : SHOWN;
  const first = new Set(places.filter((at) => !advised.advice[at].part_of && isCertain(advised.advice[at])).slice(0, shown));
  const more = items.filter((_, at) => !first.has(at));
  return h("section", { id: "advice", "aria-labelledby": "advice-title" }, title,
    advised.has_path ? null : h("p", { class: "quiet" }, "The critical path is not known: gains of wall time are bounded by lifetimes only."),
    first.size ? h("ol", { class: "advice" }, ...items.filter((_, at) => first.has(at))) : null,
    more.length ? h("details", { class: "others" }, h("summary", {}, first.size ? `${more.length} more` : `${more.length} that may gain nothing`),
      h("ol", { class: "advice" }, ...more)) : null);
}

/** Whether the lower end of one of its ranges is not 0. */
function isCertain(one: any): boolean {
  return [one.wall_ns, one.cpu_ns, one.memory_bytes].some((gain: Gain | null) => gain !== null && gain.low > 0);
}

/** A piece of advice: a line, and when it is opened all that is known about it. */
function item(one: any, place: number, advised: any, find: (command: string) => void): HTMLElement {
  const gain = (of: Gain, whole: number) => (of.high === 0 ? "nothing"
    : `${time(of.middle)} (${time(of.low)} to ${time(of.high)}), ${figure((100 * of.middle) / Math.max(1, whole), "percent")}`);
  const part = (of: Gain, whole: number) => figure((100 * of.middle) / Math.max(1, whole), "percent");
  const memory = one.memory_bytes as Gain | null;
  const most = (of: Gain) => ({ ...of, middle: isCertain(one) ? of.middle : of.high });
  const [wall, cpu] = [most(one.wall_ns), most(one.cpu_ns)];
  const [saved, what] = wall.middle > 0 ? [time(wall.middle), `wall, ${part(wall, advised.wall_ns)}`]
    : cpu.middle > 0 || !memory ? [time(cpu.middle), `CPU, ${part(cpu, advised.cpu_ns)}`]
      : [bytes(most(memory).middle), "memory"];
  const rows: [string, string][] = [
    ["wall time", gain(one.wall_ns, advised.wall_ns)], ["CPU time", gain(one.cpu_ns, advised.cpu_ns)],
  ];
  if (memory) rows.push(["memory", `${bytes(memory.middle)} (${bytes(memory.low)} to ${bytes(memory.high)})`]);
  rows.push(["seen", one.evidence], ["method", one.method], ["risk", one.risk], ["check", one.check]);
  if (one.part_of) rows.push(["note", `mostly the same processes as ${one.part_of}: the gains do not add up`]);
  const commands = (one.commands as string[]).slice(0, 4).map((command) => h("button", {
    type: "button", class: "chip", title: "Search for it", click: () => find(command),
  }, command.length > 40 ? `${command.slice(0, 40)}…` : command));
  return h("li", { value: place }, h("details", { class: "item" },
    h("summary", {}, h("span", { class: "gain" }, h("strong", {}, `${isCertain(one) ? "−" : "up to "}${saved}`), ` ${what}`),
      h("span", { class: "what" }, h("span", { class: "kind" }, one.kind), " ", ...prose(one.what))),
    commands.length ? h("p", { class: "chips" }, h("span", { class: "quiet" }, "Show:"), ...commands) : null,
    list(rows.map(([name, text]) => [name, h("span", {}, ...prose(text))]))));
}
