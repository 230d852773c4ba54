// The list of runs: pages that stay where they are while runs arrive. Contract 5, "List".
import { computed, signal } from '@preact/signals';
import { listRuns, type Run, type RunFilters } from '../api/api.ts';

const PAGE = 50;
/** A filtered page may be short. A click loads at most this many pages. */
const MOST_PAGES = 20;

interface PageOfRuns {
  readonly runs: readonly Run[];
  readonly cursor?: string;
}

export class RunListModel {
  readonly #project: string;
  readonly #filters: () => RunFilters;
  readonly runs = signal<readonly Run[] | undefined>(undefined);
  /** New runs that are not shown yet. */
  readonly #newer = signal<readonly Run[]>([]);
  readonly newer = computed(() => this.#newer.value.length);
  readonly cursor = signal<string | undefined>(undefined);
  readonly loading = signal(false);
  /** Whether new runs appear at once. */
  readonly follow = signal(true);

  /** @param filters called for each request, because a span of time ends now */
  constructor(project: string, filters: () => RunFilters) {
    this.#project = project;
    this.#filters = filters;
  }

  /** Loads the newest page. Shown runs change in place. */
  async refresh(signal: AbortSignal): Promise<void> {
    const page = await this.#page(undefined, signal);
    const shown = this.runs.peek();
    if (shown === undefined) {
      this.runs.value = page.runs;
      this.cursor.value = page.cursor;
      return;
    }
    const fresh = new Map(page.runs.map((run) => [run.run_id, run]));
    const known = new Set(shown.map(({ run_id: id }) => id));
    const first = shown[0]?.accepted_at ?? '';
    const newer = page.runs.filter(({ run_id: id, accepted_at: at }) => !known.has(id) && at >= first);
    this.runs.value = shown.map((run) => fresh.get(run.run_id) ?? run);
    this.#newer.value = newer;
    // A gap between the newest page and the shown runs would hide runs, so the list starts anew on request.
    if (this.follow.peek()) this.showNewer();
  }

  showNewer(): void {
    const newer = this.#newer.peek();
    this.#newer.value = [];
    if (newer.length > 0) this.runs.value = [...newer, ...(this.runs.peek() ?? [])];
  }

  /** Adds older runs below. */
  async older(): Promise<void> {
    const cursor = this.cursor.peek();
    if (cursor === undefined || this.loading.peek()) return;
    this.loading.value = true;
    // Following would move the rows away from the person who reads older runs.
    this.follow.value = false;
    try {
      const page = await this.#page(cursor);
      const known = new Set(this.runs.peek()?.map(({ run_id: id }) => id));
      const runs = page.runs.filter(({ run_id: id }) => !known.has(id));
      this.runs.value = [...(this.runs.peek() ?? []), ...runs];
      this.cursor.value = page.cursor;
    } finally {
      this.loading.value = false;
    }
  }

  /** Returns a page that is not short, unless the list ends. */
  async #page(start: string | undefined, signal?: AbortSignal): Promise<PageOfRuns> {
    const runs: Run[] = [];
    let cursor = start;
    const filters = this.#filters();
    for (let n = 0; n < MOST_PAGES; n += 1) {
      const page = await listRuns(this.#project, { ...filters, limit: PAGE, ...(cursor && { cursor }) }, signal);
      runs.push(...page.runs);
      cursor = page.cursor;
      if (cursor === undefined || runs.length >= PAGE) break;
    }
    return { runs, ...(cursor !== undefined && { cursor }) };
  }
}
