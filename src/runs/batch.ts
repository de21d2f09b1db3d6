/**
 * Carries out the plan of a batch. Each active step becomes a row of the engine, and its lock entry is written before
 * and after each event. A row that uses other rows starts when their files exist.
 */
import { randomUUID } from 'node:crypto'
import { relative } from 'node:path'
import type { BatchClaim } from '../batch/lock/claim.js'
import type { LockKeeper } from '../batch/lock/file.js'
import {
  type FurtherOutput,
  type InputHashes,
  type LockedOutput,
  type Made,
  outputsOf,
  publicUrl,
} from '../batch/lock/lock.js'
import { createRowLock, type RowLock } from '../batch/lock/row-lock.js'
import { inputHashes } from '../batch/plan/decide.js'
import { decideAgain, type Plan, type PlanOptions } from '../batch/plan/index.js'
import {
  destinationOf,
  keptError,
  type OutputFile,
  placesFor,
  refuseOtherBytes,
} from '../batch/results/places.js'
import {
  type ActiveStep,
  activeSteps,
  createWaitingRows,
  inactiveResult,
  isActive,
  movedResult,
  needsService,
  type RowResult,
  type WaitingRows,
} from '../batch/results/rows.js'
import { encodeCreate } from '../client/create.js'
import type { Downloader } from '../download/index.js'
import { RushesError } from '../errors.js'
import { asRushesError } from '../host/interrupts.js'
import type { RunEstimate } from '../journal/index.js'
import type { ModelInput } from '../protocol/models.js'
import { progressOf } from '../protocol/parse.js'
import { isCanceled, isOutcomeUnknown, type RunState } from '../protocol/run-state.js'
import { quoteWord } from '../protocol/text.js'
import type { CreateRequest, Submitted } from './create.js'
import { deliver, deliveryError } from './deliver.js'
import { type FollowedRun, knownRun } from './follow.js'
import { carryOut, type Row, type RunsOptions, type StopReason } from './index.js'
import type { Recorder } from './recorder.js'

export interface BatchService {
  readonly client: RunsOptions['client']
  readonly recorder: RunsOptions['recorder'] & Pick<Recorder, 'prepare' | 'find' | 'filesOf' | 'recordFiles'>
  readonly downloader: Downloader
  /** Address of the service, as written to the lock file. */
  readonly address: string
  readonly isLocal: boolean
}

type EngineOptions = Omit<RunsOptions, 'rows' | 'mayCreate' | keyof BatchService>

export interface BatchRunOptions extends EngineOptions {
  readonly plan: Plan
  readonly keeper: LockKeeper
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  /** Absolute path of the manifest. Undefined if it was read from standard input. */
  readonly manifest: string | undefined
  /** Undefined if no row needs the service. */
  readonly service: BatchService | undefined
  readonly claim: BatchClaim
  readonly identity: PlanOptions['identity']
  /** Command that continues the batch and pays for no run again: it leaves out `--force`. */
  readonly continuation: string
  /** Returns the command that creates a row again, and pays for it again. */
  payAgain(row: string): string
  /** Returns the input to send. Rejects if a file or an output that the row uses is not there. */
  inputOf(step: ActiveStep): Promise<ModelInput>
  estimateOf(step: ActiveStep): RunEstimate | undefined
  /** Whether another program changed the lock entry of a row of this batch: no further create is sent. */
  isChanged(): boolean
  /** Called before each create is sent. */
  onSending(): void
  /** Called when a create was accepted, or when its outcome is unknown. */
  onSent(step: ActiveStep): void
  /** `detail`: how far the run is, for example `40 %`. */
  onStatus(step: ActiveStep, run: string, status: string, detail?: string): void
  /** Called when the outputs of a run were downloaded. */
  onDownloaded(state: RunState): void
  /** Called when a row has ended. */
  onResult(result: RowResult): void
}

interface Batch extends BatchRunOptions {
  readonly waiting: WaitingRows
  /** Results that are not settled yet. */
  readonly results: RowResult[]
  isSettling: boolean
  /** The rows that can start. */
  ready: Row[]
  /** Number of rows that have not ended. */
  left: number
  /** No further create is sent. */
  isStopped: boolean
  /** Error of the lock file. */
  writeError: RushesError | undefined
}

interface BatchRow {
  readonly batch: Batch
  readonly service: BatchService
  readonly step: ActiveStep
  readonly lock: RowLock
  /** Length of the longest chain of rows that wait for its output. */
  readonly chainLength: number
  /** Identifies the create in the journal and in the lock file. */
  readonly token: string
  /** The lock file has recorded the create. */
  isNoted: boolean
  isTimedOut: boolean
  /** Id of the run. */
  run: string | undefined
  /** Last status of the run. */
  status: string | undefined
}

/**
 * Resolves when each row has ended or will never start: with the error of the lock file that stopped it, if rows are
 * left. Rejects with the signal's reason, after all work has ended.
 */
export async function carryOutPlan(options: BatchRunOptions): Promise<RushesError | undefined> {
  const { plan, service, signal } = options
  const steps = activeSteps(plan)
  const batch: Batch = {
    ...options,
    waiting: createWaitingRows(steps),
    results: [],
    isSettling: false,
    ready: [],
    left: steps.length,
    isStopped: false,
    writeError: undefined,
  }
  for (const step of batch.waiting.free) begin(batch, step)
  if (service === undefined) return undefined
  await carryOut({ ...options, ...service, rows: takeReady(batch), mayCreate: () => mayCreate(batch) })
  // A signal may have arrived during the last downloads.
  signal.throwIfAborted()
  return batch.left > 0 ? batch.writeError : undefined
}

const mayCreate = ({ isStopped, isChanged }: Batch): boolean => !isStopped && !isChanged()

/** Returns the rows that can start, and clears the list. */
function takeReady(batch: Batch): readonly Row[] {
  const rows = batch.ready
  batch.ready = []
  return rows
}

function begin(batch: Batch, step: ActiveStep): void {
  const { service, keeper } = batch
  if (!needsService(step)) ended(batch, movedResult(step, keeper.entry(step.entry.name)?.made))
  else if (service !== undefined) batch.ready.push(createRow(batch, service, step))
}

/** Settles one result at a time, so that a chain of thousands of rows does not fill the stack. */
function ended(batch: Batch, result: RowResult): void {
  batch.results.push(result)
  if (batch.isSettling) return
  batch.isSettling = true
  try {
    for (let next = batch.results.shift(); next !== undefined; next = batch.results.shift())
      settle(batch, next)
  } finally {
    batch.isSettling = false
  }
}

function settle(batch: Batch, result: RowResult): void {
  const { waiting, stopsCreating } = batch
  if (result.error !== undefined && stopsCreating(result.error)) batch.isStopped = true
  report(batch, result)
  const { name } = result.step.entry
  const isDone = result.error === undefined && (result.made !== undefined || result.result === 'up_to_date')
  if (isDone) for (const step of waiting.release(name)) resume(batch, step)
  else for (const step of waiting.block(name)) report(batch, { step, result: 'blocked', blockedBy: name })
}

function report(batch: Batch, result: RowResult): void {
  batch.left--
  batch.onResult(result)
}

/** Decides the action of a waiting row again, because the outputs that it uses now exist. */
function resume(batch: Batch, waited: ActiveStep): void {
  const { keeper, identity } = batch
  const step = decideAgain(waited, keeper.entry, identity)
  if (isActive(step)) begin(batch, step)
  else ended(batch, inactiveResult(step))
}

/** The lock file could not be written: no further create is sent. */
function onWriteError(batch: Batch, error: unknown): void {
  batch.isStopped = true
  batch.writeError ??= asRushesError(error)
}

function createRow(batch: Batch, service: BatchService, step: ActiveStep): Row {
  const { entry, action, hash = '', model = '' } = step
  const chainLength = batch.waiting.chainLength(entry.name)
  const lock = createRowLock({
    keeper: batch.keeper,
    name: entry.name,
    create: () => ({
      hash,
      model,
      kind: entry.kind,
      service: service.address,
      inputs: inputsOf(batch, step),
    }),
    clock: batch.clock,
    onWriteError: (error) => onWriteError(batch, error),
  })
  const run = action.do === 'download' ? action.run : undefined
  const row: BatchRow = {
    ...{ batch, service, step, lock, chainLength, run },
    token: randomUUID(),
    isNoted: false,
    isTimedOut: false,
    status: undefined,
  }
  return {
    model,
    chainLength,
    ...(run === undefined
      ? { request: () => requestOf(row), onSubmitted: (submitted, isLast) => submit(row, submitted, isLast) }
      : { run: existingRun(row, run) }),
    onStatus(state) {
      batch.onStatus(step, state.id, state.status, progressOf(state))
      row.status = state.status
    },
    errorAt: (stop, errorAtLimit) => errorOf(row, stop, errorAtLimit),
    end: (followed) => end(row, followed),
  }
}

function inputsOf({ keeper, identity }: Batch, { entry, identityInput }: ActiveStep): InputHashes {
  const known = { ...entry, identityInput: identityInput ?? entry.identityInput }
  return inputHashes(known, (name) => keeper.entry(name)?.made, identity)
}

function existingRun({ service, step }: BatchRow, id: string) {
  const { isWithoutUrls } = knownRun(id, service.recorder.find(id))
  return { id, kind: step.entry.kind, model: step.model ?? '', isWithoutUrls }
}

async function requestOf(row: BatchRow): Promise<CreateRequest> {
  const { batch, step, token: requestId } = row
  const { entry, model = '', identityInput = entry.identityInput } = step
  const { kind, labels, rowName: name } = entry
  const { manifest } = batch
  const input = await batch.inputOf(step)
  const run = { kind, model, input, identityInput, labels, estimate: batch.estimateOf(step) }
  return {
    body: encodeCreate({ model, input }),
    intent: { ...run, name, manifest, requestId, isPrepared: true },
    need: 'required',
    beforeSend: () => beforeSend(row),
  }
}

async function beforeSend(row: BatchRow): Promise<boolean> {
  const { batch, service, lock, token } = row
  // Write the journal before the lock file: if the batch is killed between the two writes, the next one knows that
  // nothing was sent.
  try {
    service.recorder.prepare([token])
  } catch (error) {
    batch.isStopped = true
    throw error
  }
  row.isNoted = true
  await lock.sending(token)
  // The write may find changes that others made to the lock file, which stop this batch.
  if (!mayCreate(batch)) return false
  batch.onSending()
  // Check after the lock file has recorded the create: see claim.ts.
  try {
    await batch.claim.check()
  } catch (error) {
    if (error !== batch.claim.lost.reason) throw error
    return false
  }
  return true
}

async function submit(row: BatchRow, submitted: Submitted, isLast: boolean): Promise<void> {
  const { batch, step, lock, token } = row
  if (submitted.is === 'created' || submitted.is === 'unconfirmed') batch.onSent(step)
  const result = submitted.is === 'created' ? ({ is: 'created', id: submitted.run.id } as const) : submitted
  await lock.submitted(result, token, row.isNoted)
  if (submitted.is === 'unconfirmed') endRow(row, { result: 'unconfirmed', error: submitted.error })
  if (submitted.is === 'refused') {
    const { error } = submitted
    const hint = `Continue with ${batch.continuation}: runs that exist are not paid again.`
    endRow(row, { result: 'failed', error: isLast ? withHint(error, hint) : error })
  }
  if (submitted.is !== 'created') return
  row.run = submitted.run.id
  batch.onStatus(step, row.run, submitted.status ?? 'accepted')
}

const endRow = ({ batch, step, run }: BatchRow, result: Omit<RowResult, 'step' | 'run'>): void =>
  ended(batch, { ...result, step, run })

function errorOf(
  row: BatchRow,
  stop: StopReason,
  errorAtLimit: (limit: RushesError) => RushesError,
): RushesError | undefined {
  // After a signal, the next batch continues the row.
  if (stop.is !== 'time limit') return undefined
  const { batch, run, status } = row
  row.isTimedOut = true
  return errorAtLimit(
    new RushesError('wait_timeout', `The timeout passed. Last known status: ${status ?? 'unknown'}.`, {
      runId: run,
      hint: `Continue with ${batch.continuation}. Nothing is paid twice.`,
    }),
  )
}

async function end(row: BatchRow, { state, error }: FollowedRun): Promise<readonly Row[]> {
  if (error === undefined && state !== undefined) {
    await download(row, state)
    // If no row waits for this one, the rows that are ready now belong to another row that is ending.
    return row.chainLength === 0 ? [] : takeReady(row.batch)
  }
  // With an unknown outcome, the run stays in the entry: a later batch asks whether its job has been adopted.
  if (state?.phase === 'failed' && (isCanceled(state) || !isOutcomeUnknown(state))) await row.lock.failed()
  // At the time limit, a 404 may come from a replica that does not know the run yet.
  const shown = error && !row.isTimedOut ? explained(row, error, state) : error
  endRow(row, { result: 'failed', error: shown })
  return []
}

const withHint = (error: RushesError, hint: string): RushesError =>
  error.with({ hint: [error.hint, hint].filter(Boolean).join(' ') })

/** Adds to the error of a followed run how to continue. */
function explained(
  { batch, service, step }: BatchRow,
  error: RushesError,
  state: RunState | undefined,
): RushesError {
  const { payAgain, continuation } = batch
  if (error.code !== 'run_not_found') {
    if (state !== undefined && (state.withoutUrls !== undefined || isOutcomeUnknown(state)))
      return withHint(error, payAgain(quoteWord(step.entry.name)))
    const isEnded = state !== undefined && state.phase !== 'running'
    return isEnded ? error : withHint(error, `Continue with ${continuation}: the run is not paid again.`)
  }
  // The run may belong to another key, so it is not created again unless the user asks for it.
  const address = createdAt(step)
  return error.with({
    hint:
      address !== undefined && address !== service.address
        ? `It was created at ${address}. To continue there: --base-url ${address}. ${payAgain('<row>')}`
        : `Check the API key: a run is visible only to its account. ${payAgain('<row>')}`,
  })
}

/** Returns the address at which the run of a row was created. */
function createdAt({ locked, action }: ActiveStep): string | undefined {
  const { made, pending } = locked ?? {}
  const isMade = action.do === 'download' && made?.run === action.run
  return isMade ? made?.service : pending?.service
}

async function download(row: BatchRow, state: RunState): Promise<void> {
  const { batch, step, lock } = row
  const { folder, continuation } = batch
  /** Files that were kept, by the path of the result beside them. */
  const kept = new Map<string, string>()
  const { files, warnings, error } = await downloadOutputs(row, state, kept)
  if (error !== undefined) {
    // After a signal the row has not failed: the next batch continues its download.
    if (!batch.signal.aborted) endRow(row, { result: 'failed', error })
    return
  }
  const made = madeOf(row, files)
  await lock.made(made)
  const notReplaced = keptError(kept, folder, continuation)?.with({ runId: state.id })
  const succeeded = step.action.do === 'download' ? 'downloaded' : 'created'
  endRow(row, {
    result: notReplaced === undefined ? succeeded : 'failed',
    made,
    warnings: [...warnings, ...leftoverWarnings(step, made)],
    error: notReplaced,
  })
}

/** Statuses of a host that no longer has an output, for links that were renewed. */
const MISSING: readonly number[] = [403, 404, 410]

interface Downloaded {
  readonly files: readonly OutputFile[]
  readonly warnings: readonly string[]
  readonly error: RushesError | undefined
}

/** Downloads the outputs of a succeeded run, and moves them into place. */
async function downloadOutputs(
  { batch, service, step, lock }: BatchRow,
  state: RunState,
  kept: Map<string, string>,
): Promise<Downloaded> {
  const { plan, folder, continuation } = batch
  const { client, downloader, recorder } = service
  const { urls, id } = state
  const places = await placesFor(step, { urls, disk: plan.disk, folder, continuation }).catch(asRushesError)
  if (places instanceof RushesError) return { files: [], warnings: [], error: places.with({ runId: id }) }
  const { files, warnings, errors, thrown } = await deliver({
    client,
    clock: batch.clock,
    downloader,
    state,
    run: { kind: step.entry.kind, name: step.entry.rowName },
    target: { kind: 'template', template: '' },
    namer: { name: () => places.map(({ path }) => path) },
    mayReplace: (index) => places[index]?.inPlace === undefined,
    signal: batch.signal,
    earlier: [...places.flatMap(({ inPlace }) => inPlace ?? []), ...recorder.filesOf(id)],
    async beforeMove(file, index) {
      refuseOtherBytes(file, step, index)
      const { sha256, bytes, content_type } = file
      await lock.placing({ run: id, output: index + 1, sha256, bytes, content_type })
      const destination = await destinationOf(file, places[index], step.flags.overwrite, plan, folder)
      if (destination.kept !== undefined) kept.set(destination.path, destination.kept)
      return destination
    },
  })
  if (thrown === undefined) {
    recorder.recordFiles(id, files)
    batch.onDownloaded(state)
  }
  const isMissing = errors.some(({ httpStatus }) => httpStatus !== undefined && MISSING.includes(httpStatus))
  const again = isMissing
    ? ` If its host has deleted it, no download can succeed. ${batch.payAgain(quoteWord(step.entry.name))}`
    : ''
  const hint = `Download it with ${continuation}: nothing is paid again.${again}`
  return { files, warnings, error: deliveryError({ errors, thrown }, id, hint) }
}

function madeOf({ batch, service, step, run = '' }: BatchRow, files: readonly OutputFile[]): Made {
  const [first, ...others] = files.map(({ path, url, bytes, sha256, content_type }): LockedOutput => {
    const file = relative(batch.folder, path).replaceAll('\\', '/')
    return { url: publicUrl(url), file, sha256, bytes, content_type }
  })
  if (first === undefined) throw new Error('a succeeded run has an output')
  const outputs = others.map((each): FurtherOutput => ({ run, ...each }))
  return {
    hash: step.hash ?? '',
    model: step.model ?? '',
    kind: step.entry.kind,
    run,
    service: service.address,
    ...first,
    made_at: new Date(batch.clock.now()).toISOString(),
    inputs: inputsOf(batch, step),
    ...(outputs.length > 0 && { outputs }),
  }
}

/** Warns about files of an earlier run that had more outputs. */
const leftoverWarnings = ({ entry, locked }: ActiveStep, made: Made): readonly string[] =>
  outputsOf(locked?.made)
    .slice(outputsOf(made).length)
    .map(({ file }) => `${file} is from an earlier run of ${entry.name}, and stays as it is`)
