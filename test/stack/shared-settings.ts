// The settings of the stack that test files share (shared-stack.ts): short waits, and limits that a test reaches quickly.

export const MAX_BODY_BYTES = 300_000;
export const MAX_ITEM_BYTES = 50_000;
export const RUN_LOG_MAX_BYTES = 20_000;

export const SHARED_SETTINGS: Record<string, string> = {
  MAX_BODY_BYTES: `${MAX_BODY_BYTES}`,
  MAX_ITEM_BYTES: `${MAX_ITEM_BYTES}`,
  RUN_LOG_MAX_BYTES: `${RUN_LOG_MAX_BYTES}`,
  REAP_MS: '100',
  // The window keeps whole plain streams, because the bytes that stalled readers have taken depend on their sockets.
  STREAM_WINDOW_BYTES: '64MiB',
  // The webhook timestamps have a resolution of one second, so attempts are more than a second apart.
  WEBHOOK_SCHEDULE: '0,1.2,1.2,1.2',
  WEBHOOK_JITTER: '0',
};
