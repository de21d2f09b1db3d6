/**
 * Carries out a plan. Each active step becomes a row of the engine, and its lock entry is written before and after each
 * event. A row that uses other rows starts when their files exist.
 */
import { randomUUID } from 'node:crypto'
import { relative } from 'node:path'
import {
  destinationOf,
  keptError,
  type OutputFile,
  placesFor,
  refuseOtherBytes,
} from '../../batch/carry-out/places.js'
import {
  type ActiveStep,
  activeSteps,
  createWaitingRows,
  inactiveResult,
  isActive,
  movedResult,
  needsService,
  type RowResult,
} from '../../batch/carry-out/rows.js'
import type { LockKeeper } from '../../batch/lock/file.js'
import {
  type FurtherOutput,
  type LockedOutput,
  type Made,
  outputsOf,
  publicUrl,
} from '../../batch/lock/lock.js'
import { createRowLock } from '../../batch/lock/row-lock.js'
import { inputHashes } from '../../batch/plan/decide.js'
import { decideAgain, type Plan, type PlanOptions } from '../../batch/plan/index.js'
import { RushesError } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'
import type { RunState } from '../../protocol/run-state.js'
import type { FollowedRun, KnownRun } from '../../runs/follow.js'
import { carryOut, type Row, type RunsOptions } from '../../runs/index.js'
import type { BatchService, Created } from './service.js'

export interface CarryOutOptions
  extends Pick<RunsOptions, 'clock' | 'random' | 'concurrency' | 'timeoutMs' | 'signal'> {
  readonly plan: Plan
  readonly keeper: LockKeeper
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  /** Undefined if no row needs the service. */
  readonly service: BatchService | undefined
  readonly identity: PlanOptions['identity']
  /** Whether more runs may be created. Called before each create. */
  mayCreate(): boolean
  /** Whether this error stops further creates. */
  stopsCreating(error: RushesError): boolean
  /** Called before each create is sent. */
  onSending(): void
  /** Called when a create was accepted, or when its outcome is unknown. */
  onSent(step: ActiveStep): void
  onStatus(step: ActiveStep, run: string, status: string): void
  /** Called when a row has ended. */
  onResult(result: RowResult): void
}

/**
 * Resolves when each row has ended or will never start: with the error of the lock file that stopped it, if rows are
 * left. Rejects with the signal's reason, after all work has ended.
 */
export async function carryOutPlan(options: CarryOutOptions): Promise<RushesError | undefined> {
  const { keeper, service, signal, identity } = options
  const lockOf = keeper.entry
  const steps = activeSteps(options.plan)
  const waiting = createWaitingRows(steps)
  const ended = createQueue(settle)
  let isStopped = false
  let writeError: RushesError | undefined
  let left = steps.length
  let ready: Row[] = []
  const mayCreate = () => !isStopped && options.mayCreate()
  const onWriteError = (error: unknown) => {
    isStopped = true
    writeError ??= asRushesError(error)
  }

  function begin(step: ActiveStep): void {
    if (!needsService(step)) ended(movedResult(step, lockOf(step.entry.name)?.made))
    else if (service !== undefined) {
      const chainLength = waiting.chainLength(step.entry.name)
      ready.push(
        createRow({ ...options, service, mayCreate, onWriteError, takeReady, ended }, step, chainLength),
      )
    }
  }

  function report(result: RowResult): void {
    left--
    options.onResult(result)
  }

  function settle(result: RowResult): void {
    if (result.error !== undefined && options.stopsCreating(result.error)) isStopped = true
    report(result)
    const { name } = result.step.entry
    const isDone = result.error === undefined && (result.made !== undefined || result.result === 'up_to_date')
    if (isDone) waiting.release(name).forEach(resume)
    else for (const step of waiting.block(name)) report({ step, result: 'blocked', blockedBy: name })
  }

  /** Decides the action of a waiting row again, because the outputs that it uses now exist. */
  function resume(waited: ActiveStep): void {
    const step = decideAgain(waited, { lockOf, identity })
    if (isActive(step)) begin(step)
    else ended(inactiveResult(step))
  }

  /** Returns the rows that can start, and clears the list. */
  function takeReady(): readonly Row[] {
    const rows = ready
    ready = []
    return rows
  }

  waiting.free.forEach(begin)
  if (service === undefined) return undefined
  await carryOut({ ...options, ...service.runs, rows: takeReady(), mayCreate })
  // A signal may have arrived during the last downloads.
  signal.throwIfAborted()
  return left > 0 ? writeError : undefined
}

interface RowParts extends CarryOutOptions {
  readonly service: BatchService
  /** Called when the lock file could not be written. Stops further creates. */
  onWriteError(error: unknown): void
  /** Returns the rows that can start, and clears the list. */
  takeReady(): readonly Row[]
  ended(result: RowResult): void
}

function createRow(parts: RowParts, step: ActiveStep, chainLength: number): Row {
  const { service, signal, keeper, clock, folder, plan } = parts
  const { continuation } = service
  const { action, entry, hash = '', model = '' } = step
  const inputs = () => {
    const { meaning = entry.meaning } = step
    return inputHashes({ ...entry, meaning }, (name) => keeper.entry(name)?.made, parts.identity)
  }
  const lock = createRowLock({
    keeper,
    name: entry.name,
    create: () => ({ hash, model, kind: entry.kind, service: service.address, inputs: inputs() }),
    clock,
    onWriteError: parts.onWriteError,
  })
  let run = action.do === 'download' ? action.run : undefined
  let status: string | undefined
  let isTimedOut = false
  const end = (result: Omit<RowResult, 'step' | 'run'>): void => parts.ended({ ...result, step, run })
  const known = (id: string, created?: Created): KnownRun => ({ id, kind: entry.kind, model, ...created })

  async function create(): Promise<KnownRun | undefined> {
    const token = randomUUID()
    let isNoted = false
    let isStopped = false
    const answer = await service.submit(step, token, async () => {
      isNoted = true
      await lock.sending(token)
      // The write may find changes that others made to the lock file, which stop this batch.
      isStopped = !parts.mayCreate()
      if (isStopped) throw new Error('the batch was stopped')
      parts.onSending()
    })
    const submitted = isStopped ? ({ is: 'unsent' } as const) : answer
    if (submitted.is === 'created' || submitted.is === 'unconfirmed') parts.onSent(step)
    await lock.submitted(submitted, token, isNoted)
    if (submitted.is === 'unsent') return undefined
    if (submitted.is !== 'created') {
      end({ result: submitted.is === 'unconfirmed' ? 'unconfirmed' : 'failed', error: submitted.error })
      return undefined
    }
    run = submitted.id
    parts.onStatus(step, run, submitted.status ?? 'accepted')
    return known(run, submitted)
  }

  async function download(state: RunState): Promise<void> {
    /** Files that were kept, by the path of the result beside them. */
    const kept = new Map<string, string>()
    const downloaded = await placesFor(step, {
      urls: state.urls,
      disk: plan.disk,
      folder,
      continuation,
    }).then(
      (places) =>
        service.download(step, state, places, async (file, index) => {
          refuseOtherBytes(file, step, index)
          const { sha256, bytes, content_type } = file
          await lock.placing({ run: state.id, output: index + 1, sha256, bytes, content_type })
          const destination = await destinationOf(file, places[index], { flags: step.flags, plan, folder })
          if (destination.kept !== undefined) kept.set(destination.path, destination.kept)
          return destination
        }),
      failedWith(state),
    )
    if (downloaded.error !== undefined) {
      // After a signal the row has not failed: the next batch continues its download.
      if (!signal.aborted) end({ result: 'failed', error: downloaded.error })
      return
    }
    const [first, ...others] = downloaded.files
    if (first === undefined) throw new Error('a succeeded run has an output')
    const further = others.map((each): FurtherOutput => ({ run: state.id, ...recorded(each) }))
    const made: Made = {
      hash,
      model,
      kind: entry.kind,
      run: state.id,
      service: service.address,
      ...recorded(first),
      made_at: new Date(clock.now()).toISOString(),
      inputs: inputs(),
      ...(further.length > 0 && { outputs: further }),
    }
    const warnings = [...downloaded.warnings, ...leftoverWarnings(made)]
    await lock.made(made)
    const error = keptError(kept, { folder, continuation })?.with({ runId: state.id })
    const succeeded = action.do === 'download' ? 'downloaded' : 'created'
    end({ result: error === undefined ? succeeded : 'failed', made, warnings, error })
  }

  /** Warns about files of an earlier run that had more outputs. */
  const leftoverWarnings = (made: Made): readonly string[] =>
    outputsOf(step.locked?.made)
      .slice(outputsOf(made).length)
      .map(({ file }) => `${file} is from an earlier run of ${entry.name}, and stays as it is`)

  const recorded = ({ path, url, bytes, sha256, content_type }: OutputFile): LockedOutput => ({
    url: publicUrl(url),
    file: relative(folder, path).replaceAll('\\', '/'),
    sha256,
    bytes,
    content_type,
  })

  return {
    model,
    chainLength,
    ...(run === undefined
      ? { create }
      : { run: { ...known(run), isWithoutUrls: service.isWithoutUrls(run) } }),
    onStatus(state) {
      if (state.status !== status) parts.onStatus(step, state.id, state.status)
      status = state.status
    },
    errorAt(reason, errorAtLimit) {
      // After a signal, the next batch continues the row.
      if (reason.is !== 'time limit') return undefined
      const limit = new RushesError(
        'wait_timeout',
        `The timeout passed. Last known status: ${status ?? 'unknown'}.`,
        { runId: run, hint: `Continue with ${continuation}. Nothing is paid twice.` },
      )
      isTimedOut = true
      return errorAtLimit(limit)
    },
    async end({ state, error }: FollowedRun) {
      if (error === undefined && state !== undefined) {
        await download(state)
        // If no row waits for this one, the rows that are ready now belong to another row that is ending.
        return chainLength === 0 ? [] : parts.takeReady()
      }
      // Keep the entry of an earlier run: only the pending create is removed.
      if (state?.phase === 'failed') await lock.failed()
      // At the time limit, a 404 may come from a replica that does not know the run yet.
      end({ result: 'failed', error: error && !isTimedOut ? service.explain(step, error, state) : error })
      return []
    },
  }
}

const failedWith =
  ({ id }: RunState) =>
  (error: unknown) => {
    if (!(error instanceof RushesError)) throw error
    return { files: [], warnings: [], error: error.with({ runId: id }) }
  }

/** Calls `work` for one item at a time. Queues items that `work` adds, so that nested calls do not fill the stack. */
function createQueue<Item>(work: (item: Item) => void): (item: Item) => void {
  const items: Item[] = []
  let isWorking = false
  return (added) => {
    items.push(added)
    if (isWorking) return
    isWorking = true
    try {
      for (let item = items.shift(); item !== undefined; item = items.shift()) work(item)
    } finally {
      isWorking = false
    }
  }
}
