export * from './boot.ts';
export * from './logging.ts';
export * from './redis.ts';
export * from './setting-kinds.ts';
export * from './settings.ts';
export * from './shutdown.ts';
