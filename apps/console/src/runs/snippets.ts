// A call as curl, Python and TypeScript. The token comes from the environment, so a copied text has no secret.
export interface CallToCopy {
  readonly url: string;
  /** The body as JSON text. */
  readonly body: string;
  readonly stream: boolean;
}

export const LANGUAGES = ['curl', 'Python', 'TypeScript'] as const;
export type SnippetLanguage = (typeof LANGUAGES)[number];

/** Returns a text as one word of a POSIX shell. */
const shell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function curl({ url, body, stream }: CallToCopy): string {
  return [
    `curl ${stream ? '-N ' : ''}${shell(url)} \\`,
    `  -H "Authorization: Bearer $INFERENCE_PROXY_TOKEN" \\`,
    `  -H 'Content-Type: application/json' \\`,
    ...(stream ? [`  -H 'Accept: text/event-stream' \\`] : []),
    `  -d ${shell(body)}`,
  ].join('\n');
}

/** Returns a text as a Python literal. A JSON text is one, because Python knows all escapes of JSON. */
const literal = (text: string): string => JSON.stringify(text);

function python({ url, body, stream }: CallToCopy): string {
  const accept = stream ? `, "Accept": "text/event-stream"` : '';
  return `import os
import urllib.request

request = urllib.request.Request(
    ${literal(url)},
    data=${literal(body)}.encode(),
    headers={
        "Authorization": f"Bearer {os.environ['INFERENCE_PROXY_TOKEN']}",
        "Content-Type": "application/json"${accept},
    },
)
with urllib.request.urlopen(request) as answer:
    for line in answer:
        print(line.decode(), end="")
`;
}

function typescript({ url, body, stream }: CallToCopy): string {
  const accept = stream ? `\n    Accept: 'text/event-stream',` : '';
  return `const answer = await fetch(${literal(url)}, {
  method: 'POST',
  headers: {
    Authorization: \`Bearer \${process.env.INFERENCE_PROXY_TOKEN}\`,
    'Content-Type': 'application/json',${accept}
  },
  body: ${literal(body)},
});
${
  stream
    ? `for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) process.stdout.write(text);`
    : 'console.log(await answer.json());'
}
`;
}

export const snippet: Readonly<Record<SnippetLanguage, (call: CallToCopy) => string>> = {
  curl,
  Python: python,
  TypeScript: typescript,
};
