/**
 * Carries a plan out: runs are created and followed by the schedule, their files are put in place, and the lock file
 * knows at each moment what was paid for. A row that uses other rows begins when their files are in place. What it needs
 * of the service, the journal and the downloader it is given.
 */
import { type RushesError, usageError } from '../../errors.js'
import type { LockKeeper } from '../lock/keeper.js'
import type { Made } from '../lock/lock.js'
import { decideAgain, type Plan, type PlanOptions, type Step } from '../plan/index.js'
import { inputHashes } from '../plan/inputs.js'
import { runSchedule, type ScheduleOptions, type Task } from '../schedule/index.js'
import { createRow, type RowParts, type RowTask } from './row.js'
import { type Active, type BatchService, LEFT_ALONE, type RowResult } from './row-result.js'
import { createWaitingRows } from './waiting-rows.js'

export interface CarryOutOptions
  extends Pick<
    ScheduleOptions,
    'clock' | 'random' | 'budget' | 'load' | 'concurrency' | 'timeoutMs' | 'durationsOf' | 'signal'
  > {
  readonly plan: Plan
  readonly keeper: LockKeeper
  /** Absolute: the manifest's. */
  readonly folder: string
  /** Undefined where no row needs the service. */
  readonly service: BatchService | undefined
  readonly clock: RowParts['clock'] & ScheduleOptions['clock']
  readonly identity: PlanOptions['identity']
  /** Whether further runs are created; asked before each is sent. */
  mayCreate(): boolean
  /** Whether no further runs are created after this error. */
  stopsCreating(error: RushesError): boolean
  onSending: RowParts['onSending']
  onStatus: RowParts['onStatus']
  /** A row has ended, as soon as it has. */
  onResult(result: RowResult): void
}

/** Resolves when every row has ended or will not be begun. Rejects with the signal's reason, when all work has ended. */
export async function carryOut(options: CarryOutOptions): Promise<void> {
  const { keeper, service, signal, identity } = options
  const lockOf = keeper.entry
  const steps = activeSteps(options.plan)
  const waiting = createWaitingRows(steps)
  const rows: RowTask[] = []
  const ended = createQueue(settle)
  let isStopped = false
  let ready: Task[] = []

  const mayCreate = () => !isStopped && options.mayCreate()
  const parts = {
    ...options,
    disk: options.plan.disk,
    inputsOf: ({ entry, meaning = entry.meaning }: Active) =>
      inputHashes({ ...entry, meaning }, (name) => lockOf(name)?.made, identity),
    mayCreate,
    behind: ({ entry }: Active) => waiting.behind(entry.name),
    arrivals,
    onLockTrouble() {
      isStopped = true
    },
  }

  function begin(step: Active): void {
    if (!needsService(step)) ended(movedResult(step, lockOf(step.entry.name)?.made))
    else if (service !== undefined) {
      const row = createRow({ ...parts, service }, step, ended)
      rows.push(row)
      ready.push(row.task)
    }
  }

  function settle(result: RowResult): void {
    if (result.error !== undefined && options.stopsCreating(result.error)) isStopped = true
    options.onResult(result)
    const { name } = result.step.entry
    if (result.made !== undefined || result.result === 'up_to_date') waiting.release(name).forEach(resume)
    else
      for (const step of waiting.block(name)) options.onResult({ step, result: 'blocked', blockedBy: name })
  }

  /** A row that has waited: what is to be done for it is decided by the outputs that it uses. */
  function resume(waited: Active): void {
    const step = decideAgain(waited, { lockOf, identity })
    if (isActive(step)) begin(step)
    else ended(resultOf(step))
  }

  /** Those that can begin by now. */
  function arrivals(): readonly Task[] {
    const tasks = ready
    ready = []
    return tasks
  }

  waiting.free.forEach(begin)
  try {
    if (service !== undefined) await runSchedule({ ...options, tasks: arrivals(), mayCreate })
  } finally {
    await Promise.all(rows.map(({ settled }) => settled()))
  }
  // A signal that came during the last downloads.
  if (service !== undefined) signal.throwIfAborted()
}

/** Calls `work` for each item in turn. An item that is added by `work` waits for its turn, however many there are. */
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

/** Of a row whose files have been moved. */
const movedResult = (step: Active, made: Made | undefined): RowResult => ({
  step,
  result: 'downloaded',
  made,
  run: made?.run,
})

/** Of a row for which there is nothing to be done after all. */
function resultOf(step: Step): RowResult {
  const { action, file } = step
  if (action.do === 'unconfirmed') return { step, result: 'unconfirmed', error: LEFT_ALONE }
  if (action.do === 'conflict')
    return {
      step,
      result: 'failed',
      error: usageError(
        `${file}: ${action.why}.`,
        action.isForeign ? '--overwrite replaces files that are not in the lock file.' : undefined,
      ),
    }
  if (action.do === 'blocked') return { step, result: 'failed', error: usageError(`${action.why}.`) }
  return { step, result: 'up_to_date' }
}

/** The rows that something is done for. */
export const activeSteps = (plan: Plan): readonly Active[] => plan.steps.filter(isActive)

const isActive = (step: Step): step is Active => step.action.do === 'create' || step.action.do === 'download'

/** All but those whose files lie on this machine already. */
export const needsService = ({ action }: Active): boolean => action.do === 'create' || action.why !== 'moved'

export { moveFiles } from './move-files.js'
export {
  type Active,
  type BatchService,
  LEFT_ALONE,
  type Place,
  type RowResult,
} from './row-result.js'
