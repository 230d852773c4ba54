// webhooks.md, "The queue can be seen": Bull Board on the operations port, for those who have its token. It shows jobs and changes none; a
// job holds ids only.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import { backlogQueueName, deliveryQueueName, deliveryQueueOptions } from '@inference-proxy/store';
import { Queue } from 'bullmq';
import Fastify from 'fastify';
import type { Redis } from 'ioredis';

/** Where it is, below the operations port. */
export const DASHBOARD_PATH = '/queues';

export interface QueueDashboard {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  close(): Promise<void>;
}

/** @param token as bearer token, or as the password of any user, which is how a browser asks for it */
export async function queueDashboard(redis: Redis, token: string): Promise<QueueDashboard> {
  const queues = [deliveryQueueName, backlogQueueName].map(
    (name) => new Queue(name, { ...deliveryQueueOptions, connection: redis, skipVersionCheck: true }),
  );
  // Redis away is told by whoever owns the connection.
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
  // As hashes: of one length, and in constant time.
  return timingSafeEqual(hashed(given), hashed(token));
}

const hashed = (text: string): Buffer => createHash('sha256').update(text).digest();
