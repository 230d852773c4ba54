// `npm start -- --scale gateway=2 --scale worker=2`: how many of each service run on this machine.
import { parseArgs } from 'node:util';

export const scalable = ['gateway', 'worker', 'dispatcher'] as const;
type Scalable = (typeof scalable)[number];

/** How many there are of each service. */
export type Scale = Readonly<Record<Scalable, number>>;

export const ONE_OF_EACH: Scale = { gateway: 1, worker: 1, dispatcher: 1 };
/** More on one machine is a mistake in typing. */
const MOST = 64;
export const SCALE_USAGE = `Expected --scale <${scalable.join('|')}>=<1 to ${MOST}>, as often as needed`;

export class WrongScale extends Error {
  constructor() {
    super(SCALE_USAGE);
    this.name = 'WrongScale';
  }
}

/** @throws WrongScale whose message says what was expected */
export function readScale(args: readonly string[]): Scale {
  const scale: Record<Scalable, number> = { ...ONE_OF_EACH };
  for (const wish of wishes(args)) {
    const [, service, count] = /^(\w+)=(\d+)$/.exec(wish) ?? [];
    const found = scalable.find((name) => name === service);
    if (!found || Number(count) < 1 || Number(count) > MOST) throw new WrongScale();
    scale[found] = Number(count);
  }
  return scale;
}

function wishes(args: readonly string[]): string[] {
  try {
    return parseArgs({ args: [...args], options: { scale: { type: 'string', multiple: true } } }).values.scale ?? [];
  } catch {
    throw new WrongScale();
  }
}

/** The names of a service's instances: its own where there is one, numbered where there are more. */
export const instancesOf = (service: string, count: number): string[] =>
  count === 1 ? [service] : Array.from({ length: count }, (_, at) => `${service}-${at + 1}`);
