// Contract 6: the queue dashboard (Bull Board) on the operations port, protected by a token. The dashboard is read-only, and jobs hold only ids.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import { backlogQueueName, deliveryQueueName, deliveryQueueOptions } from '@inference-proxy/store';
import { Queue } from 'bullmq';
import Fastify from 'fastify';
import type { Redis } from 'ioredis';

/** The path of the dashboard on the operations port. */
export const DASHBOARD_PATH = '/queues';

export interface QueueDashboard {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  close(): Promise<void>;
}

/** Returns the dashboard's request handler. @param token accepted as bearer token, or as password of any user, as browsers send it */
export async function queueDashboard(redis: Redis, token: string): Promise<QueueDashboard> {
  const queues = [deliveryQueueName, backlogQueueName].map(
    (name) => new Queue(name, { ...deliveryQueueOptions, connection: redis, skipVersionCheck: true }),
  );
  // The owner of the connection logs its errors.
  for (const queue of queues) queue.on('error', () => {});
  const adapter = new FastifyAdapter();
  adapter.setBasePath(DASHBOARD_PATH);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: adapter,
  });
  const board = Fastify();
  await board.register(adapter.registerPlugin(), { prefix: DASHBOARD_PATH });
  await board.ready();
  return {
    handle(request, response) {
      if (isToken(request.headers.authorization, token)) board.routing(request, response);
      else response.writeHead(401, { 'www-authenticate': 'Basic realm="queues", charset="UTF-8"' }).end();
    },
    async close() {
      await board.close();
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

function isToken(authorization = '', token: string): boolean {
  const [, scheme = '', value = ''] = /^(bearer|basic) +(\S+)$/i.exec(authorization) ?? [];
  const given =
    scheme.toLowerCase() === 'basic'
      ? Buffer.from(value, 'base64')
          .toString()
          .replace(/^[^:]*:/, '')
      : value;
  // Hashes have the same length, so the comparison takes constant time.
  return timingSafeEqual(hashed(given), hashed(token));
}

const hashed = (text: string): Buffer => createHash('sha256').update(text).digest();
