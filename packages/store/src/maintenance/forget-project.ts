// Removes an empty project from the index of projects, by forget-project.lua.
import type { Script } from '../scripts.ts';

/** @param score the project's score when it was found empty */
export const forgetProjectScript: Script<{ project: string; score: string }, void> = {
  name: 'forget-project',
  encode: ({ project, score }) => [project, score],
  decode: () => undefined,
};
