// Contract 5, "List: `GET /runs`": lists runs by list.lua, newest first, in pages. Each page reads a bounded number of records, for any number of kept runs.
import { type RunState, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { withinLimit } from '../redis.ts';
import { bytesIn, listIn, numberIn, runScript, type Script, textIn } from '../scripts.ts';
import { LISTED, type RunRecord, recordOf } from './record.ts';

/** State of the run's webhook. `none`: without a webhook; `any`: with a webhook in any state. */
export type WebhookFilter = 'none' | 'any' | 'waiting' | 'pending' | 'delivered' | 'failed';

export interface RunQuery {
  readonly app?: string;
  readonly fn?: string;
  readonly status?: RunState;
  readonly webhook?: WebhookFilter;
  /** Bounds of the acceptance, Unix ms. Both are included. */
  readonly since?: number;
  readonly until?: number;
  /** Runs on a page, at least 1. */
  readonly limit: number;
  /** Place at which the previous page ended. */
  readonly cursor?: string;
}

export interface RunPage {
  /** Without results. */
  readonly runs: readonly RunRecord[];
  /** Set if further runs may follow. A page of a filtered list may be shorter than its limit. */
  readonly cursor?: string;
}

/** Records read for one page: under 10 ms of Redis, in portions. A filter that matches little gives short pages. */
const MOST_READ = 2_000;
/** Records read in one call, so that no call holds Redis for long. */
const PORTION = 100;

/** A place in the order of acceptance: µs of the store's clock, and the last run at this time, because runs may share it. */
interface Place {
  readonly at: string;
  readonly runId: string;
}

const written = ({ at, runId }: Place): string => Buffer.from(`${at} ${runId}`).toString('base64url');

function placeOf(cursor: string): Place {
  const [, at, runId] = /^(\d{1,16}) ([\w-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (at === undefined || runId === undefined)
    throw new ServiceError('invalid_request', 'The cursor does not belong to this list.');
  return { at, runId };
}

interface ListArguments {
  readonly place: Place;
  /** Records read at most. */
  readonly most: number;
  /** Runs wanted. */
  readonly wanted: number;
  readonly app: string;
  readonly fn: string;
  readonly status: string;
  readonly webhook: string;
  /** Earliest acceptance, Unix ms. */
  readonly since: number | undefined;
}

interface ListReply {
  readonly read: number;
  /** The place of the last read record; its `at` is empty at the end of the list. */
  readonly place: Place;
  readonly runs: readonly RunRecord[];
}

const listScript: Script<ListArguments, ListReply> = {
  name: 'list',
  encode: ({ place, most, wanted, app, fn, status, webhook, since }) => [
    place.at,
    place.runId,
    most,
    wanted,
    app,
    fn,
    status,
    webhook,
    since === undefined ? '-inf' : since * 1000,
    ...LISTED,
  ],
  decode: (reply) => {
    const [read, at, runId, runs] = listIn(reply);
    return {
      read: numberIn(read),
      place: { at: textIn(at), runId: textIn(runId) },
      runs: listIn(runs).flatMap((run) => {
        const [id, ...fields] = listIn(run);
        const values = fields.map((value) => (value === null ? null : bytesIn(value)));
        return recordOf(textIn(id), values) ?? [];
      }),
    };
  },
};

/** Returns the place before which a page begins: the end of the previous page, or the latest acceptance that the query wants. */
function firstPlace({ cursor, until }: RunQuery): Place {
  const after = cursor === undefined ? undefined : placeOf(cursor);
  // Places are µs, and times of records are ms. Every run of the last ms is before the place of the next ms.
  const latest = until === undefined ? undefined : { at: String((until + 1) * 1000), runId: '' };
  if (!after || !latest) return after ?? latest ?? { at: '', runId: '' };
  return Number(after.at) < Number(latest.at) ? after : latest;
}

/**
 * Returns one page. A place in the order of acceptance stays the same while runs come and go.
 *
 * @param limitMs time limit of each call
 * @throws ServiceError `invalid_request` for a malformed cursor, `unavailable`
 */
export async function listRuns(redis: Redis, project: string, query: RunQuery, limitMs: number): Promise<RunPage> {
  let place = firstPlace(query);
  const runs: RunRecord[] = [];
  for (let read = 0; read < MOST_READ && runs.length < query.limit; ) {
    const most = Math.min(PORTION, MOST_READ - read);
    const { app = '', fn = '', status = '', webhook = '', since } = query;
    const args = { place, most, wanted: query.limit - runs.length, app, fn, status, webhook, since };
    const reply = await withinLimit(runScript(redis, listScript, project, args), limitMs);
    runs.push(...reply.runs);
    if (reply.place.at === '') return { runs };
    read += reply.read;
    place = reply.place;
  }
  return { runs, cursor: written(place) };
}
