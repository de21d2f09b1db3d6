/**
 * One row of a batch that is carried out: what it needs is decided when the rows that it uses are made, and its files become
 * an entry of the lock file.
 *
 * The safe order of writes: claim, lock file with `working`, grant, journal `sending` (on the disk), bytes, `accepted`,
 * `ended`, part, journal names the file, rename, lock file (within a second), journal `recorded`, lock file without
 * `working`.
 */
import { randomUUID } from 'node:crypto'
import { relative, resolve } from 'node:path'
import { type LockedOutput, type Made, outputsOf, publicUrl } from '../../batch/lock/lock.js'
import { inputToSend } from '../../batch/manifest/sources.js'
import { type ActiveStep, decideAgain, isActive, needsService } from '../../batch/plan/index.js'
import type { Flight } from '../../batch/plan/pair.js'
import { Places } from '../../batch/results/places.js'
import { inactiveResult, movedResult, type RowResult, unconfirmedResult } from '../../batch/results/rows.js'
import { encodeCreate } from '../../client/create.js'
import type { Downloader } from '../../download/index.js'
import { RushesError } from '../../errors.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { isCanceled, isOutcomeUnknown, type RunState } from '../../protocol/run-state.js'
import { isoTime } from '../../protocol/units.js'
import { deliver } from '../../runs/deliver.js'
import { stillRunning } from '../../runs/follow.js'
import type { Begin, CreateRequest, Delivery, Result, Row, Run, RunsSession } from '../../runs/run.js'
import type { Context } from '../context/context.js'
import { flagOf } from '../runs/journal-rows.js'
import { fileUrl, type OutputUrls } from '../runs/run-outputs.js'
import { endHint } from '../settings/globals.js'
import type { BatchLock } from './batch-lock.js'
import { type PreparedBatch, pricedRun } from './prepare.js'

/** What the rows of a batch share. */
export interface RowParts {
  readonly ctx: Context
  readonly batch: PreparedBatch
  readonly lock: BatchLock
  readonly runs: RunsSession
  readonly outputs: OutputUrls
  readonly downloader: Downloader
}

export class BatchRow implements Row {
  readonly name: string
  readonly label: string
  readonly needs: readonly string[]
  step: ActiveStep
  readonly #parts: RowParts
  /** Decided again after the rows that it uses were made. */
  #decided: RowResult | undefined
  #made: Made | undefined
  #kept: RushesError | undefined
  readonly #warnings: string[] = []

  /** `active`: names of the rows that are carried out. */
  constructor(step: ActiveStep, active: ReadonlySet<string>, parts: RowParts) {
    this.step = step
    this.name = step.entry.name
    this.label = this.name
    // A download needs no output of another row.
    this.needs = step.action.do === 'create' ? step.sources.filter((name) => active.has(name)) : []
    this.#parts = parts
  }

  begin(): Begin {
    const { lock, batch, runs } = this.#parts
    if (this.needs.length > 0) {
      const step = decideAgain(this.step, batch.plan, (name) => lock.file.get(name), batch.isElsewhere)
      if (!isActive(step)) return this.#done(inactiveResult(step))
      this.step = step
    }
    const { action, flight, entry, model } = this.step
    if (!needsService(this.step)) return this.#done(movedResult(this.step, lock.file.get(this.name)))
    if (action.do === 'create') return { is: 'create', request: () => this.#request() }
    if (flight?.run === action.run) {
      const error = this.#elsewhere(flight)
      if (error !== undefined)
        return this.#done({ step: this.step, result: 'failed', run: flight.run, error })
    }
    const row = runs.journal?.tryRead((journal) => journal.find(runs.address, action.run))
    const known = { ...row, id: action.run, kind: entry.kind, model }
    return { is: 'follow', run: { ...known, row: flight?.row ?? row?.row } }
  }

  #done(result: RowResult): Begin {
    this.#decided = result
    return { is: 'done', isMade: result.result === 'up_to_date' || result.result === 'moved' }
  }

  /** The same id may be another run at another service. */
  #elsewhere({ address, run }: Flight): RushesError | undefined {
    if (address === undefined || address === this.#parts.runs.address) return undefined
    return new RushesError('wait_timeout', `Its run was created at ${address} and is not finished.`, {
      runId: run,
      hint: `Continue there with ${flagOf(address)}. Nothing is paid twice.`,
    })
  }

  async #request(): Promise<CreateRequest> {
    const { batch, lock, runs } = this.#parts
    const { source, limit } = batch.options
    const { entry, hash, model = '' } = this.step
    const input = await this.#input()
    if (runs.journal !== undefined) await lock.begin(runs.journal.id)
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
        estimate: limit.prices.estimate(pricedRun(this.step)),
        name: entry.rowName,
        manifest: resolve(source),
        batch: lock.name,
        entry: entry.name,
        folder: resolve('.'),
        dayLimit: limit.perDay,
      },
    }
  }

  /** Rejects if a file or an output that the row uses is not there. */
  async #input() {
    const { ctx, batch, lock, outputs } = this.#parts
    const { entry } = this.step
    const input = await inputToSend(entry, (reference) => {
      if (reference.from === 'file') return fileUrl(reference, entry.name)
      return outputs.ofRow(reference, lock.file.get(reference.source), batch.manifest.folder)
    })
    return outputs.ofRuns(ctx, input, entry.media)
  }

  async deliver(run: Run, state: RunState): Promise<Delivery> {
    const { batch, lock, runs, outputs, downloader } = this.#parts
    const { continuation, payAgain } = batch.options
    const { folder } = batch.manifest
    const { step } = this
    const { entry } = step
    const places = new Places(step, { plan: batch.plan, folder, continuation })
    const delivery = await deliver(runs, state, {
      downloader,
      run: { kind: entry.kind, name: entry.rowName },
      row: run.known?.row,
      target: { kind: 'template', template: '' },
      hint: `Download it with ${continuation}: nothing is paid again.`,
      earlier: places.inPlace,
      // `destinationOf` looks at each file again directly before it is replaced.
      overwrite: true,
      namesFor: (urls, from) => places.namesFor(urls, from),
      destinationOf: (file, index) => places.destinationOf(file, index),
    })
    const { error, warnings, files } = delivery
    if (error !== undefined) {
      // If the host of an output has deleted it, only another run helps.
      const isMissing = error.httpStatus !== undefined && MISSING.includes(error.httpStatus)
      const advice = `If its host has deleted it, no download can succeed. ${payAgain(this.name)}`
      return isMissing ? { ...delivery, error: error.with({ next: advice }) } : delivery
    }
    outputs.learn(state.id, state.urls)
    this.#made = this.#madeOf(run, files)
    lock.file.set(this.name, this.#made)
    // Also where it had another name: the lock file closes only the earlier creates of this one.
    if (step.action.do === 'create' && step.flight?.row !== undefined) runs.journal?.closed(step.flight.row)
    this.#warnings.push(...warnings)
    this.#kept = places.keptError()?.with({ runId: run.id })
    return { ...delivery, error: this.#kept }
  }

  #madeOf(run: Run, files: readonly DownloadedFile[]): Made {
    const { batch, lock, runs } = this.#parts
    const { hash = '', model = '', entry } = this.step
    const [first, ...outputs] = files.map(({ path, url, bytes, sha256, content_type }): LockedOutput => {
      const file = relative(batch.manifest.folder, path).replaceAll('\\', '/')
      return { url: publicUrl(url), file, sha256, bytes, content_type }
    })
    if (first === undefined) throw new Error('a succeeded run has an output')
    const inputs: Record<string, string> = {}
    for (const used of entry.references) {
      const made = used.from === 'row' && outputsOf(lock.file.get(used.source))[used.output - 1]
      if (made) inputs[used.text] = made.sha256.slice(0, 8)
    }
    return {
      hash,
      kind: entry.kind,
      model,
      run: run.id,
      service: runs.address,
      ...first,
      made_at: isoTime(runs.clock.now()),
      ...(Object.keys(inputs).length > 0 && { inputs }),
      ...(outputs.length > 0 && { outputs }),
    }
  }

  /** Returns the result of an ended row. Undefined: it was not started. */
  resultOf(run: Run, result: Result): RowResult | undefined {
    const { step } = this
    const { continuation } = this.#parts.batch.options
    const id = run.known?.id
    const failed = (error: RushesError): RowResult => ({ step, result: 'failed', run: id, error })
    const goesOn = (error?: RushesError): RowResult => ({ step, result: 'still_running', run: id, error })
    const made = { run: id, made: this.#made, warnings: this.#warnings }
    switch (result.is) {
      case 'done':
        return this.#decided
      case 'succeeded':
        return { step, result: step.action.do === 'download' ? 'downloaded' : 'created', ...made }
      case 'undelivered':
        if (this.#kept !== undefined) return { ...failed(this.#kept), ...made }
        // After a signal the row has not failed: the next batch continues its download.
        return this.#parts.runs.interrupts.first.aborted
          ? { ...goesOn(), isSucceeded: true }
          : failed(result.error)
      case 'failed':
        return failed(this.#explained(run, result.error))
      case 'running':
        return goesOn(result.why === 'time limit' ? (result.error ?? this.#limitPassed(run)) : undefined)
      case 'unconfirmed':
        return unconfirmedResult(step, result.key, result.error)
      case 'refused':
        return failed(
          result.error.with({ next: `Continue with ${continuation}: runs that exist are not paid again.` }),
        )
      case 'blocked':
        return { step, result: 'blocked', blockedBy: result.by }
      default:
        return undefined
    }
  }

  #limitPassed({ id }: Run): RushesError {
    const { runs, batch } = this.#parts
    const isLocal = runs.address === 'local'
    // Without its id: equal errors are printed once.
    const message = stillRunning(isLocal ? 'the run' : 'The run', runs.timeoutMs ?? 0, isLocal)
    return new RushesError('wait_timeout', message, {
      runId: id,
      hint: `Continue with ${batch.options.continuation}. Nothing is paid twice.`,
    })
  }

  /** Adds to the error of a followed run how to continue, and records a run that has failed for good. */
  #explained({ state, known }: Run, error: RushesError): RushesError {
    const { ctx, runs, batch } = this.#parts
    const { payAgain, continuation } = batch.options
    const isEnded = state !== undefined && state.phase !== 'running'
    if (error.code === 'run_not_found') {
      const service = this.step.locked?.service
      const where =
        service !== undefined && service !== runs.address && this.step.flight === undefined
          ? `It was created at ${service}. To continue there: ${flagOf(service)}.`
          : 'Check the API key: a run is visible only to its account.'
      return error.with({ hint: `${where} ${payAgain()}` })
    }
    if (!isEnded) return error.with({ next: `Continue with ${continuation}: the run is not paid again.` })
    const ended = error.with({ next: endHint(state, ctx.globals.local) })
    // Nothing helps but another run, which a later batch does not create by itself. The job of a canceled run is canceled,
    // also if it is adopted.
    if (state.withoutUrls !== undefined || (isOutcomeUnknown(state) && !isCanceled(state)))
      return ended.with({ next: payAgain(this.name) })
    const row = known?.row ?? this.step.flight?.row
    if (row !== undefined) runs.journal?.closed(row)
    return ended
  }
}

/** Statuses of a host that no longer has an output, for links that were renewed. */
const MISSING: readonly number[] = [403, 404, 410]
