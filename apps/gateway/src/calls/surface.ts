// Contract 1 and 2: the form of a call and of its answer. The form is this service's own, that of OpenAI clients, or that of a custom runtime.
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
import type { OpenCall } from '../http/open-calls.ts';
import type { StreamOptions } from '../streaming/event-stream.ts';
import type { KeepAlive } from '../streaming/keep-alive.ts';
import type { StreamEnd } from '../streaming/live-response.ts';
import { type CallPath, type CallRequest, callRequest, type RequestHead } from './call-request.ts';
import { type EnvelopeAnswer, envelopeAnswer } from './outcome.ts';
import { parametersOf } from './parameters.ts';

/** A call whose body has been read. */
export interface ReadCall {
  readonly call: CallRequest;
  /** The run's input: the bytes of a JSON object for a function, a request for a custom runtime. */
  readonly params: Buffer;
}

/** The parts of an app's description that decide how its calls are read. */
export type ReadApp = Pick<AppDescription, 'functions' | 'forwardAuth'>;

/** An answer that is written while the run's entries arrive. */
export interface LiveAnswer {
  run(call: OpenCall): Promise<StreamEnd>;
}

export interface ForwardedOptions extends Pick<StreamOptions, 'onItems' | 'waitMs' | 'store' | 'answers'> {
  /** Called when the answer proves to be a stream. */
  readonly onStream: () => void;
}

export interface Surface {
  /** Reads the head of a request. @throws ServiceError `invalid_request`, `unsupported_media_type` */
  ask(runId: RunId, path: CallPath, head: RequestHead, webhooks: WebhookUrls): CallRequest;
  /** Checks the body and returns its bytes. @throws ServiceError `invalid_request` */
  body(bytes: Buffer): Buffer;
  /** Reads the options that the body adds to the head. */
  read(call: CallRequest, app: ReadApp, body: Buffer, request: IncomingMessage): ReadCall;
  /** Returns the writer of a forwarded call's answer. */
  forwarded?(raw: ServerResponse, reader: RunReader, keepAlives: KeepAlive, options: ForwardedOptions): LiveAnswer;
  /** Returns the whole answer of a run that has ended. */
  answer(store: GatewayStore, project: string, runId: RunId, outcome: Outcome): Promise<EnvelopeAnswer>;
  /** Returns the `error` object of a failure. */
  error(fields: ErrorFields): object;
  /** Returns the bytes that follow the last event of a complete stream. `lastEvent` is the end of that event. */
  closing?(lastEvent: Buffer): Buffer | undefined;
}

/** The service's own form, contract 1 and 2. */
export const managed: Surface = {
  ask: callRequest,
  body: parametersOf,
  read: (call, _app, params) => ({ call, params }),
  answer: envelopeAnswer,
  error: errorObject,
};
