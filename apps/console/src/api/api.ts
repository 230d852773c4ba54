// The operations of the public API that the console uses, with the types of the service's own OpenAPI document.
import type {
  ActivateVersionData,
  CancelRunData,
  Delivery,
  ListAllAppsData,
  ListAllAppsResponses,
  ListDeliveriesData,
  ListDeliveriesOfRunData,
  ListDeliveriesOfRunResponses,
  ListDeliveriesResponses,
  ListRunsData,
  ListRunsResponses,
  LookUpRunData,
  ReadAppData,
  ReadAppResponses,
  ReadLogsData,
  ReadLogsResponses,
  ReadVersionLogData,
  ReadVersionLogResponses,
  RedeliverAllData,
  RedeliverAllResponses,
  RedeliverData,
  Run,
} from '../../generated/api/types.gen.ts';
import { get, post, urlOf } from './request.ts';

export type {
  App,
  Attempt,
  Delivery,
  ErrorObject,
  Function as FunctionSpec,
  LogLine,
  Run,
} from '../../generated/api/types.gen.ts';

export type Page<Data extends { query?: object }> = NonNullable<Data['query']>;
export type RunFilters = Page<ListRunsData>;
export type DeliveryFilters = Page<ListDeliveriesData>;
export type AppWithVersions = ReadAppResponses[200];
export type AppVersion = AppWithVersions['versions'][number];

export const listApps = (project: string, signal?: AbortSignal): Promise<ListAllAppsResponses[200]> =>
  get<ListAllAppsData, ListAllAppsResponses[200]>('/v4/{project}/apps', { path: { project }, signal });

export const readApp = (project: string, app: string, signal?: AbortSignal): Promise<AppWithVersions> =>
  get<ReadAppData, AppWithVersions>('/v4/{project}/apps/{app}', { path: { project, app }, signal });

export const readVersionLog = (
  project: string,
  app: string,
  version: string,
  signal?: AbortSignal,
): Promise<ReadVersionLogResponses[200]> =>
  get<ReadVersionLogData, ReadVersionLogResponses[200]>('/v4/{project}/apps/{app}/versions/{version}/log', {
    path: { project, app, version },
    signal,
  });

export const activateVersion = (project: string, app: string, version: string): Promise<object> =>
  post<ActivateVersionData, object>('/v4/{project}/apps/{app}/versions/{version}/activate', {
    path: { project, app, version },
  });

export const listRuns = (project: string, query: RunFilters, signal?: AbortSignal): Promise<ListRunsResponses[200]> =>
  get<ListRunsData, ListRunsResponses[200]>('/v4/{project}/runs', { path: { project }, query, signal });

export const lookUpRun = (project: string, run: string, signal?: AbortSignal): Promise<Run> =>
  get<LookUpRunData, Run>('/v4/{project}/runs/{run}', { path: { project, run }, signal });

export const cancelRun = (project: string, run: string): Promise<object> =>
  post<CancelRunData, object>('/v4/{project}/runs/{run}/cancel', { path: { project, run } });

export const readLogs = (
  project: string,
  run: string,
  after: number,
  signal?: AbortSignal,
): Promise<ReadLogsResponses[200]> =>
  get<ReadLogsData, ReadLogsResponses[200]>('/v4/{project}/runs/{run}/logs', {
    path: { project, run },
    query: { after: String(after) },
    signal,
  });

/** Returns the URL of a run's rich stream. */
export const streamUrl = (project: string, run: string): string =>
  urlOf('/v4/{project}/runs/{run}/stream', { path: { project, run }, query: { events: 'full' } });

export const deliveriesOfRun = (
  project: string,
  run: string,
  signal?: AbortSignal,
): Promise<ListDeliveriesOfRunResponses[200]> =>
  get<ListDeliveriesOfRunData, ListDeliveriesOfRunResponses[200]>('/v4/{project}/runs/{run}/deliveries', {
    path: { project, run },
    signal,
  });

export const listDeliveries = (
  project: string,
  query: DeliveryFilters,
  signal?: AbortSignal,
): Promise<ListDeliveriesResponses[200]> =>
  get<ListDeliveriesData, ListDeliveriesResponses[200]>('/v4/{project}/deliveries', {
    path: { project },
    query,
    signal,
  });

export const redeliver = (project: string, { run_id: run, delivery_id: delivery }: Delivery): Promise<object> =>
  post<RedeliverData, object>('/v4/{project}/runs/{run}/deliveries/{delivery}/redeliver', {
    path: { project, run, delivery },
  });

export const redeliverAll = (
  project: string,
  query: Page<RedeliverAllData>,
): Promise<RedeliverAllResponses[202] & { cursor?: string }> =>
  post<RedeliverAllData, RedeliverAllResponses[202]>('/v4/{project}/deliveries/redeliver', {
    path: { project },
    query,
  });
