// Contract 1 and 2: in whose terms a call is asked and answered: the service's own, those of another API's clients, or those of an app's own server.
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type AppDescription,
  type ErrorFields,
  errorObject,
  type Outcome,
  type RunId,
} from '@inference-proxy/contracts';
import type { WebhookUrls } from '@inference-proxy/egress';
import type { GatewayStore, RunReader } from '@inference-proxy/store';
import type { StreamEnd, StreamOptions } from '../streaming/event-stream.ts';
import type { KeepAlive } from '../streaming/keep-alive.ts';
import { type CallPath, type CallRequest, callRequest, type RequestHead } from './call-request.ts';
import type { OpenCall } from './departure.ts';
import { type EnvelopeAnswer, envelopeAnswer } from './outcome.ts';
import { parametersOf } from './parameters.ts';

/** A call whose body is known. */
export interface ReadCall {
  readonly call: CallRequest;
  /** What the run is given: a JSON object's bytes for a function, a request for a server. */
  readonly params: Buffer;
}

/** What of an app decides how a call of it is read. */
export type ReadApp = Pick<AppDescription, 'functions' | 'forwardAuth'>;

/** An answer that is written as the run's entries come. */
export interface LiveAnswer {
  run(call: OpenCall): Promise<StreamEnd>;
}

export interface ForwardedOptions extends Pick<StreamOptions, 'onItems' | 'waitMs' | 'store' | 'answers'> {
  /** Told when the answer turns out to be a stream. */
  readonly onStream: () => void;
}

export interface Surface {
  /** What the head of a request asks for. @throws ServiceError `invalid_request`, `unsupported_media_type` */
  ask(runId: RunId, path: CallPath, head: RequestHead, webhooks: WebhookUrls): CallRequest;
  /** A body as it may be. @throws ServiceError `invalid_request` */
  body(bytes: Buffer): Buffer;
  /** What the body asks for, beyond the head. */
  read(call: CallRequest, app: ReadApp, body: Buffer, request: IncomingMessage): ReadCall;
  /** Writes the answer of a forwarded call. */
  forwarded?(raw: ServerResponse, reader: RunReader, keepAlives: KeepAlive, options: ForwardedOptions): LiveAnswer;
  /** The whole answer of a run that has ended. */
  answer(store: GatewayStore, project: string, runId: RunId, outcome: Outcome): Promise<EnvelopeAnswer>;
  /** The `error` object of a failure. */
  error(fields: ErrorFields): object;
  /** What is written after the last event of a complete stream, given how that event ends. */
  closing?(lastEvent: Buffer): Buffer | undefined;
}

/** Contract 1 and 2 as they are. */
export const managed: Surface = {
  ask: callRequest,
  body: parametersOf,
  read: (call, _app, params) => ({ call, params }),
  answer: envelopeAnswer,
  error: errorObject,
};
