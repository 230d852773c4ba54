export * from './address-policy.ts';
export * from './connect-error.ts';
export * from './exchange.ts';
export * from './guarded-agent.ts';
export * from './name-lookup.ts';
export * from './webhook-url.ts';
