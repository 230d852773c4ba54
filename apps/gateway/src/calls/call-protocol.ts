// Contract 1 and 2: a call protocol, which is the form of calls and of their answers. There are three: functions, OpenAI clients, custom runtimes.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AppDescription, Outcome, RunId } from '@inference-proxy/contracts';
import type { WebhookUrls } from '@inference-proxy/egress';
import type { GatewayStore, RunReader } from '@inference-proxy/store';
import type { OpenCall } from '../http/open-calls.ts';
import { type CallPath, type RequestHead } from '../http/request-head.ts';
import type { StreamOptions, StreamProtocol } from '../streaming/event-stream.ts';
import type { KeepAlive, StreamEnd } from '../streaming/live-response.ts';
import type { CallRequest, CheckedBody } from './call-request.ts';
import type { EnvelopeAnswer } from './outcome.ts';

/** A call whose body has been read. */
export interface ReadCall {
  readonly call: CallRequest;
  /** The run's input: the bytes of a JSON object for a function, a request for a custom runtime. */
  readonly params: Buffer;
  /** The parsed parameters of a function. */
  readonly value?: object;
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

export interface CallProtocol extends StreamProtocol {
  /** Reads the head of a request. @throws ServiceError `invalid_request`, `unsupported_media_type` */
  readHead(runId: RunId, path: CallPath, head: RequestHead, webhooks: WebhookUrls): CallRequest;
  /** Checks the body. @throws ServiceError `invalid_request` */
  checkBody(bytes: Buffer): CheckedBody;
  /** Reads the options that the body adds to the head. */
  readBody(call: CallRequest, app: ReadApp, body: CheckedBody, request: IncomingMessage): ReadCall;
  /** Whether a body that a function returns is the caller's answer. Otherwise its value is in the protocol's own form. */
  readonly answersBodies?: boolean;
  /** Returns the writer of a forwarded call's answer. */
  forwarded?(raw: ServerResponse, reader: RunReader, keepAlives: KeepAlive, options: ForwardedOptions): LiveAnswer;
  /** Returns the whole answer of a run that has ended. */
  answer(store: GatewayStore, project: string, runId: RunId, outcome: Outcome): Promise<EnvelopeAnswer>;
}
