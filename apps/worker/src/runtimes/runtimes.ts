// Contract 7: the kinds of runtimes. The manifest of an app selects the kind.
import type { MakeRuntime } from '../deployments/versions.ts';
import { type HttpServerOptions, httpServers } from './http-server/http-servers.ts';
import { type PythonOptions, pythonRuntimes } from './python.ts';

/** Returns a function that creates runtimes without starting them. */
export function runtimes(options: PythonOptions & HttpServerOptions): MakeRuntime {
  const python = pythonRuntimes(options);
  const servers = httpServers(options);
  return (place, version, manifest) => {
    const { server } = manifest;
    return server ? servers(place, version, { ...manifest, server }) : python(place, version, manifest);
  };
}
