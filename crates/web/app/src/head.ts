// The top of the page: what was recorded, whether to trust it, the key figures, and the advice.

import type { Recording } from "./data";
import { h } from "./dom";
import { bytes, count, counted, figure, time } from "./format";
import { list } from "./process";

export function head(recording: Recording, theme: HTMLElement): HTMLElement {
  const { run, health } = recording.head.findings;
  const subject = run.command.length ? run.command.join(" ")
    : run.scope === "system" ? "the whole machine" : "processes that were already running";
  // An imported log may say neither when nor where.
  const started = run.started_unix_ns
    ? `${new Date(run.started_unix_ns / 1e6).toISOString().replace("T", " ").slice(0, 19)} UTC` : "date not known";
  const cores = run.cores ? counted(run.cores, "core", "cores") : "";
  const machine = [run.host && `on ${run.host}`, run.kernel && `Linux ${run.kernel}`];
  const wall = run.recorded_ns > run.wall_ns + run.wall_ns / 50 + 2e7
    ? `${time(run.wall_ns)} wall (${time(run.recorded_ns)} with descendants)` : `${time(run.wall_ns)} wall`;
  const facts = [wall, cores, ended(run), started, ...machine];
  return h("header", { class: "top" },
    h("div", { class: "title" }, h("h1", {}, subject), theme),
    h("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    trust(health, recording.head.findings));
}

function ended(run: any): string {
  if (!run.outcome) return run.command.length ? "end not recorded" : "";
  if (typeof run.outcome === "object") {
    const [how, number] = Object.entries(run.outcome)[0];
    return how.toLowerCase() === "code" || how === "exit_code" ? `exit ${number}` : `killed by signal ${number}`;
  }
  return String(run.outcome);
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
  const spots = (findings.blind_spots as any[]).map((spot) => h("li", {}, `Blind spot: ${spot.says}${spot.programs?.length ? ` (${spot.programs.join(", ")})` : ""}`));
  const known = (findings.known as any[]).filter((one) => one.state !== "exact");
  const words: Record<string, string> = { estimate: "estimated", lower_bound: "at least", absent: "not known" };
  return h("div", { class: "trust" },
    alarms.length ? h("ul", { class: "alarm", role: "alert" }, ...alarms.map((text) => h("li", {}, text))) : null,
    good,
    spots.length ? h("ul", { class: "spots" }, ...spots) : null,
    known.length ? h("details", {},
      h("summary", {}, `${counted(known.filter((one) => one.state === "absent").length, "quantity is", "quantities are")} not known, `
        + `${known.filter((one) => one.state !== "absent").length} estimated or lower bounds`),
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
  const part = (ns: number) => figure((100 * ns) / Math.max(1, wall), "percent");
  const tiles: [string, string, string][] = [
    ["Wall time", time(wall), path ? `running ${part(path.running_ns)}, waiting for a CPU ${part(path.waiting_for_cpu_ns)}, waiting ${part(path.waiting_ns)}` : "critical path not known"],
    ["CPU time", number(s.cpu_ns, time), `${share}${is(s.efficiency_percent) ? ` · ${s.efficiency_percent.toFixed(0)} % of ${counted(run.cores, "core", "cores")}` : ""}`],
    ["Processes", number(s.processes, count), `${number(s.threads, (n) => counted(n, "thread", "threads"))} · ${number(s.execs, (n) => counted(n, "exec", "execs"))} · median life ${number(s.median_life_ns, time)}`],
    ["Peak RSS", number(s.maxrss_bytes, bytes), `${s.maxrss_program ?? ""}${is(s.faults_major) ? ` · ${counted(s.faults_major, "major fault", "major faults")}` : ""}`],
    ["Storage", is(s.read_bytes) ? `${bytes(s.read_bytes)} read` : "not known", is(s.write_bytes) ? `${bytes(s.write_bytes)} written` : ""],
    ["Switches", is(s.switches_voluntary) ? count(s.switches_voluntary + s.switches_involuntary) : "not known",
      is(s.run_delay_ns) ? `${time(s.run_delay_ns)} spent waiting for a CPU` : ""],
    ["Failed look-ups", number(s.lookups_in_vain, count), is(s.lookups_in_vain) && s.execs ? `${figure(s.lookups_in_vain / s.execs, "count")} per exec` : ""],
  ];
  return h("section", { class: "figures", "aria-label": "Key figures" }, ...tiles.map(([title, value, more]) =>
    h("div", { class: "tile" }, h("span", { class: "name" }, title), h("strong", {}, value), h("span", { class: "more" }, more))));
}

interface Gain { low: number; middle: number; high: number }

const SHOWN = 3;

export function advice(recording: Recording, find: (command: string) => void): HTMLElement {
  const { advised } = recording.head;
  const title = h("h2", { id: "advice-title" }, "Advice");
  const about = (text: string) => h("section", { id: "advice", "aria-labelledby": "advice-title" }, title, h("p", { class: "quiet" }, text));
  if (!advised) return about("The recording lacks what predictions need: forks, execs, arguments, CPU time and waits.");
  if (!advised.advice.length) return about(`Nothing here pays more than ${advised.min_percent} %.`);
  const cards = (advised.advice as any[]).map((one, at) => card(one, at + 1, advised, find));
  // What is mostly part of better advice comes after what is not.
  const first = new Set(advised.advice.map((_: any, at: number) => at).filter((at: number) => !advised.advice[at].part_of).slice(0, SHOWN));
  const more = cards.filter((_, at) => !first.has(at));
  return h("section", { id: "advice", "aria-labelledby": "advice-title" }, title,
    advised.has_path ? null : h("p", { class: "quiet" }, "The critical path is not known: gains of wall time are bounded by lifetimes only."),
    h("ol", { class: "cards" }, ...cards.filter((_, at) => first.has(at))),
    more.length ? h("details", { class: "others" }, h("summary", {}, `${more.length} more`), h("ol", { class: "cards" }, ...more)) : null);
}

function card(one: any, place: number, advised: any, find: (command: string) => void): HTMLElement {
  const gain = (of: Gain, whole: number) => (of.high === 0 ? "nothing"
    : `${time(of.middle)} (${time(of.low)} to ${time(of.high)}), ${figure((100 * of.middle) / Math.max(1, whole), "percent")}`);
  const [of, whole, what]: [Gain, number, string] = one.wall_ns.middle > 0
    ? [one.wall_ns, advised.wall_ns, "wall time"] : [one.cpu_ns, advised.cpu_ns, "CPU time"];
  const rows: [string, string | Node][] = [
    ["wall time", gain(one.wall_ns, advised.wall_ns)], ["CPU time", gain(one.cpu_ns, advised.cpu_ns)],
    ["seen", one.evidence], ["method", one.method], ["risk", one.risk], ["check", one.check],
  ];
  if (one.part_of) rows.push(["note", `mostly the same processes as ${one.part_of}: the gains do not add up`]);
  const commands = (one.commands as string[]).slice(0, 4).map((command) => h("button", {
    type: "button", class: "chip", title: "Search for it", click: () => find(command),
  }, command.length > 40 ? `${command.slice(0, 40)}…` : command));
  return h("li", { class: "card", value: place },
    h("p", { class: "gain" }, h("strong", {}, `−${time(of.middle)}`), ` ${what} · ${figure((100 * of.middle) / Math.max(1, whole), "percent")}`),
    h("p", { class: "what" }, h("span", { class: "kind" }, one.kind), ` ${one.what}`),
    commands.length ? h("p", { class: "chips" }, ...commands) : null,
    h("details", {}, h("summary", {}, "Evidence, method and risk"), list(rows)));
}
