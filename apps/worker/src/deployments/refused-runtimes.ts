// docs/migrating.md: rejects runtimes of the hosted product that this service does not run, with the next step in the message.
import { asTable, ManifestError, type Sections } from './manifest-text.ts';

const RUN = ['runtime.python', 'runtime.node', 'runtime.custom', 'runtime.cortex'];

const RUN_ELSEWHERE = 'run it yourself and set [runtime.custom] url to its address';
const NO_IMAGES =
  'this service builds no images. Install the image’s programs where the worker runs and write its CMD as [runtime.custom] entrypoint, or run the image yourself and set [runtime.custom] url to its address';

/** Services of other companies that the hosted product runs for its users. */
const PARTNERS: Readonly<Record<string, string>> = { deepgram: 'Deepgram', rime: 'Rime' };

/** Checks the runtimes. @throws ManifestError that names the section or key, and the next step */
export function refuseRuntimes(found: Sections): void {
  for (const [name, value] of found) {
    if (!name.startsWith('runtime.')) continue;
    const kind = name.slice('runtime.'.length);
    if (kind === 'docker') throw new ManifestError(`[${name}]: ${NO_IMAGES}`);
    if (asTable(value)?.dockerfile_path !== undefined)
      throw new ManifestError(`[${name}] dockerfile_path: ${NO_IMAGES}`);
    const partner = Object.hasOwn(PARTNERS, kind) ? PARTNERS[kind] : undefined;
    if (partner !== undefined)
      throw new ManifestError(`[${name}]: ${partner} is a partner service of the hosted product; ${RUN_ELSEWHERE}`);
    if (!RUN.includes(name))
      throw new ManifestError(
        `[${name}] is not a runtime of this service: expected [runtime.python], [runtime.node] or [runtime.custom]. If it is a partner service, ${RUN_ELSEWHERE}`,
      );
  }
}
