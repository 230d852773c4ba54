export * from './sealed-box.ts';
export * from './webhook-keys.ts';
export * from './webhook-signatures.ts';
export * from './worker-box.ts';
