/**
 * Thumbnails of finished runs. An engine can write any file, so a separate process decodes the pictures: two at a time,
 * each with a time limit.
 */
import { createWriteStream } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { makeOwnFolder } from '../../host/own-folder.js'
import { createSlots } from '../../host/slots.js'
import { type Engine, RendererClosed, RendererCrashed } from '../engines/engine.js'
import { type FileStore, type FoundFile, StorageUnavailable } from '../files/contract.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import { outputKey, type StoredOutput } from '../store/run.js'
import { isDiskUnusable } from '../worker/log.js'

const MAX_AT_ONCE = 2
/** Maximum number of waiting thumbnails: about 15 s of work with pictures of 3840 pixels. */
const MAX_WAITING = 200
const MAX_BYTES = 64 * 1_048_576
/** Time limit of one thumbnail. The process has a low priority: on a busy machine it needed more than 10 s. */
const TIMEOUT_MS = 30_000
const noThumbnail = () => refusalSaying('not_found', 'No thumbnail can be made of this picture.')

/**
 * Makes a WebP of a picture. An abort removes a call that waits for a slot. Throws `Refusal`: 404 if the picture cannot be
 * decoded, 410, 503.
 */
export type MakeThumbnail = (picture: StoredOutput, signal: AbortSignal) => Promise<Uint8Array>

interface ThumbnailOptions {
  readonly files: FileStore
  /** Makes one file from the picture at `input.path`. */
  readonly engine: Engine
  readonly clock: Clock
  onError(error: unknown): void
}

export function createThumbnails(options: ThumbnailOptions): MakeThumbnail {
  const slots = createSlots(MAX_AT_ONCE, {
    maxWaiting: MAX_WAITING,
    refusal: () => refusalSaying('overloaded', 'Too many thumbnails are requested at this moment.'),
  })
  return async (picture, signal) => {
    const file = await options.files.find(outputKey(picture))
    if (file === undefined) throw new Refusal('gone')
    if (file.bytes > MAX_BYTES) throw noThumbnail()
    return await slots.use(
      () => make(options, picture, file).catch((error) => refuse(error, options.onError)),
      { signal },
    )
  }
}

/** Throws the error to send: a picture that cannot be decoded has no thumbnail. */
function refuse(error: unknown, onError: (error: unknown) => void): never {
  if (error instanceof RendererClosed) throw new Refusal('not_ready')
  if (error instanceof StorageUnavailable || isDiskUnusable(error)) throw error
  if (error instanceof RendererCrashed) onError(error)
  throw noThumbnail()
}

async function make(
  { files, engine, clock, onError }: ThumbnailOptions,
  picture: StoredOutput,
  file: FoundFile,
): Promise<Uint8Array> {
  const folder = await makeOwnFolder(tmpdir(), 'rushes-thumbnail-')
  const work = async (signal: AbortSignal) => {
    const path =
      files.pathOf?.(outputKey(picture)) ?? (await copy(file, join(folder.path, 'picture'), signal))
    const job = { kind: 'image', input: { path }, folder: folder.path, references: [], signal } as const
    const [made] = await engine.render(job)
    await folder.check()
    const thumbnail = await folder.openFile(made?.name ?? '')
    return await thumbnail.readFile().finally(() => thumbnail.close())
  }
  try {
    return await withTimeout(work, { timeoutMs: TIMEOUT_MS, reason: noThumbnail, clock })
  } finally {
    await folder.remove().catch(onError)
  }
}

async function copy(file: FoundFile, path: string, signal: AbortSignal): Promise<string> {
  await pipeline(await file.read(), createWriteStream(path, { mode: 0o600 }), { signal })
  return path
}
