/** `--sidecar`: writes `<file>.json` beside each file, so that an asset can be traced and created again. */
import { readFile, stat } from 'node:fs/promises'
import { obstacleAt } from '../../download/final-files.js'
import { RushesError } from '../../errors.js'
import { writeAtomically } from '../../host/files.js'
import { asRushesError } from '../../host/interrupts.js'
import { describeReason } from '../../host/system-error.js'
import { writeJson } from '../../protocol/json.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import { isoOrNull } from '../../protocol/units.js'
import type { Run } from '../../runs/run.js'

export const sidecarOf = (path: string): string => `${path}.json`

interface SidecarOptions {
  readonly address: string
  readonly overwrite: boolean
}

const fieldOf = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)

/**
 * Returns the record of one file. A field missing from the journal is taken from the service's response, else it is
 * null.
 */
const sidecarJson = (
  file: DownloadedFile,
  { id, known, state, finishedAt, elapsedMs }: Run,
  address: string,
) => ({
  model: known?.model ?? fieldOf(state?.service, 'model') ?? null,
  input: inputOf(known?.input, fieldOf(state?.service, 'input')),
  run_id: id,
  service: address,
  url: file.url,
  sha256: file.sha256,
  bytes: file.bytes,
  content_type: file.content_type,
  created_at: state?.createdAt ?? isoOrNull(known?.createdAtMs),
  finished_at: state?.finishedAt ?? finishedAt ?? null,
  elapsed_ms: elapsedMs === undefined ? null : Math.round(elapsedMs),
})

/** Returns the input as it was sent, with the seed that the service chose. */
function inputOf(sent: unknown, served: unknown): unknown {
  const seed = fieldOf(served, 'seed')
  return isObject(sent) && seed !== undefined ? { ...sent, seed } : (sent ?? served ?? null)
}

/** Whether the existing file is the sidecar of the same output, from an earlier command. */
async function isOurs(path: string, { sha256 }: DownloadedFile, { id }: Run): Promise<boolean> {
  // Opening a named pipe would wait for its other end.
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() !== true) return false
  const parsed = parseJson(await readFile(path, 'utf8').catch(() => ''))
  return parsed.ok && fieldOf(parsed.value, 'run_id') === id && fieldOf(parsed.value, 'sha256') === sha256
}

/** Writes one sidecar beside each file. Returns the errors: the files themselves are complete. */
export async function writeSidecars(
  files: readonly DownloadedFile[],
  run: Run,
  options: SidecarOptions,
): Promise<readonly RushesError[]> {
  const failed: RushesError[] = []
  for (const file of files)
    await writeSidecar(file, run, options).catch((error) =>
      failed.push(asRushesError(error).with({ runId: run.id })),
    )
  return failed
}

async function writeSidecar(
  file: DownloadedFile,
  run: Run,
  { address, overwrite }: SidecarOptions,
): Promise<void> {
  const path = sidecarOf(file.path)
  const failed = (what: string, options: { readonly hint?: string | undefined; readonly cause?: unknown }) =>
    new RushesError('download_failed', `${file.path} is complete, but its sidecar ${what}`, options)
  const obstacle = (await isOurs(path, file, run)) ? undefined : obstacleAt(path, overwrite)
  if (obstacle !== undefined) throw failed(`was not written: ${obstacle.message}`, { hint: obstacle.hint })
  try {
    await writeAtomically(path, `${writeJson(sidecarJson(file, run, address), { indent: 2 })}\n`)
  } catch (error) {
    throw failed(`${path} could not be written: ${describeReason(error)}`, { cause: error })
  }
}
