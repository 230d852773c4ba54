// `inference-proxy deploy` packs exactly the files that the rules of the folder allow.
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pack, versionName } from './bundle.ts';
import { deploymentKeys } from './manifest-keys.ts';
import { packedFiles } from './packed-files.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'packed-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

let made = 0;
async function folder(files: Record<string, string>): Promise<string> {
  const path = join(root, `app-${++made}`);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, file)), { recursive: true });
    await writeFile(join(path, file), text);
  }
  return path;
}
const packed = (path: string): string[] => packedFiles(path, deploymentKeys(path));

test('without rules all files are packed, except folders of tools and files with secrets', async () => {
  const path = await folder({
    'main.py': '',
    'data/words.txt': '',
    '.streamlit/config': '',
    '.git/HEAD': '',
    '.venv/pyvenv.cfg': '',
    'my-env/pyvenv.cfg': '',
    'my-env/lib/x.py': '',
    'node_modules/a/index.js': '',
    '__pycache__/main.cpython-312.pyc': '',
    '.env': 'SECRET=1',
    '.env.local': 'SECRET=1',
  });
  expect(packed(path)).toEqual(['.streamlit/config', 'data/words.txt', 'main.py']);
});

test('.gitignore of every folder counts, and an inner rule wins', async () => {
  const path = await folder({
    '.gitignore': '*.log\n/build/\n',
    'main.py': '',
    'a.log': '',
    'build/x': '',
    'sub/.gitignore': '!keep.log\nown.txt\n',
    'sub/keep.log': '',
    'sub/other.log': '',
    'sub/own.txt': '',
    'sub/build/x': '',
  });
  expect(packed(path)).toEqual(['.gitignore', 'main.py', 'sub/.gitignore', 'sub/build/x', 'sub/keep.log']);
});

test('.gitignore leaves out what git leaves out', async () => {
  const path = await folder({
    '.gitignore': 'a*\n!ab\n**/deep/*.txt\n/root.txt\nfolder/\n\\#hash\n',
    a1: '',
    ab: '',
    'x/deep/1.txt': '',
    'x/deep/y/2.txt': '',
    'root.txt': '',
    'sub/root.txt': '',
    'folder/in': '',
    'sub/folder': '',
    '#hash': '',
  });
  execFileSync('git', ['init', '--quiet'], { cwd: path });
  const listed = execFileSync('git', ['ls-files', '--others', '--exclude-standard'], { cwd: path, encoding: 'utf8' });
  expect(packed(path)).toEqual(listed.trimEnd().split('\n').sort());
});

test('.dockerignore counts with the rules of Docker', async () => {
  const path = await folder({
    '.dockerignore': '*.md\n!README.md\ndata\n**/*.tmp\n',
    'README.md': '',
    'other.md': '',
    'sub/inner.md': '',
    'data/x': '',
    'sub/a.tmp': '',
  });
  expect(packed(path)).toEqual(['.dockerignore', 'README.md', 'sub/inner.md']);
});

test.each(['', 'cerebrium.'])(
  'include and exclude of [%sdeployment] choose files, and manifests are always packed',
  async (prefix) => {
    const path = await folder({
      'cerebrium.toml': `[${prefix}deployment]\nname = "mine"\ninclude = ["./*.py", "models/"]\nexclude = ["secret.py"]`,
      'main.py': '',
      'secret.py': '',
      'notes.txt': '',
      'models/a/weights': '',
    });
    expect(packed(path)).toEqual(['cerebrium.toml', 'main.py', 'models/a/weights']);
    expect(deploymentKeys(path).name).toBe('mine');
  },
);

test('a key of app.toml wins over the key of cerebrium.toml; a wrong key is refused', async () => {
  const path = await folder({
    'app.toml': '[deployment]\nexclude = ["b"]',
    'cerebrium.toml': '[deployment]\nexclude = ["a"]',
    a: '',
    b: '',
  });
  expect(packed(path)).toEqual(['a', 'app.toml', 'cerebrium.toml']);
  expect(() => packed(join(path, '..', 'none'))).toThrow();
  const wrong = await folder({ 'app.toml': '[deployment]\nexclude = "a"' });
  expect(() => packed(wrong)).toThrow(/exclude in .* is wrong: expected a list of patterns/);
});

test('the archive has exactly the chosen files, and a name with @ is a file', async () => {
  const path = await folder({ 'main.py': 'x', '@other': 'y', 'sub/z': '' });
  await symlink('main.py', join(path, 'link.py'));
  const archive = await pack(path, packed(path));
  const listed = execFileSync('tar', ['-tzf', archive.path], { encoding: 'utf8' }).trimEnd().split('\n');
  expect(listed.sort()).toEqual(['./@other', './link.py', './main.py', './sub/z']);
  archive.remove();
});

test('the version depends on paths, contents, links and the executable bit only', async () => {
  const one = await folder({ 'main.py': 'x', 'sub/é': '1' });
  const two = await folder({ 'sub/é': '1', 'main.py': 'x' });
  const name = (path: string): Promise<string> => versionName(path, packed(path));
  expect(await name(one)).toBe(await name(two));
  execFileSync('chmod', ['u+x', join(two, 'main.py')]);
  expect(await name(one)).not.toBe(await name(two));
});
