// Contract 5, "List: `GET /runs`": lists runs by list.lua, newest first, in pages. Each page reads a bounded number of records, for any number of kept runs.
import { type RunState, ServiceError } from '@inference-proxy/contracts';
import type { Redis } from 'ioredis';
import { bytesIn, listIn, numberIn, textIn } from '../message-pack.ts';
import { runScript, type Script, withinLimit } from '../redis-calls.ts';
import { LISTED, type RunRecord, recordOf } from './record.ts';

export interface RunQuery {
  readonly app?: string;
  readonly fn?: string;
  readonly status?: RunState;
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

/** Records read for one page. */
const MOST_READ = 500;
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
}

interface ListReply {
  readonly read: number;
  /** The place of the last read record; its `at` is empty at the end of the list. */
  readonly place: Place;
  readonly runs: readonly RunRecord[];
}

const listScript: Script<ListArguments, ListReply> = {
  name: 'list',
  encode: ({ place, most, wanted, app, fn, status }) => [
    place.at,
    place.runId,
    most,
    wanted,
    app,
    fn,
    status,
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

/**
 * Returns one page. A place in the order of acceptance stays the same while runs come and go.
 *
 * @param limitMs time limit of each call
 * @throws ServiceError `invalid_request` for a malformed cursor, `unavailable`
 */
export async function listRuns(redis: Redis, project: string, query: RunQuery, limitMs: number): Promise<RunPage> {
  let place = query.cursor === undefined ? { at: '', runId: '' } : placeOf(query.cursor);
  const runs: RunRecord[] = [];
  for (let read = 0; read < MOST_READ && runs.length < query.limit; ) {
    const most = Math.min(PORTION, MOST_READ - read);
    const { app = '', fn = '', status = '' } = query;
    const args = { place, most, wanted: query.limit - runs.length, app, fn, status };
    const reply = await withinLimit(runScript(redis, listScript, project, args), limitMs);
    runs.push(...reply.runs);
    if (reply.place.at === '') return { runs };
    read += reply.read;
    place = reply.place;
  }
  return { runs, cursor: written(place) };
}
