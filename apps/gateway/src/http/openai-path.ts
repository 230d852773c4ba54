// Contract 1 and 2: recognizes the paths of OpenAI clients. Errors that occur before a controller runs need this check too.

const OPENAI_PATH =
  /^\/v4\/[^/?]+\/[^/?]+\/[^/?]+\/(?:chat\/completions|completions|embeddings|responses|models(?:\/[^/?]+)?)(?:\?|$)/;

export const isOpenAiPath = (url = ''): boolean => OPENAI_PATH.test(url);
