// Figures of the benchmarks: CPU and memory of processes, percentiles, and their output.
import { readFileSync } from 'node:fs';

/** Returns the private memory of a process, bytes: anonymous pages only, because other processes share files and shared pages. */
export function privateBytes(pid) {
  const found = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found?.[1]) * 1024;
}

/** Returns the CPU time of a process, s. */
export function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export function percentiles(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]);
  return { n: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: round(sorted.at(-1)) };
}

export const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

export const round = (value) => Math.round(value * 100) / 100;

export const report = (figures) => console.log(JSON.stringify(figures));
