// docs/cli.md: the page is the program's own help. `npm run page:cli` writes it, and page.test.ts compares it.
import type { Command } from 'commander';

const WIDTH = 112;

const HEAD = `# Command line

\`npx inference-proxy\` starts the program in the repository after \`npm start\` or \`npm run build\`. The program writes
results to standard output and everything else to standard error. In a terminal it asks for missing values. In a pipe
it never asks.

\`\`\`sh
npx inference-proxy init hello --template python
npx inference-proxy dev hello
\`\`\`

In another terminal:

\`\`\`sh
npx inference-proxy token --project demo | npx inference-proxy login
npx inference-proxy call hello/greet '{"name": "Ada"}'
\`\`\`

## Deploy

\`\`\`sh
npx inference-proxy token --project demo --scope "call runs:read runs:write apps:write" | npx inference-proxy login
npx inference-proxy deploy hello
npx inference-proxy rollback hello
\`\`\`

These rules choose the files of the bundle:

| rule | effect |
|---|---|
| always left out | \`.git\`, \`.venv\`, virtual environments, \`node_modules\`, \`__pycache__\`, \`*.pyc\`, \`.env\`, \`.env.*\` |
| \`.gitignore\` of every folder | leaves out what git leaves out |
| \`.dockerignore\` | leaves out what Docker leaves out |
| \`[deployment] exclude\` in the manifest | patterns in the form of \`.gitignore\` |
| \`[deployment] include\` | only files that match a pattern of the list |
| always packed | \`app.toml\` and \`cerebrium.toml\` |

- A broken upload starts again by itself. A version that the service has already is not uploaded.
- The name of the app is \`--app\`, \`[deployment] name\`, or the name of the folder.

## Connection

- \`INFERENCE_PROXY_TOKEN\` with \`INFERENCE_PROXY_URL\` (default: \`http://127.0.0.1:8080\`), or a profile of \`login\`.
  \`--profile\` takes precedence over the variables.
- Profiles are in \`~/.config/inference-proxy/profiles.json\` (\`XDG_CONFIG_HOME\`), which only you can read.
- The token of a profile is sent to the URL of this profile only.
- \`--project\` names the project. The default is the project of the profile or of the token.

## Scripts

- \`--json\` writes one JSON object, which is the answer of the service if there is one. \`stream\` and \`logs --follow\`
  write one object on each line.
- With \`--json\`, an error is one JSON object on standard error: \`{"error": {"code", "message"}}\`.
- The exit code names the kind of the failure.
- \`token\`, \`check\` and \`dev\` need the repository.
`;

/** Returns the page of a program. */
export function cliPage(program: Command): string {
  const commands = leaves(program);
  const sections = commands.map((command) => `## ${nameOf(command)}\n\n${block(command)}`);
  return `${[HEAD, `## All commands\n\n${block(program)}`, ...sections].join('\n')}`;
}

/** Returns the commands that do something. Commands such as \`runs\` only group others. */
function leaves(command: Command): Command[] {
  const shown = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help');
  return shown.flatMap((one) => (one.commands.length > 0 ? leaves(one) : [one]));
}

const nameOf = (command: Command): string =>
  command.parent === null || command.parent.parent === null
    ? command.name()
    : `${nameOf(command.parent)} ${command.name()}`;

const block = (command: Command): string => `\`\`\`text\n${helpOf(command).trimEnd()}\n\`\`\`\n`;

/** Returns the text that `--help` prints in a terminal of this width. */
function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text;
}
