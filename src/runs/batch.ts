/**
 * Carries out the plan of a batch: each active step becomes a row of the schedule. What is in flight is in the journal
 * alone; the lock file gets an entry when the files of a row exist. A row that uses other rows is decided when their
 * files exist.
 *
 * The safe order of writes: claim, lock file with `working`, grant, journal `sending` (on the disk), bytes, `accepted`,
 * `ended`, part, journal names the file, rename, lock file (within a second), journal `recorded`, lock file without
 * `working`.
 */
import { randomUUID } from 'node:crypto'
import { relative, resolve } from 'node:path'
import type { LockFile } from '../batch/lock/file.js'
import {
  type FurtherOutput,
  type LockedOutput,
  type Made,
  outputsOf,
  ownerOfParts,
  publicUrl,
} from '../batch/lock/lock.js'
import {
  type ActiveStep,
  activeSteps,
  decideAgain,
  type Flight,
  isActive,
  needsService,
  type Plan,
} from '../batch/plan/index.js'
import { Places } from '../batch/results/places.js'
import { inactiveResult, movedResult, type RowResult, unconfirmedResult } from '../batch/results/rows.js'
import { encodeCreate } from '../client/create.js'
import { stillRunning } from '../client/run-errors.js'
import type { Downloader } from '../download/index.js'
import { RushesError } from '../errors.js'
import type { BatchName, DayLimit, RunEstimate } from '../journal/index.js'
import type { DownloadedFile } from '../protocol/media.js'
import type { ModelInput } from '../protocol/models.js'
import { isOutcomeUnknown, type RunState } from '../protocol/run-state.js'
import { deliver } from './deliver.js'
import {
  type Begin,
  type CreateRequest,
  type Delivery,
  knownRun,
  type Result,
  type Row,
  type Run,
  type RunsSession,
} from './run.js'
import { carryOut, type RunEvent } from './schedule.js'

/** What the rows of a plan are carried out with. */
export interface PlanSession {
  readonly plan: Plan
  readonly lock: LockFile
  readonly name: BatchName
  /** Whether the journal of another state folder knows what is in flight. */
  readonly isElsewhere: boolean
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  /** Absolute path of the manifest. Undefined if it was read from standard input. */
  readonly manifest: string | undefined
  readonly runs: RunsSession
  readonly downloader: Downloader
  /** Command that continues the batch and pays for no run again: it leaves out `--force`. */
  readonly continuation: string
  /** Returns the command that creates a row again, and pays for it again. Without a name it has a placeholder. */
  payAgain(row?: string): string
  /** Returns the input to send. Rejects if a file or an output that the row uses is not there. */
  inputOf(step: ActiveStep): Promise<ModelInput>
  estimateOf(step: ActiveStep): RunEstimate | undefined
  readonly dayLimit: DayLimit | undefined
  /** Throws the error to show, and stops further creates. */
  onLockFailed(error: unknown): never
  /** Called with the links of a run whose outputs were downloaded. */
  learn(state: RunState): void
}

export type BatchEvent = RunEvent | { readonly is: 'row'; readonly result: RowResult }

/** Yields what happens to the runs, and the result of each row. Rows that were not started have none. */
export async function* carryOutPlan(session: PlanSession): AsyncGenerator<BatchEvent> {
  const steps = activeSteps(session.plan)
  const active = new Set(steps.map(({ entry }) => entry.name))
  const rows = steps.map((step) => new BatchRow(step, active, session))
  for await (const event of carryOut(rows, session.runs)) {
    yield event
    if (event.is !== 'ended') continue
    const result = rows[event.run.index]?.resultOf(event.run, event.result)
    if (result !== undefined) yield { is: 'row', result }
  }
}

/** Yields the results of a plan that needs no service: its files were only renamed. */
export function* renamedRows(plan: Plan, lock: LockFile): Generator<BatchEvent> {
  for (const step of activeSteps(plan))
    yield { is: 'row', result: movedResult(step, lock.get(step.entry.name)) }
}

class BatchRow implements Row {
  readonly name: string
  readonly label: string
  readonly needs: readonly string[]
  step: ActiveStep
  readonly #session: PlanSession
  /** Decided again after the rows that it uses were made. */
  #decided: RowResult | undefined
  #made: Made | undefined
  #kept: RushesError | undefined
  readonly #warnings: string[] = []

  constructor(step: ActiveStep, active: ReadonlySet<string>, session: PlanSession) {
    this.step = step
    this.name = step.entry.name
    this.label = this.name
    // A download needs no output of another row.
    this.needs = step.action.do === 'create' ? step.sources.filter((name) => active.has(name)) : []
    this.#session = session
  }

  begin(): Begin {
    const { lock, plan, isElsewhere, runs } = this.#session
    if (this.needs.length > 0) {
      const step = decideAgain(this.step, plan, (name) => lock.get(name), isElsewhere)
      if (!isActive(step)) return this.#done(inactiveResult(step))
      this.step = step
    }
    const { action, flight } = this.step
    if (!needsService(this.step)) return this.#done(movedResult(this.step, lock.get(this.name)))
    if (action.do === 'create') return { is: 'create', request: () => this.#request() }
    if (flight?.run === action.run) {
      const elsewhere = this.#elsewhere(flight)
      if (elsewhere !== undefined)
        return this.#done({ step: this.step, result: 'failed', run: flight.run, error: elsewhere })
    }
    const { journal, address } = runs
    const row = journal?.tryRead(() => journal.find(address, action.run))
    const { isWithoutUrls } = knownRun(action.run, row)
    const { kind } = this.step.entry
    return {
      is: 'follow',
      run: { id: action.run, row: flight?.row ?? row?.row, kind, model: this.step.model, isWithoutUrls },
    }
  }

  #done(result: RowResult): Begin {
    this.#decided = result
    return { is: 'done', isMade: result.result === 'up_to_date' || result.result === 'moved' }
  }

  /** The same id may be another run at another service. */
  #elsewhere({ address, run }: Flight): RushesError | undefined {
    if (address === undefined || address === this.#session.runs.address) return undefined
    return new RushesError('wait_timeout', `Its run was created at ${address} and is not finished.`, {
      runId: run,
      hint: `Continue there with ${flagFor(address)}. Nothing is paid twice.`,
    })
  }

  async #request(): Promise<CreateRequest> {
    const { lock, name: batch, manifest, runs, dayLimit, ...session } = this.#session
    const { entry, hash, model = '' } = this.step
    const input = await session.inputOf(this.step)
    if (runs.journal !== undefined) await lock.begin(runs.journal.id).catch(session.onLockFailed)
    return {
      body: encodeCreate({ model, input }),
      intent: {
        kind: entry.kind,
        model,
        input,
        media: entry.media,
        identity: hash,
        labels: entry.labels,
        requestId: randomUUID(),
        estimate: session.estimateOf(this.step),
        name: entry.rowName,
        manifest,
        batch,
        entry: entry.name,
        folder: resolve('.'),
        dayLimit,
      },
    }
  }

  async deliver(run: Run, state: RunState): Promise<Delivery> {
    const { plan, lock, folder, continuation, runs, downloader } = this.#session
    const { step } = this
    const { entry } = step
    const places = new Places(step, { plan, folder, continuation })
    const delivery = await deliver(runs, state, {
      downloader,
      run: { kind: entry.kind, name: entry.rowName },
      row: run.known?.row,
      target: { kind: 'template', template: '' },
      owner: ownerOfParts(lock.batch),
      hint: `Download it with ${continuation}: nothing is paid again.`,
      earlier: places.inPlace,
      mayReplace: (index) => places.mayReplace(index),
      namesFor: (urls, from) => places.namesFor(urls, from),
      destinationOf: (file, index) => places.destinationOf(file, index),
    })
    if (delivery.error !== undefined) return { ...delivery, error: this.#withPayAgain(delivery.error) }
    this.#session.learn(state)
    this.#made = this.#madeOf(run, delivery.files)
    lock.set(this.name, this.#made)
    // Also where it had another name: the lock file closes only the earlier creates of this one.
    if (step.action.do === 'create' && step.flight?.row !== undefined) runs.journal?.closed(step.flight.row)
    this.#warnings.push(...delivery.warnings, ...leftoverWarnings(step, this.#made))
    this.#kept = places.keptError()?.with({ runId: run.id })
    return { ...delivery, error: this.#kept }
  }

  /** If the host of an output has deleted it, only another run helps. */
  #withPayAgain(error: RushesError): RushesError {
    if (error.httpStatus === undefined || !MISSING.includes(error.httpStatus)) return error
    const again = this.#session.payAgain(this.name)
    return withHint(error, `If its host has deleted it, no download can succeed. ${again}`)
  }

  #madeOf(run: Run, files: readonly DownloadedFile[]): Made {
    const { folder, lock, runs } = this.#session
    const { hash = '', model = '', entry } = this.step
    const [first, ...others] = files.map(({ path, url, bytes, sha256, content_type }): LockedOutput => {
      const file = relative(folder, path).replaceAll('\\', '/')
      return { url: publicUrl(url), file, sha256, bytes, content_type }
    })
    if (first === undefined) throw new Error('a succeeded run has an output')
    const outputs = others.map((each): FurtherOutput => ({ run: run.id, ...each }))
    const inputs: Record<string, string> = {}
    for (const used of entry.references) {
      const made = used.from === 'row' && outputsOf(lock.get(used.source))[used.output - 1]
      if (made) inputs[used.text] = made.sha256.slice(0, 8)
    }
    return {
      hash,
      kind: entry.kind,
      model,
      run: run.id,
      service: runs.address,
      ...first,
      made_at: new Date(runs.clock.now()).toISOString(),
      ...(Object.keys(inputs).length > 0 && { inputs }),
      ...(outputs.length > 0 && { outputs }),
    }
  }

  /** Returns the result of an ended row. Undefined: it was not started, or the next batch continues it. */
  resultOf(run: Run, result: Result): RowResult | undefined {
    const { step } = this
    const id = run.known?.id
    const failed = (error: RushesError): RowResult => ({ step, result: 'failed', run: id, error })
    switch (result.is) {
      case 'done':
        return this.#decided
      case 'succeeded': {
        const is = step.action.do === 'download' ? 'downloaded' : 'created'
        return { step, result: is, run: id, made: this.#made, warnings: this.#warnings }
      }
      case 'undelivered':
        if (this.#kept !== undefined)
          return { ...failed(this.#kept), made: this.#made, warnings: this.#warnings }
        // After a signal the row has not failed: the next batch continues its download.
        return this.#session.runs.interrupts.first.aborted ? undefined : failed(result.error)
      case 'failed':
        return failed(this.#explained(run, result.error))
      case 'running':
        return result.why === 'time limit' ? failed(result.error ?? this.#limitPassed(run)) : undefined
      case 'unconfirmed':
        return unconfirmedResult(step, result.key, result.error)
      case 'refused':
        return failed(
          withHint(
            result.error,
            `Continue with ${this.#session.continuation}: runs that exist are not paid again.`,
          ),
        )
      case 'blocked':
        return { step, result: 'blocked', blockedBy: result.by }
      default:
        return undefined
    }
  }

  #limitPassed({ id }: Run): RushesError {
    const { address, timeoutMs = 0 } = this.#session.runs
    const isLocal = address === 'local'
    // Without its id: equal errors are printed once.
    const message = stillRunning(isLocal ? 'the run' : 'The run', timeoutMs, isLocal)
    return new RushesError('wait_timeout', message, {
      runId: id,
      hint: `Continue with ${this.#session.continuation}. Nothing is paid twice.`,
    })
  }

  /** Adds to the error of a followed run how to continue, and records a run that has failed for good. */
  #explained({ state, known }: Run, error: RushesError): RushesError {
    const { payAgain, continuation, runs } = this.#session
    const isEnded = state !== undefined && state.phase !== 'running'
    if (error.code === 'run_not_found') {
      const service = this.step.locked?.service
      const where =
        service !== undefined && service !== runs.address && this.step.flight === undefined
          ? `It was created at ${service}. To continue there: ${flagFor(service)}.`
          : 'Check the API key: a run is visible only to its account.'
      return error.with({ hint: `${where} ${payAgain()}` })
    }
    // Nothing helps but another run, which a later batch does not create by itself.
    if (isEnded && (state.withoutUrls !== undefined || isOutcomeUnknown(state)))
      return withHint(error, payAgain(this.name))
    if (!isEnded) return withHint(error, `Continue with ${continuation}: the run is not paid again.`)
    const row = known?.row ?? this.step.flight?.row
    if (row !== undefined) runs.journal?.closed(row)
    return error
  }
}

/** Statuses of a host that no longer has an output, for links that were renewed. */
const MISSING: readonly number[] = [403, 404, 410]

const withHint = (error: RushesError, hint: string): RushesError =>
  error.with({ hint: [error.hint, hint].filter(Boolean).join(' ') })

/** Warns about files of an earlier run that had more outputs. */
const leftoverWarnings = ({ entry, locked }: ActiveStep, made: Made): readonly string[] =>
  outputsOf(locked)
    .slice(outputsOf(made).length)
    .map(({ file }) => `${file} is from an earlier run of ${entry.name}, and stays as it is`)

const flagFor = (address: string): string => (address === 'local' ? '--local' : `--base-url ${address}`)
