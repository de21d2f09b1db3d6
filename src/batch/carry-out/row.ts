/**
 * One row of a batch on its way: created, followed, delivered; and what the lock file knows of it at each moment. A batch
 * that is killed at any of them continues from there, and nothing is paid twice.
 */
import { randomUUID } from 'node:crypto'
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
  type Output,
  outputsOf,
  type Pending,
  type Placing,
  placingsOf,
  publicUrl,
} from '../lock/lock.js'
import type { Disk } from '../plan/index.js'
import type { Polled, PollOptions, Task } from '../schedule/index.js'
import { placesFor, refuseOtherBytes } from './places.js'
import type {
  Active,
  BatchService,
  Downloaded,
  Followed,
  OutputFile,
  RowResult,
  Submitted,
} from './row-result.js'

export interface RowParts {
  readonly service: BatchService
  readonly keeper: LockKeeper
  readonly clock: Pick<Clock, 'now'>
  /** Absolute: the manifest's. */
  readonly folder: string
  readonly disk: Disk
  inputsOf(step: Active): InputHashes
  /** Length of the longest chain of rows that waits for this one. */
  behind(step: Active): number
  /** Whether creates are still to be sent. */
  mayCreate(): boolean
  /** The rows that can begin now that others have ended. */
  arrivals(): readonly Task[]
  /** Stops the batch. */
  readonly signal: AbortSignal
  /** A create is about to be sent. */
  onSending(): void
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
    const token = randomUUID()
    let isNoted = false
    let isStopped = false
    const answer = await service.submit(step, token, async () => {
      isNoted = true
      await lock.sending(token)
      // Writing shows what others have changed in the lock file.
      isStopped = !parts.mayCreate()
      if (isStopped) throw new Error('the batch was stopped')
      parts.onSending()
    })
    const submitted: Submitted = isStopped ? { is: 'unsent' } : answer
    await lock.submitted(submitted, token, isNoted)
    if (submitted.is === 'unsent') return undefined
    if (submitted.is !== 'created') {
      end({ result: submitted.is === 'unconfirmed' ? 'unconfirmed' : 'failed', error: submitted.error })
      return undefined
    }
    const { id, answeredAtMs } = submitted
    journey = { id, followed: service.follow(step, id, submitted), status: undefined }
    onStatus(step, id, submitted.status ?? 'accepted')
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
    const downloaded = await download(state)
    if (!downloaded.ok) {
      // When the batch was stopped, the next one continues with the download: the row has not failed.
      if (!signal.aborted) end({ result: 'failed', error: downloaded.error })
      return
    }
    const [first, ...others] = downloaded.files
    const further = others.map((each): FurtherOutput => ({ run: state.id, ...recorded(each) }))
    const made: Made = {
      hash: step.hash ?? '',
      model,
      kind: step.entry.kind,
      run: state.id,
      service: service.address,
      ...recorded(first),
      made_at: new Date(parts.clock.now()).toISOString(),
      inputs: parts.inputsOf(step),
      ...(further.length > 0 && { outputs: further }),
    }
    const warnings = [...downloaded.warnings, ...formerOutputs(made)]
    await lock.made(made)
    end({ result: action.do === 'download' ? 'downloaded' : 'created', made, warnings })
  }

  async function download(state: RunState): Promise<Downloaded> {
    const { folder, disk } = parts
    try {
      const places = await placesFor(step, { urls: state.urls, disk, folder })
      return await service.download(step, state, places, async (file, at) => {
        refuseOtherBytes(file, step, at)
        const { sha256, bytes, content_type } = file
        await lock.placing(state.id, { run: state.id, output: at + 1, sha256, bytes, content_type })
      })
    } catch (error) {
      if (!(error instanceof RushesError)) throw error
      return { ok: false, error: error.with({ runId: state.id }) }
    }
  }

  /** The run before had more outputs. */
  const formerOutputs = (made: Made): readonly string[] =>
    outputsOf(step.locked?.made)
      .slice(outputsOf(made).length)
      .map(({ file }) => `${file} is from an earlier run of ${step.entry.name}, and stays as it is`)

  const recorded = ({ path, url, bytes, sha256, content_type }: OutputFile): Output => ({
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
  /** A run before may have been killed while it got its files into place: they are of this row too. */
  let placing = placingsOf(before)

  const pendingCreate = () => ({
    hash,
    model,
    kind: entry.kind,
    service: service.address,
    sent_at: keeper.entry(entry.name)?.pending?.sent_at ?? new Date(clock.now()).toISOString(),
    inputs: inputsOf(step),
    ...(placing.length > 0 && { placing }),
  })
  /** A run of another version of the row, which this one does not replace. */
  const leftPending = (): Pending | undefined => {
    const { pending } = keeper.entry(entry.name) ?? {}
    return pending?.hash === hash ? undefined : pending
  }
  const keep = (pending: Pending | undefined): Promise<void> =>
    keeper.set(entry.name, entryWith(keeper.entry(entry.name), pending))
  /** Where a run exists already, a lock file that cannot be written is no reason to lose it. */
  const keepSafely = (pending: Pending | undefined): Promise<void> => keep(pending).catch(onLockTrouble)

  return {
    /** A create that the lock file cannot be told of is not sent. */
    async sending(token: string): Promise<void> {
      const sent_at = new Date(clock.now()).toISOString()
      const sending: Pending = { ...pendingCreate(), sent_at, state: 'unconfirmed', key: undefined, token }
      await keep(sending).catch((error) => {
        onLockTrouble(error)
        throw error
      })
    },
    async submitted(submitted: Submitted, token: string, isSent: boolean): Promise<void> {
      if (submitted.is === 'created')
        await keepSafely({ ...pendingCreate(), state: 'accepted', run: submitted.id })
      else if (submitted.is === 'unconfirmed')
        await keepSafely({ ...pendingCreate(), state: 'unconfirmed', key: submitted.key, token })
      else if (isSent) await keepSafely(before?.pending)
    },
    /**
     * Killed between the renaming and the next writing of the lock file, a batch must know the file as its own. A file that
     * is downloaded again it knows already.
     */
    async placing(run: string, file: Placing): Promise<void> {
      if (run === before?.made?.run) return
      placing = [...placing.filter((each) => !isSame(each, file)), file]
      await keep({ ...pendingCreate(), state: 'accepted', run })
    },
    ended: () => keepSafely(leftPending()),
    made: (made: Made) =>
      keeper
        .set(entry.name, {
          made,
          pending: leftPending(),
          further: keeper.entry(entry.name)?.further ?? {},
        })
        .catch(onLockTrouble),
  }
}

const isSame = (a: Placing, b: Placing): boolean =>
  a.run === b.run && a.output === b.output && a.sha256 === b.sha256

const entryWith = (entry: LockEntry | undefined, pending: Pending | undefined): LockEntry | undefined =>
  entry?.made === undefined && pending === undefined
    ? undefined
    : { made: entry?.made, pending, further: entry?.further ?? {} }
