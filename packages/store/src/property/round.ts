// Plays one round: two gateways and three workers on a real Redis follow a schedule, come to rest, and are judged.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeliveryJob, Outcome, RunId } from '@inference-proxy/contracts';
import type { TestRedis } from '@inference-proxy/test/redis';
import { Redis } from 'ioredis';
import { DeliveryQueue } from '../deliveries/queue.ts';
import { sweepScript } from '../maintenance/sweep.ts';
import { runScript } from '../redis-calls.ts';
import { type ScriptName, scriptSource, scriptText } from '../script-files.ts';
import { defaultTimings } from '../timings.ts';
import { Faults } from './faults.ts';
import { History, type KnownRun, patiently } from './history.ts';
import { type Final, judge } from './model.ts';
import type { Step } from './schedule.ts';
import { SimulatedGateway } from './simulated-gateway.ts';
import { SimulatedWorker } from './simulated-worker.ts';

const timings = {
  ...defaultTimings,
  leaseMs: 500,
  renewMs: 60,
  attendMs: 60,
  reapMs: 40,
  pauseMs: 250,
  commandMs: 150,
  handoverMs: 200,
  staleMs: 50,
};
/** Time within which everything comes to rest, even on a busy machine. */
const LIMIT_MS = 60_000;
let rounds = 0;
const silent = { warn: () => {}, error: () => {} };

/** Much more than the small runs of a round take, and less than a large item takes. */
const TIGHT_BYTES = 150_000;
const PLENTY_BYTES = 1024 ** 3;

/** List of the evicted runs, written at each eviction. A look before and after would miss a run that began and ended in between. */
const FORGOTTEN = 'forgotten';
const FORGET = 'local function forget(id)\n';
const tellingWhatGoes = (sweep: string): string =>
  sweep.replace(FORGET, `${FORGET}redis.call('RPUSH', KEYS[1] .. '${FORGOTTEN}', id)\n`);

export interface Ground {
  readonly redis: TestRedis;
  /** A separate database, because rounds run side by side. */
  readonly db: number;
}

/** @returns the sentences of the model that do not hold */
export async function playRound(
  ground: Ground,
  steps: readonly Step[],
  planted: ReadonlyMap<ScriptName, string> = new Map(),
  limitMs = LIMIT_MS,
): Promise<string[]> {
  const round = new Round(ground, planted, limitMs);
  try {
    await round.begin();
    for (const step of steps) await round.step(step);
    return await round.rest();
  } finally {
    await round.close();
  }
}

class Round {
  /** A separate project, so that a late command of an earlier round does not affect this round. */
  readonly #project = `p${++rounds}`;
  readonly #history = new History();
  readonly #faults: Faults;
  readonly #clients: Redis[] = [];
  readonly #gateways: SimulatedGateway[] = [];
  readonly #workers: SimulatedWorker[] = [];
  readonly #all: (SimulatedGateway | SimulatedWorker)[] = [];
  readonly #calls: Promise<void>[] = [];
  readonly #admin: Redis;
  /** Connection for the test's own sweeps. Only these sweeps may evict runs. */
  readonly #sweeping: Redis;
  readonly #deliveries: DeliveryQueue;
  #disturbed = false;
  #ticked = performance.now();
  /** Last time at which this process stood still for so long that the store may have given every lease a fresh term. */
  #stoodStillAt = 0;
  readonly #ticking = setInterval(() => {
    const now = performance.now();
    if (now - this.#ticked > timings.leaseMs / 3) {
      this.#disturbed = true;
      this.#stoodStillAt = now;
    }
    this.#ticked = now;
  }, 10);

  readonly #ground: Ground;
  readonly #limitMs: number;

  constructor(ground: Ground, planted: ReadonlyMap<ScriptName, string>, limitMs: number) {
    this.#ground = ground;
    this.#limitMs = limitMs;

    this.#faults = new Faults(planted);
    this.#admin = this.#connect();
    const sweep = planted.get('sweep') ?? scriptText(scriptSource('sweep'));
    this.#sweeping = new Faults(new Map([['sweep', tellingWhatGoes(sweep)]])).commands(this.#admin);
    this.#deliveries = new DeliveryQueue(this.#connect(), silent);
  }

  async begin(): Promise<void> {
    await this.#admin.flushdb();
    for (let n = 0; n < 2; n++) this.#gateways[n] = this.#newGateway();
    for (let n = 0; n < 3; n++) this.#workers[n] = await this.#newWorker();
  }

  async step(step: Step): Promise<void> {
    switch (step.type) {
      case 'call':
        this.#calls.push(this.#gateway(step.gateway).call(step));
        return;
      case 'read': {
        const run = this.#run(step.run);
        // A caller knows a position only from items that it had. So no caller reads from beyond them.
        if (run?.answer !== 'accepted' || run.evicted) return;
        this.#gateway(step.gateway).follow(run, step.mode, Math.min(step.from, this.#seen(run)), step.behaviour);
        return;
      }
      case 'cancel': {
        const run = this.#run(step.run);
        if (run) this.#calls.push(this.#gateway(step.gateway).cancel(run));
        return;
      }
      case 'cancel first':
        this.#calls.push(
          this.#gateway(step.gateway).cancelFirst({
            items: [],
            how: 'return',
            hurry: false,
            large: false,
            head: false,
          }),
        );
        return;
      case 'look': {
        const run = this.#run(step.run);
        if (run) this.#calls.push(this.#gateway(step.gateway).look(run.runId));
        return;
      }
      case 'fault':
        this.#faults.strike(step.script, step.fault, step.ms);
        return;
      case 'swallow':
        this.#faults.swallowMessages(step.count, step.only);
        return;
      case 'freeze':
        this.#worker(step.which).freeze();
        return;
      case 'thaw':
        this.#worker(step.which).thaw();
        return;
      case 'kill worker':
        this.#worker(step.which).kill();
        this.#workers[step.which % this.#workers.length] = await this.#newWorker();
        return;
      case 'kill gateway':
        this.#gateway(step.which).kill();
        this.#gateways[step.which % this.#gateways.length] = this.#newGateway();
        return;
      case 'cut connections':
        for (const client of this.#clients) if (client !== this.#admin) client.stream?.destroy();
        return;
      case 'forget scripts':
        await this.#admin.script('FLUSH');
        return;
      case 'evict':
        await this.#evict();
        return;
      case 'tighten':
        await this.#tighten();
        return;
      case 'loosen':
        await this.#loosen();
        return;
      case 'restart':
        this.#disturbed = true;
        await this.#ground.redis.restart();
        return;
      case 'pause':
        this.#ground.redis.pause();
        await sleep(step.ms);
        this.#ground.redis.resume();
        return;
      case 'wait':
        await sleep(step.ms);
    }
  }

  /** Stops the faults. Then everything must end by itself, except the runs that only a caller can end. */
  async rest(): Promise<string[]> {
    await this.#faults.calm();
    await this.#loosen();
    for (const worker of this.#workers) worker.thaw();
    await Promise.all(this.#calls);
    for (const run of this.#history.runs.values()) if (run.plan.how === 'stay') this.#endStaying(run);
    const until = performance.now() + this.#limitMs;
    const finals = new Map<RunId, Final>();
    while (performance.now() < until) {
      const open = this.#history.readings.some((reading) => !reading.settled && !this.#hopeless(reading.runId));
      await this.#gatherFinals(finals);
      const running = [...finals.values()].some(({ outcome }) => !outcome);
      if (!open && !running) break;
      await sleep(20);
    }
    // Judged before the replays, because their readers would notify waiting readers.
    for (const { runId, settled, left } of this.#history.readings)
      if (!settled && !left && !this.#hopeless(runId)) this.#history.violated(`a reader of ${runId} never got an end`);
    await this.#replay(finals);
    const left = await this.#leftovers();
    await this.#gatherFinals(finals);
    // A service that was killed before the handover leaves the delivery to reap, which waits for the handover time.
    const handedOverBy = performance.now() + this.#limitMs;
    while (performance.now() < handedOverBy && [...finals.values()].some(({ delivery }) => delivery.jobs === 0)) {
      // Takes the waiting jobs, as a dispatcher does: reap repeats no lost job while other jobs wait.
      await this.#admin.del('{ip}:deliveries:wait');
      await sleep(20);
      await this.#gatherFinals(finals);
    }
    return [...judge(this.#history, finals, { leaseMs: timings.leaseMs, disturbed: this.#disturbed }), ...left];
  }

  async close(): Promise<void> {
    clearInterval(this.#ticking);
    for (const reading of this.#history.readings) reading.left = true;
    for (const one of this.#all) one.kill();
    await this.#deliveries.close();
    await this.#admin.flushdb();
    // The clients quit in order, so commands under way are answered, and no connection error reaches a finished caller.
    await Promise.all(this.#clients.map((client) => client.quit().catch(() => client.disconnect())));
  }

  /** Ends a run that waits for a cancel: its readers disconnect. If a disconnect does not cancel the run, the test cancels it. */
  #endStaying(run: KnownRun): void {
    const readings = this.#history.readings.filter((reading) => reading.runId === run.runId && !reading.settled);
    const plainly = run.plainly && readings.length > 0;
    for (const reading of readings) if (plainly) (this.#gateways[0] as SimulatedGateway).leave(reading);
    if (!plainly) void (this.#gateways[0] as SimulatedGateway).cancel(run);
  }

  #hopeless(runId: RunId): boolean {
    const { answer, evicted } = this.#history.run(runId);
    return answer !== 'accepted' || evicted;
  }

  async #gatherFinals(finals: Map<RunId, Final>): Promise<void> {
    const gateway = this.#gateways[0] as SimulatedGateway;
    const handedOver = await this.#handedOver();
    for (const { runId } of this.#history.runs.values()) {
      if (!(await this.#admin.exists(`ip:{${this.#project}}:run:${runId}`))) continue;
      const record = await patiently(() => gateway.store.lookUp(this.#project, runId));
      const batches = await patiently(() => gateway.store.items(this.#project, runId));
      const attempt = await this.#admin.hget(`ip:{${this.#project}}:run:${runId}`, 'attempt');
      const jobs = record?.webhook ? handedOver.filter((id) => id === runId).length : -1;
      finals.set(runId, {
        outcome: record?.outcome,
        result: record?.outcome && (await patiently(() => this.#resultOf(gateway, runId, record.outcome as Outcome))),
        gone: record?.gone ?? 0,
        texts: batches.flatMap((batch) => batch.blob.toString().split('\n')),
        token: attempt?.split(' ')[1],
        counted: Number(await this.#admin.hget(`ip:{${this.#project}}:run:${runId}`, 'size')),
        delivery: { jobs, due: (await this.#admin.zscore(`ip:{${this.#project}}:due`, runId)) !== null },
      });
    }
  }

  /** Returns the result of an outcome, from the store if the result is too large for the outcome. */
  async #resultOf(gateway: SimulatedGateway, runId: RunId, outcome: Outcome): Promise<string | undefined> {
    if (outcome.resultBytes === undefined) return outcome.result?.toString();
    const pieces: Buffer[] = [];
    for await (const piece of gateway.store.result(this.#project, runId, outcome.resultBytes)) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  }

  /** Returns the runs whose first attempt is in a job. */
  async #handedOver(): Promise<RunId[]> {
    const keys = await this.#admin.keys('{ip}:deliveries:*-*-*');
    const jobs = await Promise.all(keys.map((key) => this.#admin.hget(key, 'data')));
    const carried = jobs.flatMap((data) => (JSON.parse(data ?? '{"deliveries":[]}') as DeliveryJob).deliveries);
    return carried.filter(({ attempt }) => attempt === 1).map(({ runId }) => runId);
  }

  /** Evicts every unpromised ended run without a reader. */
  async #evict(): Promise<void> {
    const read = this.#history.readings.filter(({ mode, served, settled, left }) => {
      return mode === 'items' && served && !settled && !left;
    });
    await runScript(this.#sweeping, sweepScript, this.#project, { most: 256, downTo: 0, readMs: timings.leaseMs });
    for (const id of await this.#admin.lrange(`ip:{${this.#project}}:${FORGOTTEN}`, 0, -1)) {
      const run = this.#history.run(id);
      if (run.evicted) continue;
      run.evicted = true;
      if (read.some(({ runId, settled, left }) => runId === id && !settled && !left) && !this.#disturbed)
        this.#history.violated(`${id} was evicted under its reader`);
    }
  }

  /** Lowers the share to a little more than the present bytes. A large item, result or error does not fit. */
  async #tighten(): Promise<void> {
    if (this.#faults.share !== undefined) return;
    this.#history.tightened = true;
    // From here on a gateway's sweep writes no larger share.
    this.#faults.share = Number(await this.#admin.get(`ip:{${this.#project}}:bytes`)) + TIGHT_BYTES;
    // One step: a reservation between the two commands would exceed the new share without a fault of the scripts.
    const share = await this.#admin.eval(
      "local share = (redis.call('GET', KEYS[1]) or 0) + ARGV[1]; redis.call('SET', KEYS[2], share .. ' 0'); return share",
      2,
      `ip:{${this.#project}}:bytes`,
      `ip:{${this.#project}}:share`,
      TIGHT_BYTES,
    );
    this.#faults.share = Number(share);
  }

  async #loosen(): Promise<void> {
    const { share } = this.#faults;
    if (share === undefined) return;
    const bytes = Number(await this.#admin.get(`ip:{${this.#project}}:bytes`));
    if (bytes > share + TIGHT_BYTES) this.#history.violated(`the project holds ${bytes} bytes of a share of ${share}`);
    this.#faults.share = undefined;
    await this.#admin.set(`ip:{${this.#project}}:share`, `${PLENTY_BYTES} 0`);
  }

  /** Reads every ended run once more from its start, on every gateway. */
  async #replay(finals: ReadonlyMap<RunId, Final>): Promise<void> {
    const replays = [];
    for (const [runId, final] of finals) {
      if (!final.outcome) continue;
      for (const gateway of this.#gateways) {
        void gateway.look(runId);
        replays.push(gateway.follow(this.#history.run(runId), 'items', 0, {}));
      }
    }
    const until = performance.now() + this.#limitMs;
    while (performance.now() < until && replays.some((replay) => !replay.settled)) await sleep(10);
  }

  /** Returns the remaining keys that only open runs and living services may have. */
  async #leftovers(): Promise<string[]> {
    const until = performance.now() + this.#limitMs;
    const alive = new Set(this.#workers.map(({ id }) => id));
    const left = async (): Promise<string[]> => {
      const found: string[] = [];
      for (const key of await this.#admin.keys(`ip:{${this.#project}}:*`)) {
        const name = key.slice(`ip:{${this.#project}}:`.length);
        if (/^(leases|absent|queue:.*|following:.*)$/.test(name)) found.push(name);
        if (name.startsWith('waiting:'))
          for (const id of await this.#admin.zrange(key, '0', '-1'))
            if (!alive.has(id)) found.push(`${name} of dead ${id}`);
      }
      return found;
    };
    let found = await left();
    // Dead services are not forgotten while every lease gets fresh terms.
    while (found.length > 0 && performance.now() < Math.max(until, this.#stoodStillAt + this.#limitMs)) {
      await sleep(20);
      found = await left();
    }
    return found.map((name) => `${name} remains after the round`);
  }

  /** Returns the number of items that a reader of the run has had. */
  #seen(run: KnownRun): number {
    const readings = this.#history.readings.filter(({ runId }) => runId === run.runId);
    return Math.max(0, ...readings.map(({ from, texts }) => from + texts.length));
  }

  #run(at: number): KnownRun | undefined {
    const runs = [...this.#history.runs.values()];
    return runs[at % Math.max(1, runs.length)];
  }

  #gateway(at: number): SimulatedGateway {
    return this.#gateways[at % this.#gateways.length] as SimulatedGateway;
  }

  #worker(at: number): SimulatedWorker {
    return this.#workers[at % this.#workers.length] as SimulatedWorker;
  }

  #newGateway(): SimulatedGateway {
    const another = (): SimulatedGateway => this.#gateway(0);
    const id = `g${this.#all.length}`;
    const gateway = new SimulatedGateway(id, this.#project, this.#history, another, this.#parts());
    this.#all.push(gateway);
    return gateway;
  }

  async #newWorker(): Promise<SimulatedWorker> {
    const worker = new SimulatedWorker(`w${this.#all.length}`, this.#project, this.#history, this.#parts());
    this.#all.push(worker);
    await worker.serve();
    return worker;
  }

  #parts() {
    const commands = this.#faults.commands(this.#connect());
    return { commands, subscriber: this.#faults.subscriber(this.#connect()), deliveries: this.#deliveries, timings };
  }

  #connect(): Redis {
    const { redis, db } = this.#ground;
    const path = redis.socket ? { path: redis.socket } : { port: redis.port };
    const client = new Redis({ ...path, db, maxRetriesPerRequest: null, retryStrategy: () => 10 });
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }
}
