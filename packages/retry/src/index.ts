export * from './back-off.ts';
export * from './intervals.ts';
export * from './pause.ts';
export * from './retry.ts';
