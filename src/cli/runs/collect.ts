/** The outputs of a run that has succeeded, brought home. What goes wrong becomes part of its record. */
import type { DownloadedFile, Output } from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run.js'
import { asRushesError, interrupted } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import type { RunRecord } from '../terminal/run-json.js'
import type { Following, Known } from './follow.js'
import { writeSidecar } from './sidecar.js'
import type { Watched } from './watch.js'

/** The outputs of a watched run to where they belong. Never rejects. */
export async function collect(following: Following, watched: Watched): Promise<RunRecord> {
  const { known, state, error, finishedAt, elapsedMs } = watched
  const record: RunRecord = {
    id: known.id,
    kind: known.kind,
    model: known.model,
    state,
    service: state?.service ?? known.service,
    files: [],
    error,
    createdAt: known.createdAt,
    finishedAt,
    elapsedMs,
  }
  if (state?.phase !== 'succeeded' || error !== undefined) return record
  return { ...record, ...(await download(following, watched, state)) }
}

interface Downloaded {
  readonly files: readonly DownloadedFile[]
  readonly error: RushesError | undefined
}

async function download(following: Following, watched: Watched, state: RunState): Promise<Downloaded> {
  const { delivery, downloader, namer, interrupts } = following
  const { id } = watched.known
  if (delivery.target === undefined || downloader === undefined) return { files: [], error: undefined }
  try {
    const results = await downloader.download(outputsOf(following, watched.known, state), {
      target: delivery.target,
      namer,
      overwrite: delivery.overwrite,
      earlier: following.recorder.filesOf(id),
      stdout: delivery.target.kind === 'stdout' ? following.stdout() : undefined,
      signal: interrupts.first,
      onProgress: (transfer) => following.onTransfer(id, transfer),
    })
    for (const result of results)
      if (result.ok) for (const warning of result.warnings) following.warn(warning)
    const files = results.flatMap((result) => (result.ok ? [result.file] : []))
    following.recorder.files(id, files)
    const errors = results.flatMap((result) => (result.ok ? [] : [result.error]))
    errors.push(...(await sidecarsFailed(following, watched, state, files)))
    return { files, error: firstError(errors, id, following) }
  } catch (thrown) {
    if (thrown instanceof Interruption) {
      const pickUp = `The run has succeeded and is paid for. Fetch its outputs with: ${following.resume(id, 'download')}`
      return {
        files: [],
        error: interrupted(thrown, 'Interrupted during the download.', pickUp).with({ runId: id }),
      }
    }
    return { files: [], error: asRushesError(thrown).with({ runId: id }) }
  }
}

async function sidecarsFailed(
  { delivery, address }: Following,
  { known, finishedAt, elapsedMs }: Watched,
  state: RunState,
  files: readonly DownloadedFile[],
): Promise<readonly RushesError[]> {
  if (!delivery.sidecar) return []
  const failed: RushesError[] = []
  for (const file of files)
    await writeSidecar({
      known,
      state,
      file,
      address,
      overwrite: delivery.overwrite,
      finishedAt,
      elapsedMs,
    }).catch((error) => failed.push(asRushesError(error).with({ runId: known.id })))
  return failed
}

function outputsOf({ client, interrupts }: Following, known: Known, state: RunState): readonly Output[] {
  // One question for fresh links serves every output of the run.
  let fresh: Promise<RunState> | undefined
  return state.urls.map((url, at) => ({
    url,
    runId: known.id,
    kind: known.kind,
    freshUrl: async () => {
      fresh ??= client.get(known.id, interrupts.first)
      return (await fresh).urls[at]
    },
  }))
}

function firstError(
  errors: readonly RushesError[],
  id: string,
  { resume }: Following,
): RushesError | undefined {
  const [first, ...others] = errors
  if (first === undefined) return undefined
  const more = others.length === 0 ? '' : ` (and ${others.length} more outputs of this run)`
  return first.with({
    message: `${first.message}${more}`,
    hint: [first.hint, `Fetch its outputs with: ${resume(id, 'download')}`].filter(Boolean).join(' '),
    runId: id,
  })
}
