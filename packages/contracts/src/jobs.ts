// Jobs on the deliveries queue carry ids only: what is sent, and the sealed secret, rest with the run.
import { z } from 'zod';

export const dueDeliverySchema = z.object({
  project: z.string(),
  runId: z.string(),
  /** The attempt that is due, from 1; one that was made already is not made again. */
  attempt: z.number().int().min(1),
});

/** An attempt that is due. */
export type DueDelivery = z.infer<typeof dueDeliverySchema>;

/** A wake-up for one or more deliveries: their records say what is to be done, if anything. */
export const deliveryJobSchema = z.object({ deliveries: z.array(dueDeliverySchema).min(1) });

export type DeliveryJob = z.infer<typeof deliveryJobSchema>;
