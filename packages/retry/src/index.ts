export * from './back-off.ts';
export * from './pause.ts';
export * from './retry.ts';
