/** Renders one run: loads its references, calls the engine, and measures and stores its files. */
import { createHash } from 'node:crypto'
import { lstat, mkdir, mkdtemp, open, rename, rm, utimes } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { onAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import type { Engine, RenderedFile, RenderJob } from '../engines/engine.js'
import { LOCAL_DEFAULTS } from '../local-models.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import { newToken } from '../secrets.js'
import type { StoredOutput, StoredRun } from '../stored-run.js'

export interface RenderOptions {
  readonly engine: Engine
  readonly references: ReferenceLoader
  readonly clock: Pick<Clock, 'sleep'>
  /** The engine's folder is created here … */
  readonly workFolder: string
  /** … and moves here when it is complete. */
  readonly outputsFolder: string
}

/** How long an aborted engine may take to stop. */
const ABORT_GRACE_MS = 3_000

/** Rejects with the engine's error, or with the signal's reason. */
export async function render(
  run: StoredRun,
  { engine, references, clock, workFolder, outputsFolder }: RenderOptions,
  signal: AbortSignal,
): Promise<readonly StoredOutput[]> {
  await mkdir(workFolder, { recursive: true, mode: 0o700 })
  const folder = await mkdtemp(join(workFolder, `${run.id}-`))
  try {
    const job: RenderJob = {
      kind: run.kind,
      run: { id: run.id, model: run.model },
      input: inputFor(run),
      folder,
      references: await references.load(run.input, signal),
      signal,
    }
    const files = await withGracePeriod(engine.render(job), signal, clock)
    const token = newToken()
    const outputs: StoredOutput[] = []
    for (const file of files) outputs.push(await measureOutput(folder, file, token))
    if (outputs.length === 0) throw new Error('The renderer created no output.')
    signal.throwIfAborted()
    // `--retain` counts from here, whenever the engine wrote its last file.
    await utimes(folder, new Date(), new Date())
    await rename(folder, join(outputsFolder, token))
    return outputs
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

/** With defaults applied, and image_urls as text: the bytes go to the engine as references. */
function inputFor({ kind, input }: StoredRun): Readonly<Record<string, unknown>> {
  const sources = input.image_urls
  const complete = { ...LOCAL_DEFAULTS[kind], ...input }
  if (!Array.isArray(sources)) return complete
  const image_urls = sources.map((source) =>
    typeof source === 'string' ? source : `sha256:${source.sha256}`,
  )
  return { ...complete, image_urls }
}

/** The outcome of the work, or the signal's reason `ABORT_GRACE_MS` after it is aborted. */
async function withGracePeriod<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
  clock: Pick<Clock, 'sleep'>,
): Promise<Value> {
  const done = new AbortController()
  let forget = () => {}
  const stopped = new Promise<never>((_, reject) => {
    forget = onAbort(signal, () => {
      clock.sleep(ABORT_GRACE_MS, done.signal).then(
        () => reject(signal.reason),
        () => {},
      )
    })
  })
  try {
    return await Promise.race([work, stopped])
  } finally {
    done.abort()
    forget()
  }
}

/** Hashes the file, for its strong ETag, and syncs it to disk. */
async function measureOutput(
  folder: string,
  { name, contentType }: RenderedFile,
  token: string,
): Promise<StoredOutput> {
  if (basename(name) !== name || name.startsWith('.') || !/^[^\\\u0000-\u001f\u007f]{1,200}$/.test(name))
    throw new Error('The name of an output of the renderer is not allowed.')
  const path = join(folder, name)
  if (!(await lstat(path)).isFile()) throw new Error(`The output ${name} of the renderer is not a file.`)
  const file = await open(path, 'r+')
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
