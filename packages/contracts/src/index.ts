export * from './envelope.ts';
export * from './errors.ts';
export * from './functions.ts';
export * from './jobs.ts';
export * from './names.ts';
export * from './run-states.ts';
export * from './runs.ts';
