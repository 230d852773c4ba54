// Contract 1, "Custom runtimes": the interface of all readers of an answer's body, and their limits.

export interface BodyReader {
  /** @throws ServiceError `output_too_large` over a limit, `upstream_reset` if the body contradicts its head */
  push(chunk: Buffer): void;
  /** Ends the body. @throws ServiceError as `push` does */
  end(): void;
}

export interface AnswerLimits {
  readonly maxItemBytes: number;
  /** Limit of a body that is kept whole. */
  readonly maxOutputBytes: number;
}
