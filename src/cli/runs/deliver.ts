/** Downloads the outputs of a run that has succeeded. What goes wrong becomes part of its record. */

import { setTimeout as pause } from 'node:timers/promises'
import type { Client } from '../../client/index.js'
import type {
  DownloadedFile,
  Downloader,
  Namer,
  RunOutput,
  DownloadProgress as Transfer,
} from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run-state.js'
import type { Delivery } from '../flags/delivery.js'
import { asRushesError, interrupted } from '../process/exit.js'
import { Interruption, type Interrupts } from '../process/interrupts.js'
import type { OutputStream } from '../process/io.js'
import { plural } from '../terminal/plural.js'
import type { RunRecord } from '../terminal/run-json.js'
import type { FollowedRun } from './follow-run.js'
import type { KnownRun } from './known-run.js'
import type { Recorder } from './record.js'
import { writeSidecar } from './sidecar.js'

export interface DeliverParts {
  readonly client: Pick<Client, 'get'>
  readonly interrupts: Interrupts
  readonly delivery: Delivery
  readonly downloader: Downloader | undefined
  readonly namer: Namer | undefined
  /** Standard output as a stream, for the bytes of `-o -`. */
  stdout(): OutputStream
  readonly recorder: Pick<Recorder, 'recordFiles' | 'filesOf'>
  /** The service, as a sidecar names it. */
  readonly address: string
  /** The command that resumes with a run. */
  resume(id: string, verb: 'wait' | 'download'): string
  warn(message: string): void
  onTransfer(id: string, transfer: Transfer): void
}

/** Each commit waits for the disk several times: 200 small files would take twice as long with one for each. */
const COMMIT_PAUSE_MS = 50

/** Resolves when the file is recorded: the first at once, later ones together, once in 50 ms. */
function inSharedCommits(record: (files: readonly DownloadedFile[]) => void) {
  const waiting: DownloadedFile[] = []
  let next: Promise<void> | undefined
  let earliestMs = 0
  return (file: DownloadedFile): Promise<void> => {
    waiting.push(file)
    next ??= pause(Math.max(0, earliestMs - performance.now())).then(() => {
      next = undefined
      earliestMs = performance.now() + COMMIT_PAUSE_MS
      record(waiting.splice(0))
    })
    return next
  }
}

/** The record of a run that was followed, with its files. Never rejects. */
export async function deliver(parts: DeliverParts, run: FollowedRun): Promise<RunRecord> {
  const { known, state, error, finishedAt, elapsedMs } = run
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
  return { ...record, ...(await download(parts, run, state)) }
}

interface Downloaded {
  readonly files: readonly DownloadedFile[]
  readonly error: RushesError | undefined
}

async function download(parts: DeliverParts, run: FollowedRun, state: RunState): Promise<Downloaded> {
  const { delivery, downloader, namer, interrupts, recorder } = parts
  const { id } = run.known
  const { target } = delivery
  if (target === undefined || downloader === undefined) return { files: [], error: undefined }
  const whole: DownloadedFile[] = []
  const record = inSharedCommits((files) => recorder.recordFiles(id, files))
  try {
    const results = await downloader.download(outputsOf(parts, run.known, state), {
      target,
      namer,
      overwrite: delivery.overwrite,
      earlier: recorder.filesOf(id),
      stdout: target.kind === 'stdout' ? parts.stdout() : undefined,
      async beforeMove(file) {
        // Before it has its name, so that a command that is killed in between knows it again by its bytes.
        if (target.kind !== 'stdout') await record(file)
      },
      onSettled: (result) => void (result.ok && whole.push(result.file)),
      signal: interrupts.first,
      onProgress: (transfer) => parts.onTransfer(id, transfer),
    })
    for (const result of results) if (result.ok) for (const warning of result.warnings) parts.warn(warning)
    const files = results.flatMap((result) => (result.ok ? [result.file] : []))
    const errors = results.flatMap((result) => (result.ok ? [] : [result.error]))
    errors.push(...(await sidecarsFailed(parts, run, state, files)))
    return { files, error: firstError(errors, id, parts) }
  } catch (thrown) {
    if (thrown instanceof Interruption) {
      const pickUp = `Download its outputs with \`${parts.resume(id, 'download')}\`.`
      const what = 'The run succeeded, but its download was interrupted.'
      return { files: whole, error: interrupted(thrown, what, pickUp, id) }
    }
    return { files: whole, error: asRushesError(thrown).with({ runId: id }) }
  }
}

async function sidecarsFailed(
  { delivery, address }: DeliverParts,
  { known, finishedAt, elapsedMs }: FollowedRun,
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

function outputsOf(
  { client, interrupts }: DeliverParts,
  known: KnownRun,
  state: RunState,
): readonly RunOutput[] {
  // One status request gives fresh URLs for all outputs of the run.
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
  { resume }: DeliverParts,
): RushesError | undefined {
  const [first, ...others] = errors
  if (first === undefined) return undefined
  const more = others.length === 0 ? '' : ` ${plural(others.length, 'more output')} of this run failed.`
  return first.with({
    message: `${first.message}${more}`,
    hint: [first.hint, `Download its outputs with \`${resume(id, 'download')}\`.`].filter(Boolean).join(' '),
    runId: id,
  })
}
