// Contract 2 and 5: makes a run's result the body of an answer. Large parts are read from the store piece by piece.
import { arrayBody, type Outcome, type RunId, resultAsJson } from '@inference-proxy/contracts';
import { type GatewayStore, pieceBytes } from '@inference-proxy/store';
import { resultGone } from './not-found.ts';
import { type AnswerBody, allPieces, type StoredBody } from './stored-answer.ts';

/** A smaller result is answered at once (contract 5). */
const SMALL_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);
const COMMA = Buffer.from(',');

/** A larger list is written in pieces, and its length is unknown before the end. */
const WHOLE_BYTES = 1024 * 1024;

/**
 * Returns a result as JSON between two texts, or `undefined` if the store no longer keeps its items.
 *
 * @param outcome of a run that succeeded
 */
export async function resultBody(
  store: GatewayStore,
  project: string,
  runId: RunId,
  outcome: Outcome,
  [before, after]: readonly [before: string, after: string] = ['', ''],
): Promise<AnswerBody | undefined> {
  const [head, tail] = [Buffer.from(before), Buffer.from(after)];
  const around = (json: Buffer): Buffer => Buffer.concat([head, json, tail]);
  if (outcome.streamed && outcome.items > 0) {
    const bytes = await store.itemBytes(project, runId);
    if (bytes > WHOLE_BYTES && !isOneBody(outcome)) return listBody(store, project, runId, outcome, bytes, head, tail);
    const list = async (): Promise<Buffer | undefined> => {
      const batches = await store.items(project, runId);
      const kept = batches.reduce((count, batch) => count + batch.count, 0);
      return kept === outcome.items ? around(resultAsJson(outcome, batches)) : undefined;
    };
    return bytes <= SMALL_BYTES ? list() : wholeBody(3 * bytes, async () => (await list()) ?? forgotten(runId));
  }
  const { resultBytes } = outcome;
  if (resultBytes === undefined) return around(resultAsJson(outcome, []));
  if (outcome.head) {
    return wholeBody(3 * resultBytes, async () =>
      around(resultAsJson(await wholeOutcome(store, project, runId, outcome), [])),
    );
  }
  return {
    bytes: head.length + resultBytes + tail.length,
    heldBytes: pieceBytes(resultBytes),
    async *pieces() {
      // The head is sent with the first piece, so that nothing is written before the store has answered.
      let text = head;
      for await (const piece of store.result(project, runId, resultBytes)) {
        yield Buffer.concat([text, piece]);
        text = NOTHING;
      }
      yield tail;
    },
  };
}

/** Returns whether the items are pieces of one text or one body. */
const isOneBody = ({ head }: Outcome): boolean => head?.form === 'chunks' || head?.form === 'bytes';

/** Returns the outcome with its result, whatever the result's size. */
export async function wholeOutcome(
  store: GatewayStore,
  project: string,
  runId: RunId,
  outcome: Outcome,
): Promise<Outcome> {
  const { resultBytes, ...rest } = outcome;
  if (resultBytes === undefined) return outcome;
  return { ...rest, result: Buffer.concat(await allPieces(store.result(project, runId, resultBytes))) };
}

function listBody(
  store: GatewayStore,
  project: string,
  runId: RunId,
  { items }: Outcome,
  bytes: number,
  head: Buffer,
  tail: Buffer,
): StoredBody {
  return {
    // An entry is held twice: as stored and as JSON.
    heldBytes: Math.max(WHOLE_BYTES, Math.ceil((2 * bytes) / items)),
    async *pieces() {
      let next = 1;
      let text = Buffer.concat([head, Buffer.from('[')]);
      for await (const batch of store.itemPages(project, runId)) {
        if (batch.first !== next) break;
        next += batch.count;
        yield Buffer.concat([text, arrayBody(batch)]);
        text = COMMA;
      }
      if (next !== items + 1) forgotten(runId);
      yield Buffer.concat([Buffer.from(']'), tail]);
    },
  };
}

const wholeBody = (heldBytes: number, read: () => Promise<Buffer>): StoredBody => ({
  heldBytes,
  whole: true,
  async *pieces() {
    yield await read();
  },
});

function forgotten(runId: RunId): never {
  throw resultGone(runId);
}
