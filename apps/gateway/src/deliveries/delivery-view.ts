// Contract 5, "Deliveries": the form of a delivery and its attempts in answers.
import type { Delivery, LoggedAttempt } from '@inference-proxy/store';
import { isoTime } from '../http/values.ts';

/** Returns a delivery without its attempts. */
export function deliveryView(delivery: Delivery): Record<string, unknown> {
  const { runId, deliveryId, url, state, attempts, createdAt, nextAt, parked, underWay } = delivery;
  return {
    delivery_id: deliveryId,
    run_id: runId,
    url,
    status: state,
    attempts,
    ...(createdAt !== undefined && { created_at: isoTime(createdAt) }),
    ...(underWay && { attempt_under_way: true }),
    ...(nextAt !== undefined && { next_attempt_at: isoTime(nextAt) }),
    ...(parked && { parked: { since: isoTime(parked.since), reason: parked.reason } }),
  };
}

export function attemptView(attempt: LoggedAttempt): Record<string, unknown> {
  const {
    at,
    durationMs,
    address,
    headers,
    status,
    errorClass,
    message,
    location,
    answer,
    retryAfterS,
    nextAt,
    parked,
  } = attempt;
  return {
    attempt: attempt.attempt,
    at: isoTime(at),
    duration_ms: durationMs,
    ...(address !== undefined && { address }),
    ...(headers !== undefined && { request_headers: headers }),
    ...(status !== undefined && { status }),
    ...(errorClass !== undefined && { error: errorClass }),
    ...(message !== undefined && { message }),
    ...(location !== undefined && { location }),
    ...(answer !== undefined && { answer }),
    ...(retryAfterS !== undefined && { retry_after_s: retryAfterS }),
    ...(parked && { parked: { since: isoTime(parked.since), reason: parked.reason } }),
    ...(nextAt !== undefined && { next_attempt_at: isoTime(nextAt) }),
  };
}
