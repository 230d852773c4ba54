// Contract 5: the path of statistics in the document of the service.
import { answer, COMMON, errors, json, parameter } from './components.ts';
import { COUNT, type Json, list, object, TIME } from './json.ts';

const LATENCY = { type: ['number', 'null'], description: 'In milliseconds; null without a call.' };

const APP_STATS = object({
  app: { type: 'string' },
  calls: COUNT,
  errors: COUNT,
  p50_ms: LATENCY,
  p99_ms: LATENCY,
  series: object({ calls: list(COUNT), errors: list(COUNT), p50_ms: list(LATENCY), p99_ms: list(LATENCY) }),
});

/** By path and method. */
export const statsPaths: Json = {
  '/v4/{project}/stats': {
    get: {
      operationId: 'readStats',
      tags: ['runs'],
      summary: 'Returns calls, errors and latencies by app',
      parameters: ['project', 'window', 'filterApp', 'limit', 'cursor'].map(parameter),
      responses: {
        200: answer(
          'The numbers. A series has a value for each step.',
          json(
            object({ since: TIME, until: TIME, step_s: COUNT, apps: list(APP_STATS) }, { cursor: { type: 'string' } }),
          ),
        ),
        ...errors(...COMMON, 'invalid_request'),
      },
    },
  },
};
