// Contract 7, "Versions": the states of a version as one table. The scripts enforce each row, property/roll-outs checks each row, and
// docs/deploy.md shows them.
import type { VersionState } from './version-record.ts';

/** `none`: the version has no record. */
export type VersionPlace = VersionState | 'none';

/** One step between two states. */
export interface VersionStep {
  readonly from: VersionPlace;
  readonly to: VersionPlace;
  /** The scripts that make the step. A report and a gateway's round decide alike, by one function (parts/roll-outs.lua: settle). */
  readonly scripts: readonly (
    | 'version-deploy'
    | 'version-activate'
    | 'version-report'
    | 'roll-outs'
    | 'versions-trim'
    | 'app-delete'
  )[];
  /** The cause of the step. */
  readonly when: string;
}

const SETTLED = ['version-report', 'roll-outs'] as const;

/** All steps between states. */
export const versionSteps: readonly VersionStep[] = [
  { from: 'none', to: 'building', scripts: ['version-deploy'], when: 'a bundle is deployed' },
  { from: 'building', to: 'ready', scripts: SETTLED, when: 'built with `activate=false`, or its first step begins' },
  { from: 'building', to: 'active', scripts: SETTLED, when: 'every live worker is ready' },
  { from: 'building', to: 'failed', scripts: SETTLED, when: 'the build or the start failed, or the time is over' },
  {
    from: 'building',
    to: 'failed',
    scripts: ['version-deploy', 'version-activate'],
    when: 'a deployment or activation of another version',
  },
  { from: 'ready', to: 'active', scripts: SETTLED, when: 'every live worker is ready, and the last step is over' },
  { from: 'retired', to: 'active', scripts: SETTLED, when: 'a rollback: every live worker is ready' },
  { from: 'active', to: 'retired', scripts: SETTLED, when: 'another version became active' },
  { from: 'failed', to: 'building', scripts: ['version-deploy'], when: 'the same content is deployed again' },
  { from: 'ready', to: 'none', scripts: ['versions-trim'], when: 'ten other versions were used later' },
  { from: 'retired', to: 'none', scripts: ['versions-trim'], when: 'ten other versions were used later' },
  { from: 'failed', to: 'none', scripts: ['versions-trim'], when: 'ten other versions failed later' },
  ...(['building', 'ready', 'active', 'retired', 'failed'] as const).map(
    (from): VersionStep => ({ from, to: 'none', scripts: ['app-delete'], when: 'the app is deleted' }),
  ),
];
