// Contract 5 and WHATWG HTML §9.2.4 (`Last-Event-ID`): from where on a run's stream is asked for, and how. Pure.

import { accepts, type RequestHead } from '../calls/call-request.ts';
import { queryOf } from '../http/query.ts';
import { resumePoint } from '../streaming/resume-point.ts';
import { type StreamForm, streamFormOf } from '../streaming/stream-form.ts';

export interface ResumeRequest {
  /** Number of the last event that the reader has; absent where it has none, and starts with the run. */
  readonly after?: number;
  readonly form: Exclude<StreamForm, 'plain'>;
  readonly gzip: boolean;
}

/** @throws ServiceError `invalid_request` */
export function resumeRequest({ url = '', headers, rawHeaders }: RequestHead): ResumeRequest {
  const query = queryOf(url);
  const after = resumePoint(query, rawHeaders);
  return {
    ...(after !== undefined && { after }),
    form: streamFormOf(query) === 'full' ? 'full' : 'numbered',
    gzip: accepts(headers['accept-encoding'], ['gzip', 'x-gzip', '*']),
  };
}
