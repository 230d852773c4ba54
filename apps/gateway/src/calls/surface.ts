// Contract 1 and 2: in whose terms a call is asked and answered: the service's own, or those of another API's clients.
import {
  type AppDescription,
  type ErrorFields,
  errorObject,
  type Outcome,
  type RunId,
} from '@inference-proxy/contracts';
import type { GatewayStore } from '@inference-proxy/store';
import type { CallRequest } from './call-request.ts';
import { type EnvelopeAnswer, envelopeAnswer } from './outcome.ts';

/** A call whose body is known. */
export interface ReadCall {
  readonly call: CallRequest;
  /** What the function is called with: a JSON object's bytes. */
  readonly params: Buffer;
}

export interface Surface {
  /** What the body asks for, beyond the head. */
  read(call: CallRequest, app: Pick<AppDescription, 'functions'>, body: Buffer): ReadCall;
  /** The whole answer of a run that has ended. */
  answer(store: GatewayStore, project: string, runId: RunId, outcome: Outcome): Promise<EnvelopeAnswer>;
  /** The `error` object of a failure. */
  error(fields: ErrorFields): object;
  /** What is written after the last event of a complete stream, given how that event ends. */
  closing?(lastEvent: Buffer): Buffer | undefined;
}

/** Contract 1 and 2 as they are. */
export const managed: Surface = {
  read: (call, _app, params) => ({ call, params }),
  answer: envelopeAnswer,
  error: errorObject,
};
