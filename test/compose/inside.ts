// Looks from inside a container: at privileges, limits, and the addresses that the container reaches.
import type { ComposeStack } from './compose-stack.ts';

export interface Contained {
  /** The different values of the effective, permitted and bounding capabilities, in hexadecimal. */
  readonly capabilities: readonly string[];
  readonly noNewPrivileges: boolean;
  readonly rootCanBeWritten: boolean;
  readonly tmpCanBeWritten: boolean;
  /** `undefined` if there is no limit. */
  readonly pids: number | undefined;
  readonly memoryBytes: number | undefined;
  readonly cpus: number | undefined;
}

/** Reads the limits of cgroups v1 and v2. */
const LOOK = `grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs):' /proc/1/status
touch /written 2>/dev/null && echo root: yes
touch /tmp/written 2>/dev/null && echo tmp: yes
cd /sys/fs/cgroup
echo pids: $(cat pids.max pids/pids.max 2>/dev/null)
echo memory: $(cat memory.max memory/memory.limit_in_bytes 2>/dev/null)
echo cpu: $(cat cpu.max cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us 2>/dev/null)`;

/** Larger than the resources of any machine: cgroups v1 prints such a number if there is no limit. */
const NO_BOUND = 2 ** 60;

const bound = (text: string | undefined): number | undefined => {
  const count = Number(text);
  return Number.isFinite(count) && count > 0 && count < NO_BOUND ? count : undefined;
};

export async function contained(stack: ComposeStack, id: string): Promise<Contained> {
  const printed = await stack.docker(['exec', id, 'sh', '-c', LOOK]);
  const said = (name: string): string | undefined => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(printed)?.[1];
  const [quota, period] = (said('cpu') ?? '').split(' ');
  const cpus = bound(quota);
  return {
    capabilities: [...new Set(['CapPrm', 'CapEff', 'CapBnd'].map((name) => said(name) ?? ''))],
    noNewPrivileges: said('NoNewPrivs') === '1',
    rootCanBeWritten: said('root') === 'yes',
    tmpCanBeWritten: said('tmp') === 'yes',
    pids: bound(said('pids')),
    memoryBytes: bound(said('memory')),
    cpus: cpus === undefined ? undefined : cpus / Number(period),
  };
}

/** Long for a network within one machine, where a listener accepts immediately. */
const REACH_MS = 2000;
const REACH = `for (const target of process.argv.slice(1)) {
  const [host, port] = target.split(' ');
  const socket = require('node:net').connect({ host, port, timeout: ${REACH_MS} });
  socket.on('connect', () => { console.log(target); socket.destroy(); });
  socket.on('timeout', () => socket.destroy()).on('error', () => {});
}`;

/** Returns the targets (`host port`) to which a process of the container can connect. The container has Node. */
export async function reached(stack: ComposeStack, id: string, targets: readonly string[]): Promise<string[]> {
  const printed = await stack.docker(['exec', id, 'node', '-e', REACH, ...targets]);
  const found = new Set(printed.split('\n'));
  return targets.filter((target) => found.has(target));
}

/** Returns the addresses of a container on all its networks. */
export async function addresses(stack: ComposeStack, id: string): Promise<string[]> {
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}';
  return (await stack.docker(['inspect', '--format', format, id])).split(/\s+/).filter(Boolean);
}
