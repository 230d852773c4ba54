// runtimes: the kinds there are, each chosen by what an app's manifest says.
import type { MakeRuntime } from '../deployments/versions.ts';
import { type HttpServerOptions, httpServers } from './http-server/http-servers.ts';
import { type PythonOptions, pythonRuntimes } from './python.ts';

/** Makes runtimes, of whatever kind; not yet started. */
export function runtimes(options: PythonOptions & HttpServerOptions): MakeRuntime {
  const python = pythonRuntimes(options);
  const servers = httpServers(options);
  return (place, version, manifest) => {
    const { server } = manifest;
    return server ? servers(place, version, { ...manifest, server }) : python(place, version, manifest);
  };
}
