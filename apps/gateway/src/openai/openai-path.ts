// Contract 1 and 2: which paths OpenAI's clients speak to, for errors that are answered before a controller is reached.

const OPENAI_PATH =
  /^\/v4\/[^/?]+\/[^/?]+\/[^/?]+\/(?:chat\/completions|completions|embeddings|responses|models)(?:\?|$)/;

export const isOpenAiPath = (url: string): boolean => OPENAI_PATH.test(url);
