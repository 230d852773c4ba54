// Contract 5: the paths of receivers in the document of the service.
import { answer, COMMON, errors, json, parameter } from './components.ts';
import { COUNT, type Json, TIME } from './json.ts';

const RECEIVER = {
  type: 'object',
  required: ['host', 'circuit', 'failures_in_a_row', 'open_attempts', 'parked'],
  properties: {
    host: { type: 'string', description: 'Host and port.' },
    circuit: { type: 'string', enum: ['closed', 'open', 'recovering'] },
    failures_in_a_row: COUNT,
    probe_at: TIME,
    open_attempts: COUNT,
    parked: COUNT,
    oldest_parked_at: TIME,
  },
};
const LIST = {
  type: 'object',
  required: ['receivers'],
  properties: { receivers: { type: 'array', items: RECEIVER } },
};

const RECEIVERS = '/v4/{project}/deliveries/receivers';

/** By path and method. */
export const receiverPaths: Json = {
  [RECEIVERS]: {
    get: {
      operationId: 'listReceivers',
      tags: ['deliveries'],
      summary: 'Lists receivers with parked deliveries or an open circuit',
      parameters: [parameter('project')],
      responses: { 200: answer('The receivers.', json(LIST)), ...errors(...COMMON) },
    },
  },
  [`${RECEIVERS}/{host}`]: {
    get: {
      operationId: 'readReceiver',
      tags: ['deliveries'],
      summary: 'Returns a receiver',
      parameters: ['project', 'receiver'].map(parameter),
      responses: { 200: answer('The receiver.', json(RECEIVER)), ...errors(...COMMON) },
    },
  },
};
