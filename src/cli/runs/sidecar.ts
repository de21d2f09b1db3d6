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
import type { RunState } from '../../protocol/run-state.js'
import type { KnownRun } from '../../runs/run.js'

export const sidecarOf = (path: string): string => `${path}.json`

interface SidecarOptions {
  readonly known: KnownRun
  readonly state: RunState
  readonly file: DownloadedFile
  readonly address: string
  readonly overwrite: boolean
  readonly finishedAt: string | undefined
  readonly elapsedMs: number | undefined
}

const fieldOf = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)

/**
 * Returns the record of one file. A field missing from the journal is taken from the service's response, else it is
 * null.
 */
const sidecarJson = (
  { known, state, file, address, finishedAt, elapsedMs }: SidecarOptions,
  size: { readonly width: number; readonly height: number } | undefined,
) => ({
  model: known.model ?? fieldOf(state.service, 'model') ?? null,
  input: inputOf(known.input, fieldOf(state.service, 'input')),
  run_id: state.id,
  service: address,
  url: file.url,
  sha256: file.sha256,
  bytes: file.bytes,
  content_type: file.content_type,
  width: size?.width ?? null,
  height: size?.height ?? null,
  created_at: state.createdAt ?? known.createdAt ?? null,
  finished_at: state.finishedAt ?? finishedAt ?? null,
  elapsed_ms: elapsedMs === undefined ? null : Math.round(elapsedMs),
})

/** Returns the input as it was sent, with the seed that the service chose. */
function inputOf(sent: unknown, served: unknown): unknown {
  const seed = fieldOf(served, 'seed')
  return isObject(sent) && seed !== undefined ? { ...sent, seed } : (sent ?? served ?? null)
}

/** Whether the existing file is the sidecar of the same output, from an earlier command. */
async function isOurs(path: string, { state, file }: SidecarOptions): Promise<boolean> {
  // Opening a named pipe would wait for its other end.
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() !== true) return false
  const parsed = parseJson(await readFile(path, 'utf8').catch(() => ''))
  if (!parsed.ok || !isObject(parsed.value)) return false
  return parsed.value.run_id === state.id && parsed.value.sha256 === file.sha256
}

/** Writes one sidecar beside each file. Returns the errors: the files themselves are complete. */
export async function writeSidecars(
  files: readonly DownloadedFile[],
  options: Omit<SidecarOptions, 'file'>,
): Promise<readonly RushesError[]> {
  const failed: RushesError[] = []
  for (const file of files)
    await writeSidecar({ ...options, file }).catch((error) =>
      failed.push(asRushesError(error).with({ runId: options.known.id })),
    )
  return failed
}

async function writeSidecar(options: SidecarOptions): Promise<void> {
  const path = sidecarOf(options.file.path)
  const obstacle = (await isOurs(path, options)) ? undefined : obstacleAt(path, options.overwrite)
  if (obstacle !== undefined)
    throw new RushesError(
      'download_failed',
      `${options.file.path} is complete, but its sidecar was not written: ${obstacle.message}`,
      { hint: obstacle.hint },
    )
  const { pictureSizeOf } = await import('../../preview/open-picture.js')
  const size = options.file.content_type.startsWith('image/')
    ? await pictureSizeOf(options.file.path)
    : undefined
  try {
    await writeAtomically(path, `${writeJson(sidecarJson(options, size), { indent: 2 })}\n`)
  } catch (error) {
    throw new RushesError(
      'download_failed',
      `${options.file.path} is complete, but its sidecar ${path} could not be written: ${describeReason(error)}`,
      { cause: error },
    )
  }
}
