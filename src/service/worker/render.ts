/** Renders one run: calls the engine, then computes the checksums of the output files and stores them. */
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { createLateSignal, settlesWithin, type Timeout, untilAborted, withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { makeOwnFolder, type OwnFolder } from '../../host/own-folder.js'
import { describeReason } from '../../host/system-error.js'
import { isSentImage } from '../../protocol/media.js'
import { IMAGE_URLS, mediaParameters, mediaSources, withMedia } from '../../protocol/media-parameters.js'
import type { ModelInput, ModelSchema } from '../../protocol/models.js'
import { defaultsOf } from '../../protocol/price.js'
import {
  type Engine,
  JobDetached,
  type RenderedFile,
  type RenderJob,
  RunCanceled,
  STOP_GRACE_MS,
  type StoredJob,
} from '../engines/engine.js'
import { withoutExtraArguments } from '../engines/sent-parameters.js'
import { type FileWriter, StorageUnavailable, untilStorageAnswers } from '../files/contract.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import { newToken } from '../rules/secrets.js'
import { type HeldRun, outputKey, type StoredOutput, type StoredRun } from '../store/run.js'
import { isDiskUnusable } from './log.js'

export interface RenderParts {
  readonly engine: Engine
  readonly clock: Clock
  /** Parent of the folders that the engine writes to and reads from. */
  readonly workFolder: string
  /** Storage for the complete files. */
  readonly outputs: FileWriter
  onError(error: unknown): void
}

/** The input of the model of a run. */
interface ModelOfRender {
  readonly schema?: ModelSchema | undefined
}

/** Called during a render, before the run has ended. */
export interface RenderRecorders extends ModelOfRender {
  /** Called with the progress of the engine, from 0 to 1. */
  onProgress(fraction: number): void
  /** Called with the number of jobs before this one in the queue of a server. */
  onPosition(position: number): void
  /** Stores the job of the engine with the run. */
  saveJob(job: StoredJob): Promise<void>
}

/** The time limit of the engine. Storing the files is not limited. */
interface RenderLimit extends Timeout {
  readonly signal: AbortSignal
}

/** Time that an aborted engine has to stop, after the time for the answer to a create. */
const ABORT_GRACE_MS = 500

/** Rejects with the error of the engine, of the time limit, of the storage or of `limit.signal`. */
export async function render(
  run: HeldRun,
  references: RenderJob['references'],
  options: RenderParts & RenderRecorders,
  limit: RenderLimit,
): Promise<readonly StoredOutput[]> {
  const { engine, clock, outputs: stored, onError } = options
  const { signal } = limit
  const folder = await makeFolderOf(run, options, '')
  const outputs: StoredOutput[] = []
  const renderFiles = async (limited: AbortSignal) => {
    // An engine may only listen for an abort that comes later, and its first request may be paid.
    limited.throwIfAborted()
    const job = jobOf(run, references, options, folder, limited)
    return await withGracePeriod(engine.render(job), limited, clock)
  }
  try {
    const files = await withTimeout(renderFiles, limit)
    await folder.check()
    const token = newToken(run.id)
    for (const file of files) outputs.push(await measureOutput(folder, file, token))
    if (outputs.length === 0) throw new Error('The engine wrote no output file.')
    await storeOutputs(folder, outputs, options, signal)
    return outputs
  } catch (error) {
    await removeOutputs(outputs, stored).catch(onError)
    throw error
  } finally {
    await folder.remove().catch(onError)
  }
}

/** A result that is there although the worker stops is stored, with one try: it may have been paid for, and not be there again. */
async function storeOutputs(
  folder: OwnFolder,
  outputs: readonly StoredOutput[],
  { outputs: stored, clock, onError }: RenderParts,
  signal: AbortSignal,
): Promise<void> {
  const lateMs = () => (signal.reason instanceof JobDetached ? signal.reason.graceMs : 0)
  const late = createLateSignal(signal, lateMs, clock)
  try {
    late.signal.throwIfAborted()
    for (const output of outputs) {
      const { contentType, name } = output
      const source = { path: folder.entry(name) }
      const put = () => stored.put(outputKey(output), source, { contentType, signal: late.signal })
      await (signal.aborted ? put() : untilStorageAnswers(put, { clock, signal, onError }))
    }
  } finally {
    late.end()
  }
}

function jobOf(
  run: HeldRun,
  references: RenderJob['references'],
  { schema, onProgress, onPosition, saveJob }: RenderRecorders,
  folder: OwnFolder,
  signal: AbortSignal,
): RenderJob {
  const sources = mediaSources(run.input, mediaOf(schema))
  const filesOf = (name: string) => references.filter((_, index) => sources[index]?.parameter === name)
  const names = sources.map(({ parameter }) => parameter).filter((name) => name !== IMAGE_URLS)
  return {
    kind: run.kind,
    run: { id: run.id, model: run.model },
    input: inputFor(run, schema),
    folder: folder.path,
    references: filesOf(IMAGE_URLS),
    media: Object.fromEntries(names.map((name) => [name, filesOf(name)])),
    signal,
    document: run.document,
    stored: run.job,
    save: saveJob,
    onProgress,
    onPosition,
  }
}

async function makeFolderOf(
  { id }: HeldRun,
  { workFolder }: RenderParts,
  ending: string,
): Promise<OwnFolder> {
  await mkdir(workFolder, { recursive: true, mode: 0o700 })
  return await makeOwnFolder(workFolder, `${id}-${ending}`)
}

export async function removeOutputs(outputs: readonly StoredOutput[], stored: FileWriter): Promise<void> {
  for (const output of outputs) await stored.remove(outputKey(output))
}

/** Runs `work` with the loaded references of the run, then deletes them. */
export async function withReferences<Result>(
  run: HeldRun,
  options: RenderParts & ModelOfRender & { readonly references: ReferenceLoader },
  signal: AbortSignal,
  work: (references: RenderJob['references']) => Promise<Result>,
): Promise<Result> {
  const { references, schema, clock, onError } = options
  const { job } = run
  const media = mediaOf(schema)
  // A run that was sent is not sent again, so it needs no references.
  const isSent = job?.handle !== undefined || job?.intent !== undefined
  if (mediaSources(run.input, media).length === 0 || isSent) return await work([])
  const folder = await makeFolderOf(run, options, 'references-')
  const load = () =>
    references.load(run, folder.path, signal, media).catch((error) => {
      // Retry after a full disk or a locked database, as after unavailable storage.
      throw isDiskUnusable(error) ? new StorageUnavailable(describeReason(error), { cause: error }) : error
    })
  try {
    return await work(await untilStorageAnswers(load, { clock, signal, onError }))
  } finally {
    await folder.remove().catch(onError)
  }
}

/**
 * Returns the input as every engine gets it: the fields that the model declares, with defaults applied, and without texts
 * that a server would execute. Others are kept with the run, and a provider might charge for them. Replaces embedded media by
 * their checksums; the engine gets their bytes as files.
 */
function inputFor({ input }: StoredRun, schema: ModelSchema | undefined): ModelInput {
  const isDeclared = ([name]: [string, unknown]) => Object.hasOwn(schema?.properties ?? {}, name)
  const texts = withoutExtraArguments(input) as ModelInput
  const declared = Object.fromEntries(Object.entries(texts).filter(isDeclared))
  const complete = { ...(schema && defaultsOf(schema)), ...declared }
  const embedded = mediaSources(complete, mediaOf(schema)).flatMap((source) =>
    isSentImage(source.value) ? [{ ...source, value: `sha256:${source.value.sha256}` }] : [],
  )
  return withMedia(complete, embedded)
}

/** Names of the media parameters. */
const mediaOf = (schema: ModelSchema | undefined): readonly string[] => [...mediaParameters(schema).keys()]

/** Time after its time limit in which an engine can cancel its job, which may have been paid for. */
const LIMIT_GRACE_MS = 30_000

function graceOf(reason: unknown): number {
  if (reason instanceof JobDetached) return reason.graceMs
  return reason instanceof RunCanceled ? STOP_GRACE_MS : LIMIT_GRACE_MS
}

/**
 * Settles like `work`. Once the signal is aborted, `work` has three seconds to settle, or its own grace; then rejects with the
 * signal's reason.
 */
export async function withGracePeriod<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
  clock: Clock,
): Promise<Value> {
  const stopped = untilAborted(signal).then(async () => {
    if (await settlesWithin(graceOf(signal.reason) + ABORT_GRACE_MS, work, clock)) return await work
    throw signal.reason
  })
  return await Promise.race([work, stopped])
}

/** Computes the checksum of the file, which is its strong ETag, and syncs the file to disk. */
async function measureOutput(
  folder: OwnFolder,
  { name, contentType }: RenderedFile,
  token: string,
): Promise<StoredOutput> {
  if (name.startsWith('.') || name.includes('/') || !/^[^\\\u0000-\u001f\u007f]{1,200}$/.test(name))
    throw new Error('The engine gave an output an invalid name.')
  const file = await folder.openFile(name)
  try {
    const hash = createHash('sha256')
    let bytes = 0
    for await (const chunk of file.createReadStream({ autoClose: false, start: 0 })) {
      hash.update(chunk as Buffer)
      bytes += (chunk as Buffer).byteLength
    }
    await file.sync()
    return { token, name, contentType, bytes, sha256: hash.digest('hex') }
  } finally {
    await file.close()
  }
}
