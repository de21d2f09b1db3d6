/**
 * One row of a batch on its way: created, followed, delivered; and what the lock file knows of it at each moment. A batch
 * that is killed at any of them continues from there, and nothing is paid twice.
 */
import { relative } from 'node:path'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { RunState } from '../../protocol/run-state.js'
import type { LockKeeper } from '../lock/keeper.js'
import {
  type FurtherOutput,
  type InputHashes,
  type LockEntry,
  type Made,
  type Pending,
  publicUrl,
} from '../lock/lock.js'
import type { Arrivals, Polled, PollOptions, Task } from '../schedule/index.js'
import { checkPlacing, isFurther } from './may-place.js'
import type { Active, BatchService, Followed, OutputFile, RowResult, Submitted } from './row-result.js'

export interface RowParts {
  readonly service: BatchService
  readonly keeper: LockKeeper
  readonly clock: Pick<Clock, 'now'>
  /** Absolute: the manifest's. */
  readonly folder: string
  inputsOf(step: Active): InputHashes
  /** Length of the longest chain of rows that waits for this one. */
  behind(step: Active): number
  /** The rows that can begin now that others have ended. */
  arrivals(): Arrivals
  /** Stops the batch. */
  readonly signal: AbortSignal
  onStatus(step: Active, run: string, status: string): void
  /** The lock file could not be written. What it lacks the journal knows. */
  onLockTrouble(error: unknown): void
}

export interface RowTask {
  readonly task: Task
  /** Resolves when the outputs are in place, or will not be. */
  settled(): Promise<void>
}

/** A run that is followed. */
interface Journey {
  readonly id: string
  readonly followed: Followed
  status: string | undefined
}

export function createRow(parts: RowParts, step: Active, onResult: (result: RowResult) => void): RowTask {
  const { service, signal, onStatus } = parts
  const { action, model = '' } = step
  const behind = parts.behind(step)
  const lock = createRowLock(parts, step)
  let journey: Journey | undefined
  let delivery: Promise<void> = Promise.resolve()
  const end = (result: Omit<RowResult, 'step' | 'run'>): void =>
    onResult({ ...result, step, run: journey?.id })

  if (action.do === 'download')
    journey = {
      id: action.run,
      followed: service.follow(step, action.run, undefined),
      status: undefined,
    }

  async function create(): Promise<number | undefined> {
    let isSent = false
    const submitted = await service.submit(step, async () => {
      isSent = true
      await lock.sending()
    })
    await lock.submitted(submitted, isSent)
    if (submitted.is === 'unsent') return undefined
    if (submitted.is !== 'created') {
      end({ result: submitted.is === 'unconfirmed' ? 'unconfirmed' : 'failed', error: submitted.error })
      return undefined
    }
    const { id, answeredAtMs } = submitted
    journey = { id, followed: service.follow(step, id, submitted), status: undefined }
    onStatus(step, id, 'created')
    return answeredAtMs
  }

  async function poll(options: PollOptions): Promise<Polled> {
    if (journey === undefined) throw new Error('a run is followed once it exists')
    const followed = await journey.followed.poll(options)
    const { state } = followed
    if (state !== undefined && state.status !== journey.status) {
      journey.status = state.status
      onStatus(step, state.id, state.status)
    }
    if (followed.is !== 'over') return followed
    if (followed.error === undefined && state !== undefined) delivery = deliver(state)
    else delivery = giveUp(state, followed.error)
    return behind === 0 ? followed : { ...followed, next: delivery.then(parts.arrivals) }
  }

  /** It ended without success: what was made before stays what it is. */
  async function giveUp(state: RunState | undefined, error: RushesError | undefined): Promise<void> {
    if (state?.phase === 'failed') await lock.ended()
    end({ result: 'failed', error })
  }

  async function deliver(state: RunState): Promise<void> {
    const placed = { step, folder: parts.folder, outputs: state.urls.length, overwrites: service.overwrites }
    const downloaded = await service.download(step, state, async (file) => {
      await checkPlacing(file, placed)
      // The plan of a batch that continues looks at the first output alone.
      if (!isFurther(file, step)) await lock.placing(state.id, file)
    })
    if (!downloaded.ok) {
      // When the batch was stopped, the next one continues with the download: the row has not failed.
      if (!signal.aborted) end({ result: 'failed', error: downloaded.error })
      return
    }
    const further = downloaded.further.map((each): FurtherOutput => ({ run: state.id, ...recorded(each) }))
    const made: Made = {
      hash: step.hash ?? '',
      model,
      kind: step.entry.kind,
      run: state.id,
      service: service.address,
      ...recorded(downloaded.file),
      made_at: new Date(parts.clock.now()).toISOString(),
      inputs: parts.inputsOf(step),
      ...(further.length > 0 && { outputs: further }),
    }
    await lock.made(made)
    end({ result: action.do === 'download' ? 'downloaded' : 'created', made, warnings: downloaded.warnings })
  }

  const recorded = ({ path, url, bytes, sha256, content_type }: OutputFile) => ({
    url: publicUrl(url),
    file: relative(parts.folder, path).replaceAll('\\', '/'),
    sha256,
    bytes,
    content_type,
  })

  function expire(): void {
    if (journey === undefined) return
    const limit = new RushesError(
      'wait_timeout',
      `The timeout passed. Last known status: ${journey.status ?? 'unknown'}.`,
      { runId: journey.id, hint: 'Run the same batch again to continue. Nothing is paid twice.' },
    )
    end({ result: 'failed', error: journey.followed.errorAtLimit(limit) })
  }

  return {
    task: { group: model, behind, poll, expire, ...(action.do === 'create' && { create }) },
    settled: () => delivery,
  }
}

/** What the lock file is told of one row. */
function createRowLock({ keeper, service, clock, inputsOf, onLockTrouble }: RowParts, step: Active) {
  const { entry, hash = '', model = '' } = step
  const before = keeper.entry(entry.name)
  const further = before?.further ?? {}

  const pendingCreate = () => ({
    hash,
    model,
    kind: entry.kind,
    service: service.address,
    sent_at: keeper.entry(entry.name)?.pending?.sent_at ?? new Date(clock.now()).toISOString(),
    inputs: inputsOf(step),
  })
  const keep = (pending: Pending | undefined): Promise<void> =>
    keeper.set(entry.name, entryWith(before, pending))
  /** Where a run exists already, a lock file that cannot be written is no reason to lose it. */
  const keepSafely = (pending: Pending | undefined): Promise<void> => keep(pending).catch(onLockTrouble)

  return {
    /** A create that the lock file cannot be told of is not sent. */
    async sending(): Promise<void> {
      const sent_at = new Date(clock.now()).toISOString()
      await keep({ ...pendingCreate(), sent_at, state: 'unconfirmed', key: undefined }).catch((error) => {
        onLockTrouble(error)
        throw error
      })
    },
    async submitted(submitted: Submitted, isSent: boolean): Promise<void> {
      if (submitted.is === 'created')
        await keepSafely({ ...pendingCreate(), state: 'accepted', run: submitted.id })
      else if (submitted.is === 'unconfirmed')
        await keepSafely({ ...pendingCreate(), state: 'unconfirmed', key: submitted.key })
      else if (isSent) await keeper.set(entry.name, before).catch(onLockTrouble)
    },
    /** Killed between the renaming and the next writing of the lock file, a batch must know the file as its own. */
    placing: (run: string, { sha256, bytes }: { readonly sha256: string; readonly bytes: number }) =>
      keep({ ...pendingCreate(), state: 'accepted', run, placing: { sha256, bytes } }),
    ended: () => keepSafely(undefined),
    made: (made: Made) => keeper.set(entry.name, { made, pending: undefined, further }).catch(onLockTrouble),
  }
}

const entryWith = (before: LockEntry | undefined, pending: Pending | undefined): LockEntry | undefined =>
  before?.made === undefined && pending === undefined
    ? undefined
    : { made: before?.made, pending, further: before?.further ?? {} }
