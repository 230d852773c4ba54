// Run ids: UUIDv7 (RFC 9562 §5.7), so that ids sort by time.
import type { RunId } from '@inference-proxy/contracts';
import { v7 } from 'uuid';

/** A fresh run id. */
export const newRunId = (): RunId => v7();
