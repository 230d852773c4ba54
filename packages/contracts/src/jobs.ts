// Jobs on the deliveries queue carry ids only: what is sent, and the sealed secret, rest with the run.
import { z } from 'zod';

/** One attempt that is due, or (`attempt` 0) a delivery to be looked at again. */
export const deliveryJobSchema = z.object({
  project: z.string(),
  runId: z.string(),
  /** The attempt this job stands for, from 1; a job whose attempt was already made does nothing. */
  attempt: z.number().int().min(1),
});

export type DeliveryJob = z.infer<typeof deliveryJobSchema>;
