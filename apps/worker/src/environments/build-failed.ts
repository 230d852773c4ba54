// Contract 7, "Dependencies": the environment of a version cannot be built.

/** The message is for the app's author. Another build of the same content may succeed, for example when an index is reachable again. */
export class BuildFailed extends Error {
  override readonly name = 'BuildFailed';
}
