/** A run as the one JSON object a line that `--json` prints: every key always there, unknown ones null. */
import type { DownloadedFile } from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run.js'

/** What a command knows of a run when it has done with it. */
export interface RunRecord {
  readonly id: string
  readonly kind: string | undefined
  readonly model: string | undefined
  /** The last look; undefined when there was none. */
  readonly state: RunState | undefined
  /** What the service said last: the run, or the body of the 201. */
  readonly service: unknown
  readonly files: readonly DownloadedFile[]
  readonly error: RushesError | undefined
  /** ISO 8601 in UTC, when this command saw it and the service does not say. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** From the sending of the create to the first sight of a final status. */
  readonly elapsedMs: number | undefined
}

const textField = (value: unknown, name: string): string | undefined => {
  const found =
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
  return typeof found === 'string' ? found : undefined
}

export const runJson = (run: RunRecord) => ({
  id: run.id,
  kind: run.kind ?? null,
  model: run.model ?? textField(run.service, 'model') ?? null,
  status: run.state?.status ?? textField(run.service, 'status') ?? null,
  output: run.state?.phase === 'succeeded' ? { urls: run.state.urls } : null,
  files: run.files,
  error: run.error === undefined ? null : { code: run.error.code, message: run.error.message },
  created_at: run.state?.createdAt ?? run.createdAt ?? null,
  finished_at: run.state?.finishedAt ?? run.finishedAt ?? null,
  elapsed_ms: run.elapsedMs === undefined ? null : Math.round(run.elapsedMs),
  service: run.service ?? null,
})
