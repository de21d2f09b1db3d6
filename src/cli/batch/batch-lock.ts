/** The lock file of a running batch: with its journal, its words for errors, and what is done at its end. */
import { basename, resolve } from 'node:path'
import { LockFile } from '../../batch/lock/file.js'
import { activeSteps, type PlanStep } from '../../batch/plan/index.js'
import { RushesError, usageError } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'
import { describeError } from '../../host/system-error.js'
import type { BatchName, Journal, JournalRun } from '../../journal/index.js'
import { listNames } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import type { PreparedBatch } from './prepare.js'

export class BatchLock {
  readonly file: LockFile
  readonly name: BatchName
  /** Undefined if nothing is sent: the disk may be read-only. */
  readonly journal: Journal | undefined
  /** The first failed write, which stopped further creates. */
  failure: RushesError | undefined
  readonly #ctx: Context
  readonly #batch: PreparedBatch
  /** Rows whose entries another program has changed. */
  readonly #changed = new Set<string>()
  readonly #stop = new AbortController()

  static async open(ctx: Context, batch: PreparedBatch, isConnected: boolean): Promise<BatchLock> {
    const journal = isConnected
      ? await ctx.journal().catch((error: unknown) => {
          throw error instanceof RushesError ? unsent(error) : error
        })
      : undefined
    if (isConnected && batch.isUnread)
      throw unsent(
        usageError(
          'The journal could not be read, so the runs in flight are not known.',
          'Try again, or see `rushes doctor`.',
        ),
      )
    return new BatchLock(ctx, batch, journal)
  }

  private constructor(ctx: Context, batch: PreparedBatch, journal: Journal | undefined) {
    const { lock, lockPath, manifest, plan } = batch
    this.#ctx = ctx
    this.#batch = batch
    this.journal = journal
    this.name = { id: lock.batch, lockPath: resolve(lockPath) }
    this.file = new LockFile({
      path: lockPath,
      manifest: basename(manifest.path),
      lock,
      rows: new Set(activeSteps(plan).flatMap(({ entry, sources }) => [entry.name, ...sources])),
      clock: ctx.clock,
      keepsWorking: batch.isElsewhere && plan.steps.some(isLeftOut),
      onWritten: (entries) => {
        const made = [...entries].flatMap(([entry, each]) => (each === undefined ? [] : { entry, ...each }))
        journal?.recorded(this.name, made)
      },
      onFailed: (error) => {
        this.failure ??= this.#errorFor(error)
        this.#stop.abort()
      },
      onChanged: (names) => {
        for (const each of names) this.#changed.add(each)
        this.#stop.abort()
      },
    })
    for (const entry of new Set([...lock.entries.keys(), ...plan.entries.keys()]))
      if (lock.entries.get(entry) !== plan.entries.get(entry))
        this.file.change(entry, plan.entries.get(entry))
  }

  /** Aborted when no further create may be sent because of the lock file. */
  get noCreates(): AbortSignal {
    return this.#stop.signal
  }

  /** Before the first create. `journal`: id of the state folder. Throws the error to show. */
  async begin(journal: string): Promise<void> {
    await this.file.begin(journal).catch((error: unknown) => this.throwFailed(error))
  }

  /** Throws the error to show for a failed write, and stops creates. */
  throwFailed(error: unknown): never {
    this.#stop.abort()
    throw this.#errorFor(error)
  }

  /** Writes what is left. Returns the errors that decide the exit code. */
  async finish(): Promise<readonly RushesError[]> {
    const { plan, lockPath } = this.#batch
    const errors: RushesError[] = []
    try {
      await this.file.end(false)
      if (this.#isDone()) await this.file.end(true)
    } catch (thrown) {
      const error = this.#errorFor(thrown)
      // All selected files are up to date. Only renamed or removed rows were not recorded, so a warning is enough.
      if (activeSteps(plan).length === 0) this.#ctx.out.warn(error.message)
      else errors.push(error)
    }
    if (this.#changed.size > 0)
      errors.push(
        new RushesError(
          'download_failed',
          `${lockPath} changed during this batch (${listNames([...this.#changed])}). This batch stopped creating runs.`,
          {
            hint: `Continue with ${this.#batch.options.continuation}: it goes by the lock file, and nothing is paid twice.`,
          },
        ),
      )
    return errors
  }

  /** Whether no row of this plan is in flight any more. */
  #isDone(): boolean {
    const { plan, flights, isElsewhere } = this.#batch
    if (isElsewhere && plan.steps.some((step) => this.#hasNoResult(step))) return false
    if (this.journal === undefined)
      return plan.steps.every(({ flight, action }) => flight === undefined && action.do !== 'unconfirmed')
    const open = this.journal.tryRead(() => this.journal?.inFlight(this.name))
    // Those of renamed rows have their earlier names in the journal.
    const left = new Set(plan.pairing.leftFlights())
    const taken = new Set(flights.flatMap((each) => (left.has(each) ? [] : each.row)))
    const hashes = new Map(plan.steps.map(({ entry, hash }) => [entry.name, hash]))
    const isOpen = ({ entry = '', identity, row }: JournalRun) =>
      taken.has(row) || (hashes.has(entry) && [undefined, identity].includes(hashes.get(entry)))
    return open?.some(isOpen) === false
  }

  /** A row without a result of its model and input may be in flight in another state folder. */
  #hasNoResult({ entry, hash, locked }: PlanStep): boolean {
    const made = this.file.get(entry.name)
    // The hash of a row that waited for others is not in the plan.
    return hash === undefined ? made?.run === locked?.run : made?.hash !== hash
  }

  #errorFor(thrown: unknown): RushesError {
    // A bug is not an error of the file.
    if (!(thrown instanceof Error && 'code' in thrown)) return asRushesError(thrown)
    // No create was sent, because the lock file is written before the first.
    if (!this.file.hasWritten)
      return thrown instanceof RushesError ? thrown : unsent(unwritable(this.#batch.lockPath, thrown))
    const { message, hint = '' } =
      thrown instanceof RushesError ? thrown : unwritable(this.#batch.lockPath, thrown)
    return new RushesError('download_failed', `${message} This batch stopped creating runs.`, {
      hint: `${hint} Accepted runs are in \`rushes list\`. Then continue with ${this.#batch.options.continuation}.`.trim(),
      cause: thrown,
    })
  }
}

/** A row without a result that this batch neither creates nor takes over. */
const isLeftOut = ({ action, flight, hash, locked }: PlanStep): boolean =>
  action.do !== 'create' && flight === undefined && (hash === undefined || locked?.hash !== hash)

export const unwritable = (path: string, error: unknown): RushesError =>
  usageError(
    `Cannot write the lock file ${describeError(error, path)}.`,
    'Check that the folder is writable and that the disk has space.',
  )

export const unsent = (error: RushesError): RushesError => error.with({ consequence: 'Nothing was sent.' })
