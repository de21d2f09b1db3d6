/**
 * Carries a plan out: runs are created and followed by the schedule, their files are put in place, and the lock file
 * knows at each moment what was paid for. What it needs of the service, the journal and the downloader it is given.
 */
import type { RushesError } from '../../errors.js'
import type { LockKeeper } from '../lock/keeper.js'
import type { Plan, Step } from '../plan/index.js'
import { runSchedule, type ScheduleOptions } from '../schedule/index.js'
import { copyRow } from './copy.js'
import { createRow, type RowParts } from './row.js'
import type { Active, BatchService, RowResult } from './row-result.js'

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
  /** Whether no further runs are created after this error. */
  stopsCreating(error: RushesError): boolean
  onStatus: RowParts['onStatus']
  /** A row has ended, as soon as it has. */
  onResult(result: RowResult): void
}

/** Resolves when every row has ended or will not be begun. Rejects with the signal's reason, when all work has ended. */
export async function carryOut(options: CarryOutOptions): Promise<void> {
  const { keeper, folder, service, onResult } = options
  const rows = activeSteps(options.plan)
  const copies = rows
    .filter((step) => !needsService(step))
    .map((step) => copyRow({ keeper, folder }, step).then(onResult))
  try {
    if (service !== undefined) await followAll(options, service, rows.filter(needsService))
  } finally {
    await Promise.all(copies)
  }
}

async function followAll(
  options: CarryOutOptions,
  service: BatchService,
  steps: readonly Active[],
): Promise<void> {
  const { signal } = options
  let isStopped = false
  const rows = steps.map((step) =>
    createRow(
      {
        ...options,
        service,
        onLockTrouble() {
          isStopped = true
        },
      },
      step,
      (result) => {
        if (result.error !== undefined && options.stopsCreating(result.error)) isStopped = true
        options.onResult(result)
      },
    ),
  )
  try {
    await runSchedule({
      ...options,
      tasks: rows.map(({ task }) => task),
      mayCreate: () => !isStopped,
    })
  } finally {
    await Promise.all(rows.map(({ settled }) => settled()))
  }
  // A signal that came during the last downloads.
  signal.throwIfAborted()
}

/** The rows that something is done for. */
export const activeSteps = (plan: Plan): readonly Active[] => plan.steps.filter(isActive)

const isActive = (step: Step): step is Active => step.action.do === 'create' || step.action.do === 'download'

/** All but those whose file lies on this machine already. */
export const needsService = ({ action }: Active): boolean =>
  action.do === 'create' || action.copyFrom === undefined

export type { Active, BatchService, RowResult } from './row-result.js'
