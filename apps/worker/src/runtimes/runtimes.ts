// Contract 7: the kinds of runtimes. The manifest of an app selects the kind.
import type { MakeRuntime } from '../deployments/offered-version.ts';
import type { FunctionOptions } from './function-runtimes.ts';
import { type HttpServerOptions, httpServers } from './http-server/http-servers.ts';
import { nodeRuntimes } from './node.ts';
import { pythonRuntimes } from './python.ts';

/** Returns a function that creates runtimes without starting them. */
export function runtimes(options: FunctionOptions & HttpServerOptions): MakeRuntime {
  const functions = { python: pythonRuntimes(options), node: nodeRuntimes(options) };
  const servers = httpServers(options);
  return (place, version, manifest) => {
    const { server } = manifest;
    return server
      ? servers(place, version, { ...manifest, server })
      : functions[manifest.language](place, version, manifest);
  };
}
