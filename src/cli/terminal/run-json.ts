/** A run as the JSON object that `--json` prints: every key is present, unknown ones are null. */
import type { DownloadedFile } from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import { isObject } from '../../protocol/parse.js'
import type { RunState } from '../../protocol/run-state.js'

/** What a command knows about a run at its end. */
export interface RunRecord {
  readonly id: string
  readonly kind: string | undefined
  readonly model: string | undefined
  /** The last status; undefined when none was received. */
  readonly state: RunState | undefined
  /** The last body from the service: the run, or the body of the 201. */
  readonly service: unknown
  readonly files: readonly DownloadedFile[]
  readonly error: RushesError | undefined
  /** ISO 8601 in UTC, by this machine's clock; used when the service gives no times. */
  readonly createdAt: string | undefined
  readonly finishedAt: string | undefined
  /** From sending the create to the first final status. */
  readonly elapsedMs: number | undefined
}

const textField = (value: unknown, name: string): string | undefined => {
  const found = isObject(value) ? value[name] : undefined
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
