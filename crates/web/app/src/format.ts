// Numbers for people, as crates/findings/src/number.rs writes them.

export type Unit =
  | "text" | "list" | "figure" | "count" | "nanoseconds" | "bytes" | "percent" | "per_second" | "cores"
  | "ratio" | "coefficient" | "flag";

export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

export function counted(n: number, one: string, many: string): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function bytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  let unit = 0;
  while (n >= 999.5 && unit + 1 < units.length) {
    n /= 1000;
    unit++;
  }
  return `${unit === 0 || n >= 99.95 ? n.toFixed(0) : n.toFixed(1)} ${units[unit]}`;
}

export function time(ns: number): string {
  const s = ns / 1e9;
  if (ns === 0) return "0 s";
  if (ns < 999_500) return `${(s * 1e6).toFixed(0)} µs`;
  if (ns < 99_950_000) return `${(s * 1e3).toFixed(1)} ms`;
  if (ns < 999_500_000) return `${(s * 1e3).toFixed(0)} ms`;
  if (s < 9.995) return `${s.toFixed(2)} s`;
  if (s < 99.95) return `${s.toFixed(1)} s`;
  const whole = Math.round(s);
  const [hours, minutes, seconds] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  return hours === 0 ? `${minutes} min ${two(seconds)} s` : `${hours} h ${two(minutes)} min`;
}

function digits(n: number): string {
  const size = Math.abs(n);
  if (size === 0) return "0";
  if (size < 0.095) return n.toFixed(3);
  if (size < 0.95) return n.toFixed(2);
  if (size < 99.5) return n.toFixed(1);
  if (size < 1e15) return (n < 0 ? "-" : "") + count(size);
  return n.toExponential(2);
}

export function figure(n: number, unit: Unit): string {
  const sign = n < 0 ? "-" : "";
  const size = Math.abs(n);
  switch (unit) {
    case "nanoseconds": return sign + time(Math.round(size));
    case "bytes": return sign + bytes(Math.round(size));
    case "percent": return `${digits(n)} %`;
    case "per_second": return `${digits(n)}/s`;
    case "coefficient": return size < 0.005 ? "0.00" : (n > 0 ? "+" : "") + n.toFixed(2);
    case "ratio": return size >= 99.5 ? digits(n) : n.toFixed(3);
    case "count": return Number.isInteger(n) && size < 1e15 ? sign + count(size) : digits(n);
    default: return digits(n);
  }
}

/** A value of any kind; "-" where it is not known. */
export function shown(value: number | string | boolean | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || (typeof value === "number" && Number.isNaN(value))) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  return unit === "text" ? String(value) : figure(value, unit);
}

/** A point on the time axis, with the digits that an axis of this step needs. */
export function moment(ns: number, step: number): string {
  const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / 1e9) - 1e-9)));
  const s = ns / 1e9;
  if (s >= 600 && step >= 1e9) {
    const whole = Math.round(s);
    const two = (n: number) => String(n).padStart(2, "0");
    const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
    return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)} min`;
  }
  return `${s.toFixed(decimals)} s`;
}

/** A step of 1, 2 or 5 times a power of ten (or of whole minutes) that divides a span into about n parts. */
export function niceStep(span: number, n: number): number {
  const raw = Math.max(1, span / Math.max(1, n));
  for (const minutes of [1, 2, 5, 10, 30, 60, 120, 360, 1440]) {
    const step = minutes * 60e9;
    if (raw > 20e9 && raw <= step) return step;
  }
  const power = 10 ** Math.floor(Math.log10(raw));
  for (const factor of [1, 2, 5, 10]) if (raw <= factor * power) return factor * power;
  return 10 * power;
}

/** How a process ended, from its wait(2) status. */
export function outcome(status: number): string {
  if (Number.isNaN(status)) return "-";
  const signal = status & 0x7f;
  if (signal) return `${signalName(signal)}${status & 0x80 ? ", core dump" : ""}`;
  return `exit ${(status >> 8) & 0xff}`;
}

const SIGNALS =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG " +
  "XCPU XFSZ VTALRM PROF WINCH IO PWR SYS";

export function signalName(signal: number): string {
  const name = SIGNALS.split(" ")[signal - 1];
  return name ? `SIG${name}` : `signal ${signal}`;
}
