// Calls compose and finds containers for the scripts of the compose stack. Arguments of a script are options of compose.
import { spawn, spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Refused, root } from './prepare.mjs';

/** Returns the command of compose: `docker compose`, or the older `docker-compose`. */
function findCompose() {
  for (const form of [['docker', 'compose'], ['docker-compose']])
    if (spawnSync(form[0], [...form.slice(1), 'version'], { stdio: 'ignore' }).status === 0) return form;
  throw new Refused(
    'Docker with compose is needed: neither docker compose nor docker-compose runs; install Docker and its compose plugin',
  );
}

/** Runs a program. @returns its output, without the white space at the end @throws Refused if the program fails */
function output(program, args, { input = 'ignore', out = 'pipe' } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: [input, out, 'inherit'] });
    const chunks = [];
    child.stdout?.on('data', (chunk) => chunks.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString().trimEnd());
      else reject(new Refused(`Failed with exit code ${code}: ${[program, ...args].join(' ')}`));
    });
  });
}

/** Runs Docker's command line. */
export const docker = (...args) => output('docker', args);

const linesOf = (text) => text.split('\n').filter(Boolean);

/** A new container has this long to become ready. A worker first imports its apps. */
const READY_MS = 300_000;
const LOOK_MS = 500;

export class Compose {
  #program;
  #first;

  /** @param options compose's options that come before its command, such as --file and --env-file */
  constructor(options) {
    const [program, ...first] = findCompose();
    this.#program = program;
    this.#first = [...first, ...options];
  }

  /** Runs a command. @param streams `input` and `out` as in `stdio` of `spawn` */
  run(args, streams) {
    return output(this.#program, [...this.#first, ...args], streams);
  }

  async services() {
    return linesOf(await this.run(['config', '--services']));
  }

  /** Returns the ids of a service's running containers. */
  async containers(service) {
    return linesOf(await this.run(['ps', '--quiet', service]));
  }

  /** Starts or removes containers of a service until their number is right. @param more options such as --no-recreate */
  up(service, ...more) {
    return this.run(['up', '--detach', '--no-deps', '--no-build', ...more, service]);
  }

  /** Waits until every container of a service is ready. @throws Refused if a container is not ready in time */
  async ready(service) {
    const giveUpAt = Date.now() + READY_MS;
    for (;;) {
      const ids = await this.containers(service);
      const answers = ids.map(
        (id) =>
          spawnSync('docker', ['exec', id, 'node', 'deploy/healthcheck.mjs', 'readyz'], { stdio: 'ignore' }).status,
      );
      if (ids.length > 0 && answers.every((status) => status === 0)) return;
      if (Date.now() > giveUpAt)
        throw new Refused(`${service} is not ready after ${READY_MS / 1000} s: see docker compose logs ${service}`);
      await sleep(LOOK_MS);
    }
  }
}
