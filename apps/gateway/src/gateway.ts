// Starts a gateway on its port, and takes it down in phases: unready, intake, drain, store, Redis.
import type { AddressInfo } from 'node:net';
import { type Boot, NestLogger } from '@inference-proxy/platform';
import { type GatewayStore, newRunId } from '@inference-proxy/store';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { gatewayModule } from './gateway.module.ts';
import { ErrorFilter } from './http/error.filter.ts';
import { answerLast } from './http/last-answers.ts';
import { stopListening } from './http/listener.ts';
import { OpenCalls } from './http/open-calls.ts';
import { httpServer } from './http/server.ts';
import { errorCounter, gaugeConnections } from './operations/gauges.ts';
import { gaugeStore } from './operations/store-gauges.ts';
import type { GatewaySettings } from './settings.ts';
import { LONGEST_UPLOAD_MS } from './versions/bundle-body.ts';

/**
 * Listens for calls, and stops in phases:
 *
 * - `unready`, for `SHUTDOWN_DELAY_S`: every answer is the last on its connection, and readiness fails.
 * - `intake`: the listener closes, and then calls are refused.
 * - `drain`: open calls have `SHUTDOWN_GRACE_S` to end.
 *
 * @returns the port
 */
export async function listen(
  { settings, logger, shutdown, operations, tracing }: Boot<GatewaySettings>,
  store: GatewayStore,
): Promise<number> {
  const openCalls = new OpenCalls();
  const filter = new ErrorFilter(logger, errorCounter(operations.registry));
  const app = await NestFactory.create<NestFastifyApplication>(
    gatewayModule({ settings, logger, operations, tracing, store, openCalls, filter }),
    httpServer({
      filter,
      newRequestId: newRunId,
      origins: settings.CORS_ORIGINS,
      requestMs: settings.REQUEST_TIMEOUT_S * 1000,
      longestMs: LONGEST_UPLOAD_MS,
      stallMs: settings.ANSWER_STALL_S * 1000,
    }),
    { logger: new NestLogger(logger), bodyParser: false, abortOnError: false },
  );
  await app.listen(settings.PORT, settings.HOST);
  operations.readyWhen(() => store.notReadyReason());
  const server = app.getHttpServer();
  gaugeConnections(operations.registry, server);
  gaugeStore(operations.registry, () => store.depths());
  shutdown.add('unready', 'connections', () => {
    answerLast(server);
    openCalls.leave();
  });
  shutdown.add('intake', 'calls', async () => {
    await stopListening(server);
    openCalls.refuse();
  });
  shutdown.add('drain', 'calls', () => openCalls.drain(settings.SHUTDOWN_GRACE_S * 1000));
  shutdown.add('queues', 'http', () => {
    server.closeAllConnections();
    return app.close();
  });
  return (server.address() as AddressInfo).port;
}
