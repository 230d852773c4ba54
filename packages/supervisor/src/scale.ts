// `npm start -- --scale gateway=2 --scale worker=2`: the number of processes of each service on this machine.
import { parseArgs } from 'node:util';

const scalable = ['gateway', 'worker', 'dispatcher'] as const;
type Scalable = (typeof scalable)[number];

/** The number of processes of each service. */
export type Scale = Readonly<Record<Scalable, number>>;

export const ONE_OF_EACH: Scale = { gateway: 1, worker: 1, dispatcher: 1 };
/** A larger number is a typing error. */
const MOST = 64;
export const SCALE_USAGE = `Expected --scale <${scalable.join('|')}>=<1 to ${MOST}>, as often as needed`;

export class WrongScale extends Error {
  constructor() {
    super(SCALE_USAGE);
    this.name = 'WrongScale';
  }
}

/** @throws WrongScale whose message has the expected form */
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

/** Returns the names of a service's instances: the service's name, or numbered names if there are several. */
export const instancesOf = (service: string, count: number): string[] =>
  count === 1 ? [service] : Array.from({ length: count }, (_, at) => `${service}-${at + 1}`);
