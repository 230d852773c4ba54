// The gateway's one module, with all controllers and providers.
import { openBundleStore } from '@inference-proxy/bundles';
import { SealedBox, WebhookKeys } from '@inference-proxy/crypto';
import { AddressPolicy, WebhookUrls } from '@inference-proxy/egress';
import { accountLog, type Boot } from '@inference-proxy/platform';
import { GatewayStore } from '@inference-proxy/store';
import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { JwtModule, JwtService } from '@nestjs/jwt';
import { configuredKeys } from './auth/configured-keys.ts';
import { REVOCATION_LOGGER, REVOCATION_RETENTION, RevocationController } from './auth/revocation.controller.ts';
import { CallGuard, ReadRunsGuard, Tokens, WriteAppsGuard, WriteRunsGuard, WriteTokensGuard } from './auth/tokens.ts';
import { Admission } from './calls/admission.ts';
import { Bodies } from './calls/bodies.ts';
import { Calls, CallsController } from './calls/calls.ts';
import { DeliveriesController } from './deliveries/deliveries.controller.ts';
import { Deliveries } from './deliveries/deliveries.ts';
import { ReceiversController } from './deliveries/receivers.controller.ts';
import { RedeliveryController } from './deliveries/redelivery.controller.ts';
import { WebhookKeysController } from './deliveries/webhook-keys.controller.ts';
import { AnswersInFlight } from './http/answers-in-flight.ts';
import type { ErrorFilter } from './http/error.filter.ts';
import { HealthController } from './http/health.controller.ts';
import { OpenCalls } from './http/open-calls.ts';
import { Models } from './openai/models.ts';
import { OpenAiController } from './openai/openai.controller.ts';
import { AppDocumentController, ServiceDocumentController } from './openapi/openapi.controller.ts';
import { CallMetrics } from './operations/call-account.ts';
import { gaugeOpenThings } from './operations/gauges.ts';
import { ConsoleController } from './pages/console.controller.ts';
import { ConsoleFiles } from './pages/console-files.ts';
import { DocsController } from './pages/docs.controller.ts';
import { DocsFiles } from './pages/docs-files.ts';
import { PassthroughController } from './passthrough/passthrough.controller.ts';
import { serverProtocol } from './passthrough/server-protocol.ts';
import { ProjectController } from './registry/project.controller.ts';
import { ProjectApps } from './registry/project.ts';
import { CancelController } from './runs/cancel.controller.ts';
import { RunList } from './runs/list.ts';
import { RunLogs } from './runs/logs.ts';
import { LookUp } from './runs/look-up.ts';
import { ResumeController } from './runs/resume.controller.ts';
import { Resume } from './runs/resume.ts';
import { RunsController } from './runs/runs.controller.ts';
import { Validators } from './schemas/validators.ts';
import type { GatewaySettings } from './settings.ts';
import { StatsController } from './stats/stats.controller.ts';
import { CallStats } from './stats/stats.ts';
import { KeepAlive } from './streaming/live-response.ts';
import { AppsController } from './versions/apps.controller.ts';
import { Apps } from './versions/apps.ts';
import { Audit } from './versions/audit.ts';
import { DeployController } from './versions/deploy.controller.ts';
import { SecretsController } from './versions/secrets.controller.ts';
import { AppSecrets } from './versions/secrets.ts';
import { Uploads } from './versions/uploads.ts';
import { VersionLogs } from './versions/version-log.ts';
import { Versions } from './versions/versions.ts';

/** The parts that exist before Nest starts. */
export interface GatewayParts extends Pick<Boot<GatewaySettings>, 'settings' | 'logger' | 'operations' | 'tracing'> {
  readonly store: GatewayStore;
  readonly openCalls: OpenCalls;
  readonly filter: ErrorFilter;
}

/** Every route belongs to one of them. */
export const controllers = [
  CallsController,
  OpenAiController,
  ResumeController,
  RunsController,
  CancelController,
  DeliveriesController,
  ReceiversController,
  RedeliveryController,
  WebhookKeysController,
  StatsController,
  RevocationController,
  AppsController,
  DeployController,
  SecretsController,
  ProjectController,
  HealthController,
  ServiceDocumentController,
  AppDocumentController,
  DocsController,
  ConsoleController,
  PassthroughController,
] as const;

@Module({})
export class GatewayModule {}

export function gatewayModule(parts: GatewayParts): DynamicModule {
  const { settings, logger, operations, tracing, store, openCalls, filter } = parts;
  const box = new SealedBox(settings.SECRETS_KEY);
  const retention = { promisedMs: settings.RUN_RETENTION_S * 1000, otherMs: settings.SYNC_RUN_RETENTION_S * 1000 };
  const webhooks = new WebhookUrls({
    policy: new AddressPolicy(settings.WEBHOOK_ALLOWED_NETWORKS),
    requireHttps: settings.WEBHOOK_REQUIRE_HTTPS,
  });
  const tokenRules = { issuer: settings.JWT_ISSUER, audience: settings.JWT_AUDIENCE };
  const keepAlives = new KeepAlive();
  const bodies = new Bodies({
    maxBytes: settings.MAX_BODY_BYTES,
    inFlightBytes: settings.BODIES_IN_FLIGHT_BYTES,
    timeoutMs: settings.REQUEST_TIMEOUT_S * 1000,
  });
  const answers = new AnswersInFlight(settings.ANSWERS_IN_FLIGHT_BYTES);
  gaugeOpenThings(operations.registry, { streams: () => keepAlives.size, bodyBytes: () => bodies.heldBytes });
  const versions = new Versions(store.versions, settings.ROLL_OUT_TIMEOUT_S * 1000);
  const validators = new Validators({
    onUnread: (name, err) =>
      logger.warn(
        { err, function: name },
        'a schema cannot be checked here; the process of the function judges its calls',
      ),
  });
  const admission = new Admission({ store, bodies, validators, box, retention });
  return {
    module: GatewayModule,
    imports: [JwtModule.register({})],
    controllers: [...controllers],
    providers: [
      { provide: GatewayStore, useValue: store },
      { provide: APP_FILTER, useValue: filter },
      // auth
      {
        provide: Tokens,
        inject: [JwtService],
        useFactory: (jwt: JwtService) => new Tokens(jwt, configuredKeys(settings, logger), tokenRules),
      },
      CallGuard,
      ReadRunsGuard,
      WriteRunsGuard,
      WriteAppsGuard,
      WriteTokensGuard,
      { provide: REVOCATION_RETENTION, useValue: settings.REVOCATION_RETENTION_S * 1000 },
      { provide: REVOCATION_LOGGER, useValue: logger },
      { provide: AnswersInFlight, useValue: answers },
      // calls
      { provide: OpenCalls, useValue: openCalls },
      { provide: Admission, useValue: admission },
      {
        provide: Calls,
        useFactory: () =>
          new Calls({
            store,
            admission,
            answers,
            openCalls,
            keepAlives,
            webhooks,
            passthrough: serverProtocol(settings.TRUSTED_PROXIES, settings.CORS_ORIGINS),
            accounts: {
              metrics: new CallMetrics(operations.registry),
              tracing,
              log: accountLog(logger),
            },
            commitMs: settings.STREAM_COMMIT_MS,
          }),
      },
      // openai
      { provide: Models, useFactory: () => new Models(admission) },
      // runs, registry
      {
        provide: Resume,
        useFactory: () =>
          new Resume({ store, openCalls, keepAlives, answers, logger, commitMs: settings.STREAM_COMMIT_MS }),
      },
      { provide: LookUp, useFactory: () => new LookUp(store) },
      { provide: RunList, useFactory: () => new RunList(store) },
      { provide: CallStats, useFactory: () => new CallStats(store) },
      { provide: RunLogs, useFactory: () => new RunLogs({ store, openCalls, keepAlives, logger }) },
      { provide: WebhookKeys, useFactory: () => new WebhookKeys(settings.SECRETS_KEY) },
      { provide: Deliveries, useFactory: () => new Deliveries(store.deliveryLog) },
      // pages
      { provide: DocsFiles, useFactory: () => new DocsFiles() },
      { provide: ConsoleFiles, useFactory: () => new ConsoleFiles(settings.CONSOLE) },
      { provide: ProjectApps, useFactory: () => new ProjectApps(store) },
      // versions
      { provide: Apps, useFactory: () => new Apps(store) },
      { provide: Versions, useValue: versions },
      {
        provide: AppSecrets,
        useFactory: () =>
          new AppSecrets(store.secrets, box, (raw, maxBytes) => bodies.hold(raw, maxBytes, async (bytes) => bytes)),
      },
      {
        provide: VersionLogs,
        useFactory: () => new VersionLogs({ versions, store: store.versions, openCalls, keepAlives }),
      },
      {
        provide: Uploads,
        useFactory: async () =>
          new Uploads(await openBundleStore(settings), {
            maxBytes: settings.MAX_BUNDLE_BYTES,
            idleMs: settings.REQUEST_TIMEOUT_S * 1000,
          }),
      },
      { provide: Audit, useFactory: () => new Audit(store.versions, logger, settings.TRUSTED_PROXIES) },
    ],
  };
}
