// Contract 7: the JSON form of versions and activations.
import type { ActivationRecord, VersionRecord } from '@inference-proxy/store';
import { isoTime } from '../http/values.ts';

/** Returns a version as lists contain it. */
export const versionSummary = (record: VersionRecord): object => ({
  version: record.version,
  state: record.state,
  rolling_out: record.rollingOut,
  ...(record.author !== undefined && { author: record.author }),
  created_at: isoTime(record.createdAt),
  deployed_at: isoTime(record.deployedAt),
  size: record.size,
  ...(record.reason !== undefined && { reason: record.reason }),
});

export const activationView = ({ time, author }: ActivationRecord): object => ({
  time: isoTime(time),
  ...(author !== undefined && { author }),
});

/** Returns a version with its own activations. @param activations of the app, newest first */
export const versionView = (record: VersionRecord, activations: readonly ActivationRecord[]): object => ({
  app: record.app,
  ...versionSummary(record),
  activations: activations.filter(({ version }) => version === record.version).map(activationView),
});
