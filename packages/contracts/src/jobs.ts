// Jobs on the deliveries queue carry ids only. The run's record holds the content of the delivery and the sealed secret.
import { z } from 'zod';

const dueDeliverySchema = z.object({
  project: z.string(),
  runId: z.string(),
  /** The number of the due attempt, from 1. An attempt that was already made is not repeated. */
  attempt: z.number().int().min(1),
});

/** An attempt that is due. */
export type DueDelivery = z.infer<typeof dueDeliverySchema>;

/** A wake-up for one or more deliveries. Their records determine the next step, if any. */
export const deliveryJobSchema = z.object({ deliveries: z.array(dueDeliverySchema).min(1) });

export type DeliveryJob = z.infer<typeof deliveryJobSchema>;
