/** The lock file of a running batch: with its journal, its words for errors, and what is done at its end. */
import { basename, resolve } from 'node:path'
import { LockFile, removeLeftovers } from '../../batch/lock/file.js'
import { activeSteps, type PlanStep } from '../../batch/plan/index.js'
import { RushesError, usageError } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'
import { describeError } from '../../host/system-error.js'
import type { BatchName, Journal, JournalRun } from '../../journal/index.js'
import { listNames } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { batchCommandLine } from './options.js'
import type { PreparedBatch } from './prepare.js'

export interface BatchLock {
  readonly file: LockFile
  readonly name: BatchName
  /** Undefined if nothing is sent: the disk may be read-only. */
  readonly journal: Journal | undefined
  /** Aborted when no further create may be sent because of the lock file. */
  readonly noCreates: AbortSignal
  /** The first failed write, which stopped further creates. */
  readonly failure: RushesError | undefined
  /** Throws the error to show for a failed write before a create. */
  throwFailed(error: unknown): never
  /** Writes what is left. Returns the errors that decide the exit code. */
  finish(): Promise<readonly RushesError[]>
}

export async function openLock(
  ctx: Context,
  prepared: PreparedBatch,
  isConnected: boolean,
): Promise<BatchLock> {
  const { lock, lockPath, manifest, plan } = prepared
  const continuation = `\`${batchCommandLine(ctx.globals, prepared)}\``
  const name: BatchName = { id: lock.batch, lockPath: resolve(lockPath) }
  const active = activeSteps(plan)
  const changed = new Set<string>()
  const stop = new AbortController()
  let failure: RushesError | undefined
  const journal = isConnected ? await ctx.journal().catch(throwUnsent) : undefined
  const file: LockFile = new LockFile({
    path: lockPath,
    manifest: basename(manifest.path),
    lock,
    rows: new Set(active.flatMap(({ entry, sources }) => [entry.name, ...sources])),
    clock: ctx.clock,
    keepsWorking: prepared.isElsewhere && plan.steps.some(isLeftOut),
    onWritten: (entries) =>
      journal?.recorded(
        name,
        [...entries].flatMap(([entry, made]) => (made === undefined ? [] : { entry, ...made })),
      ),
    onFailed(error) {
      failure ??= wordsFor(asSystemError(error))
      stop.abort()
    },
    onChanged(names) {
      for (const each of names) changed.add(each)
      stop.abort()
    },
  })
  for (const entry of new Set([...lock.entries.keys(), ...plan.entries.keys()]))
    if (lock.entries.get(entry) !== plan.entries.get(entry)) file.change(entry, plan.entries.get(entry))
  // Also where all is up to date: the last write says only that nothing is in flight.
  await removeLeftovers(lockPath)
  const wordsFor = (error: unknown): RushesError => {
    if (error instanceof RushesError)
      return file.hasWritten
        ? new RushesError(
            'download_failed',
            `${error.message} It was changed while this batch was running.`,
            { hint: error.hint },
          )
        : error
    return file.hasWritten ? unwritable(lockPath, error, continuation) : neverWritable(lockPath, error)
  }
  /** A row without a result of its model and input may be in flight in another state folder. */
  function hasNoResult({ entry, hash, locked }: PlanStep): boolean {
    const made = file.get(entry.name)
    // The hash of a row that waited for others is not in the plan.
    return hash === undefined ? made?.run === locked?.run : made?.hash !== hash
  }

  /** Whether no row of this plan is in flight any more. */
  function isDone(): boolean {
    if (prepared.isElsewhere && plan.steps.some(hasNoResult)) return false
    const hashes = new Map(plan.steps.map(({ entry, hash }) => [entry.name, hash]))
    if (journal === undefined)
      return plan.steps.every(({ flight, action }) => flight === undefined && action.do !== 'unconfirmed')
    const open = journal.tryRead(() => journal.inFlight(name))
    // Those of renamed rows have their earlier names in the journal.
    const left = new Set(plan.pairing.leftFlights())
    const taken = new Set(prepared.flights.flatMap((each) => (left.has(each) ? [] : each.row)))
    const isOpen = ({ entry = '', identity, row }: JournalRun) =>
      taken.has(row) || (hashes.has(entry) && [undefined, identity].includes(hashes.get(entry)))
    return open?.some(isOpen) === false
  }

  return {
    file,
    name,
    journal,
    noCreates: stop.signal,
    get failure() {
      return failure
    },
    throwFailed(error) {
      stop.abort()
      throw wordsFor(error)
    },
    async finish() {
      const errors: RushesError[] = []
      try {
        await file.end(false)
        if (isDone()) await file.end(true)
      } catch (thrown) {
        const error = wordsFor(asSystemError(thrown))
        // All selected files are up to date. Only renamed or removed rows were not recorded, so a warning is enough.
        if (active.length === 0) ctx.out.warn(error.message)
        else errors.push(error)
      }
      if (changed.size > 0) errors.push(changedError(lockPath, [...changed], continuation))
      return errors
    },
  }
}

/** A row without a result that this batch neither creates nor takes over. */
const isLeftOut = ({ action, flight, hash, locked }: PlanStep): boolean =>
  action.do !== 'create' && flight === undefined && (hash === undefined || locked?.hash !== hash)

function throwUnsent(error: unknown): never {
  throw error instanceof RushesError ? error.with({ consequence: 'Nothing was sent.' }) : error
}

/** A bug is not an error of the file. */
const asSystemError = (thrown: unknown): unknown =>
  thrown instanceof Error && 'code' in thrown ? thrown : asRushesError(thrown)

function changedError(path: string, names: readonly string[], continuation: string): RushesError {
  return new RushesError(
    'download_failed',
    `${path} was changed while this batch was running (${listNames(names)}). This batch stopped creating runs.`,
    {
      hint: `Continue with ${continuation}: it goes by the lock file as it is now, and nothing is paid twice.`,
    },
  )
}

/**
 * Error for a lock file that cannot be written. No create was sent, because the lock file is written before the first.
 */
export const neverWritable = (path: string, error: unknown): RushesError =>
  usageError(
    `Cannot write the lock file ${describeError(error, path)}. Nothing was sent.`,
    'Check that the folder is writable and that the disk has space.',
  )

const unwritable = (path: string, error: unknown, continuation: string): RushesError =>
  new RushesError('download_failed', `Cannot write the lock file ${describeError(error, path)}.`, {
    hint:
      'Nothing more is created without it. Accepted runs are in `rushes list`. ' +
      `When the folder is writable again, continue with ${continuation}.`,
    cause: error,
  })
