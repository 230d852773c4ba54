// Contract 5 and WHATWG HTML §9.2.4 (`Last-Event-ID`): reads the start and the form of a requested stream. Pure.

import { accepts, Query, type RequestHead } from '../http/request-head.ts';
import { resumePoint } from '../streaming/resume-point.ts';
import { type StreamForm, streamFormOf } from '../streaming/stream-form.ts';

export interface ResumeRequest {
  /** Number of the reader's last event. Absent if the reader has no event and starts with the run. */
  readonly after?: number;
  readonly form: Exclude<StreamForm, 'plain'>;
  readonly gzip: boolean;
}

/** Reads the request for a stream. @throws ServiceError `invalid_request` */
export function resumeRequest({ url = '', headers, rawHeaders }: RequestHead): ResumeRequest {
  const query = Query.of(url);
  const after = resumePoint(query, rawHeaders);
  return {
    ...(after !== undefined && { after }),
    form: streamFormOf(query) === 'rich' ? 'rich' : 'ids',
    gzip: accepts(headers['accept-encoding'], ['gzip', 'x-gzip', '*']),
  };
}
