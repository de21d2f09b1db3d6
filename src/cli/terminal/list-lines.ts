/** A run of the journal as cells and as a JSON object. */
import type { JournalFile, JournalRun } from '../../journal/index.js'
import { isObject } from '../../protocol/parse.js'
import { printable } from '../../protocol/text.js'

/** The prompt on one line, or else the whole input. */
export function promptOf({ input }: JournalRun): string {
  const prompt = isObject(input) ? input.prompt : undefined
  return printable(typeof prompt === 'string' ? prompt : JSON.stringify(input))
}

/** Id or row key, status, kind, model, created_at, prompt, and where: the address, or `local`. */
export const listCells = (run: JournalRun): readonly string[] =>
  [
    run.id ?? run.key ?? '',
    run.status,
    run.kind ?? '',
    run.model,
    new Date(run.createdAtMs).toISOString(),
    promptOf(run),
    run.address,
  ].map(printable)

const timeOf = (ms: number | undefined): string | null =>
  ms === undefined ? null : new Date(ms).toISOString()

/** The keys that every command prints for a run, then those of the journal. */
export const listJson = (run: JournalRun, files: readonly JournalFile[]) => ({
  id: run.id ?? null,
  kind: run.kind ?? null,
  model: run.model,
  status: run.status,
  output: run.phase === 'succeeded' ? { urls: run.urls } : null,
  files,
  error: run.error === undefined ? null : { code: run.error.code, message: run.error.message },
  created_at: timeOf(run.createdAtMs),
  finished_at: timeOf(run.finishedAtMs),
  elapsed_ms: run.elapsedMs ?? null,
  service: null,
  key: run.key ?? null,
  address: run.address,
  profile: run.profile,
  input: run.input,
  request_id: run.requestId ?? null,
  answer:
    run.answer === undefined ? null : { status: run.answer.status ?? null, text: run.answer.text ?? null },
})
