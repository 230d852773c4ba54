// Contract 2 and 5: reads the project or the run that a path names. All routes answer an unknown name with the same 404.
import { isProjectName, isRunId, type RunId, ServiceError } from '@inference-proxy/contracts';

export const noSuchRun = (): ServiceError =>
  new ServiceError('not_found', 'There is no such run, or its retention has ended.');

/** The answer if a run's result was removed while the answer was made. */
export const resultGone = (runId: RunId): ServiceError =>
  new ServiceError('not_found', 'The retention of the run’s result has ended.', { runId });

export const noSuchApp = (app: string): ServiceError =>
  new ServiceError('not_found', `There is no app \`${app}\` in this project.`);

export const noSuchProject = (): ServiceError => new ServiceError('not_found', 'There is no such project.');

/** Checks the form of a project's name. @throws ServiceError `not_found` */
export function checkProject(project: string): void {
  if (!isProjectName(project)) throw noSuchProject();
}

/**
 * Returns what `read` finds of the run that a path names. Without valid names, `read` is not called.
 *
 * @throws ServiceError `not_found` if `read` finds nothing
 */
export async function ofRun<Found>(
  project: string,
  runId: string,
  read: () => Promise<Found | undefined>,
): Promise<Found> {
  const found = isProjectName(project) && isRunId(runId) ? await read() : undefined;
  if (found === undefined) throw noSuchRun();
  return found;
}
