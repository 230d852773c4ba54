// Contract 7, "Dependencies": reads the configuration files of pip, which uv does not read.
// Source: pip.pypa.io/en/stable/topics/configuration
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { BuildFailed } from './build-failed.ts';

const READ = `
import configparser, json, os, sys
config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
places = ["/etc/pip.conf", os.path.expanduser("~/.pip/pip.conf"), config + "/pip/pip.conf", sys.prefix + "/pip.conf"]
found = {}
own = os.environ.get("PIP_CONFIG_FILE")
for place in [] if own == os.devnull else [*places, *([own] if own else [])]:
    parser = configparser.RawConfigParser()
    parser.read(place)
    for section in ("global", "install"):
        if parser.has_section(section):
            for name, value in parser.items(section):
                found["PIP_" + name.replace("-", "_").upper()] = " ".join(value.split())
print(json.dumps(found))
`;
const LIMIT_MS = 20_000;
const variables = z.record(z.string(), z.string());

/** Returns the settings of pip's configuration files as variables such as `PIP_INDEX_URL`. @throws BuildFailed if a file has another form */
export async function pipConf(
  python: string,
  env: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  // The error of the parser may quote the file.
  const { stdout } = await promisify(execFile)(python, ['-I', '-c', READ], { env, timeout: LIMIT_MS }).catch(() => {
    throw new BuildFailed(
      'the configuration of pip on the worker cannot be read; `pip config debug` there lists its files',
    );
  });
  return variables.parse(JSON.parse(stdout));
}
