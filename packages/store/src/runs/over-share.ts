// Contract 9: the error of a run whose items or result exceed its project's share of the run store.
import type { ErrorFields } from '@inference-proxy/contracts';

export const overShare: ErrorFields = {
  code: 'output_too_large',
  message: 'The output exceeds the share of the run store that its project may use.',
};
