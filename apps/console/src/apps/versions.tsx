// The versions of an app: state, log of the build, activation and rollback.
import { useSignal } from '@preact/signals';
import { type AppVersion, activateVersion, readVersionLog } from '../api/api.ts';
import { usePolled } from '../api/polled.ts';
import { Dialog } from '../components/dialog.tsx';
import { LogText } from '../components/log-text.tsx';
import { Problem } from '../components/problem.tsx';
import { Status } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import { Toggle } from '../components/toggle.tsx';
import { may } from '../session/session.ts';

const EVERY_MS = 2_000;
const SHORT = 12;
/** Versions that may be activated. A failed version needs a new deployment. */
const CAN_BEGIN = new Set(['ready', 'retired']);

function BuildLog({ project, app, version }: { project: string; app: string; version: AppVersion }) {
  const log = usePolled(
    version.version,
    (signal) => readVersionLog(project, app, version.version, signal),
    version.rolling_out ? EVERY_MS : EVERY_MS * 5,
  );
  const { lines = [], truncated } = log.value.value ?? {};
  return (
    <>
      <Problem error={log.error.value} />
      {truncated && <p class="quiet">The oldest lines are no longer kept.</p>}
      {lines.length > 0 && <LogText label="Lines of the build log" lines={lines} />}
      {log.value.value !== undefined && lines.length === 0 && <p class="empty">The build printed nothing.</p>}
    </>
  );
}

interface VersionProps {
  readonly project: string;
  readonly app: string;
  readonly version: AppVersion;
  /** Whether the version is older than the active one, so that its activation is a rollback. */
  readonly older: boolean;
  readonly onChange: () => void;
}

function VersionRow({ project, app, version, older, onChange }: VersionProps) {
  const open = useSignal(false);
  const asking = useSignal(false);
  const problem = useSignal<Error | undefined>(undefined);
  const name = version.version.slice(0, SHORT);
  const id = `log-${name}`;
  const activate = async (): Promise<void> => {
    problem.value = undefined;
    try {
      await activateVersion(project, app, version.version);
      asking.value = false;
      onChange();
    } catch (error) {
      problem.value = error as Error;
    }
  };
  const verb = older ? 'Roll back' : 'Activate';
  return (
    <>
      <tr>
        <td data-label="State">
          <Status state={version.state} />
          {version.rolling_out && <small class="quiet"> rolling out</small>}
        </td>
        <td data-label="Version" class="name mono">
          {name}
        </td>
        <td data-label="Deployed">
          <Time at={version.deployed_at} />
        </td>
        <td data-label="By">{version.author ?? '–'}</td>
        <td data-label="Size" class="number">
          {(version.size / 1_024).toFixed(1)} KiB
        </td>
        <td data-label="">
          <span class="buttons">
            <Toggle open={open} controls={id}>
              Build log
            </Toggle>
            {may('apps:write') && CAN_BEGIN.has(version.state) && !version.rolling_out && (
              <button
                type="button"
                class="small"
                onClick={() => {
                  asking.value = true;
                }}
              >
                {verb}…
              </button>
            )}
          </span>
        </td>
      </tr>
      {version.reason !== undefined && (
        <tr class="more">
          <td colSpan={6}>
            <p class="problem message">{version.reason}</p>
          </td>
        </tr>
      )}
      {open.value && (
        <tr id={id} class="more">
          <td colSpan={6}>
            <BuildLog project={project} app={app} version={version} />
          </td>
        </tr>
      )}
      {asking.value && (
        <tr>
          <td colSpan={6}>
            <Dialog
              title={`${verb} to ${name}?`}
              confirm={verb}
              onConfirm={() => void activate()}
              onClose={() => {
                asking.value = false;
              }}
            >
              <p>
                New calls of {app} use this version when every worker is ready. Running calls finish on their version.
              </p>
              <Problem error={problem.value} />
            </Dialog>
          </td>
        </tr>
      )}
    </>
  );
}

interface VersionsProps {
  readonly project: string;
  readonly app: string;
  readonly versions: readonly AppVersion[];
  readonly onChange: () => void;
}

export function Versions({ project, app, versions, onChange }: VersionsProps) {
  const active = versions.find(({ state }) => state === 'active');
  return (
    <section aria-labelledby="versions-title">
      <h2 id="versions-title">Versions</h2>
      <table class="list">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Version</th>
            <th scope="col">Deployed</th>
            <th scope="col">By</th>
            <th scope="col" class="number">
              Size
            </th>
            <th scope="col">Actions</th>
          </tr>
        </thead>
        <tbody>
          {versions.map((version) => (
            <VersionRow
              key={version.version}
              project={project}
              app={app}
              version={version}
              older={active !== undefined && version.deployed_at < active.deployed_at}
              onChange={onChange}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}
