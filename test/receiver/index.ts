export * from './collector.ts';
export * from './receivers.ts';
