// Finds the parts that run containers: an engine that answers, compose in one of its two forms, and the base images.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { page, root } from '../documents/markdown.ts';

const run = promisify(execFile);
const ANSWER_MS = 60_000;
/** Long enough for three base images over a slow line. */
const PULL_MS = 300_000;

/** A program and its first arguments. */
export type Command = readonly [string, ...string[]];

export interface Engine {
  readonly compose: Command;
}

/** There is no usable engine. The message has the reason. */
export class NoEngine extends Error {}

const succeeds = (program: string, args: readonly string[], timeout = ANSWER_MS): Promise<boolean> =>
  run(program, args, { timeout }).then(
    () => true,
    () => false,
  );

/** Returns the base images, as the Dockerfile and docker-compose.yml name them. Tests start no image of the profile `monitoring`. */
function baseImages(): string[] {
  const named = [
    ...page('Dockerfile').matchAll(/^ARG NODE_IMAGE=(\S+)$/gm),
    ...page('docker-compose.yml').matchAll(/(?:PROXY|REDIS)_IMAGE:-([^}]+)\}/g),
  ];
  return named.map(([, name = '']) => name);
}

/** Finds or pulls a base image. Without a registry, root builds the image from Debian's packages. */
async function obtain(image: string): Promise<boolean> {
  if (await succeeds('docker', ['image', 'inspect', image])) return true;
  if (await succeeds('docker', ['pull', '--quiet', image], PULL_MS)) return true;
  const script = join(root, 'test', 'compose', 'stand-in-images.sh');
  if (process.getuid?.() !== 0 || !(await succeeds('debootstrap', ['--version']))) return false;
  return (await succeeds(script, [], PULL_MS)) && succeeds('docker', ['image', 'inspect', image]);
}

/** @throws NoEngine with the missing part */
export async function findEngine(): Promise<Engine> {
  if (!(await succeeds('docker', ['--version']))) throw new NoEngine('there is no docker on PATH');
  if (!(await succeeds('docker', ['info', '--format', '{{.ServerVersion}}'])))
    throw new NoEngine('no container engine answers (docker info)');
  const forms: Command[] = [['docker', 'compose'], ['docker-compose']];
  for (const compose of forms) {
    const [program, ...first] = compose;
    if (!(await succeeds(program, [...first, 'version']))) continue;
    for (const image of baseImages()) {
      if (!(await obtain(image)))
        throw new NoEngine(`${image} cannot be pulled, nor made here (that takes root and debootstrap)`);
    }
    return { compose };
  }
  throw new NoEngine('the engine answers, but there is no compose (docker compose, or docker-compose)');
}
