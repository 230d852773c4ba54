// Contract 1 and 2: the paths that OpenAI's clients call, also for errors that are answered before a controller is reached.

const OPENAI_PATH =
  /^\/v4\/[^/?]+\/[^/?]+\/[^/?]+\/(?:chat\/completions|completions|embeddings|responses|models(?:\/[^/?]+)?)(?:\?|$)/;

export const isOpenAiPath = (url = ''): boolean => OPENAI_PATH.test(url);
