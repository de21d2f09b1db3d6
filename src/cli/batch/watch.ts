/**
 * `rushes batch --watch` runs in rounds. A round plans, asks before it pays, and runs the batch under its own claim.
 * Then it waits until the manifest or one of its local images changes. Each round closes everything it opened, so that
 * another batch can run in between.
 */
import { relative, resolve } from 'node:path'
import { readLock } from '../../batch/lock/file.js'
import { outputsOf } from '../../batch/lock/lock.js'
import { claimWhenFree } from '../../batch/lock/open-lock.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import { Interruption, interrupted } from '../../host/interrupts.js'
import { writeJson } from '../../protocol/json.js'
import { listNames } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { InputEnded, openQuestions, type Questions } from '../terminal/confirm.js'
import { plural } from '../terminal/format.js'
import { beginReport } from './ci-reports.js'
import { estimateOf } from './estimates.js'
import type { BatchOptions, BatchWords } from './options.js'
import {
  checkManifest,
  claimOptionsOf,
  type LoadedManifest,
  type PreparedBatch,
  prepare,
  refusePlan,
} from './prepare.js'
import { printPlan, printWork } from './print-plan.js'
import { refuseUnwritable, runBatch } from './run-batch.js'
import { createWatchedFiles, type WatchedFiles } from './watched-files.js'

interface WatchState {
  readonly words: BatchWords
  /** Undefined if no question is needed before creates. */
  readonly questions: Questions | undefined
  /** The creates that the user has agreed to pay for. */
  agreed: ReadonlySet<string>
  /**
   * `--force` and `--resubmit-unconfirmed` apply to one round only: otherwise each save would pay for all rows again.
   */
  options: BatchOptions
  isFirst: boolean
  /** Whether the `--report` file was emptied. All rounds write to it. */
  hasReport: boolean
}

/** A number is the exit code of the command. `again`: the plan differs from the one shown. */
type RoundEnd = number | 'done' | 'again'

/** Exit codes that end the command. Other errors can be fixed in the manifest, or may be gone at the next change. */
const FATAL_EXIT_CODES: readonly number[] = [EXIT.bug, EXIT.key, EXIT.account, EXIT.outcomeUnknown]

/** Runs rounds until a signal, or until an error makes further rounds useless. Returns the exit code. */
export async function watchBatch(ctx: Context, words: BatchWords, options: BatchOptions): Promise<number> {
  if (words.source === '-')
    throw usageError('--watch needs a manifest file, not standard input.', 'Give the path of the manifest.')
  const asks = options.mode === 'run' && !options.yes
  const questions = asks ? openQuestions(ctx) : undefined
  if (asks && questions === undefined)
    throw usageError(
      '--watch asks before it creates runs, which needs a terminal.',
      'Add --yes to create them without asking, or --dry-run to print the plan after each change.',
    )
  const watch: WatchState = {
    words,
    questions,
    agreed: new Set(),
    options,
    isFirst: true,
    hasReport: false,
  }
  try {
    for (;;) {
      const files = createWatchedFiles(ctx.clock, words.source)
      const ended = await runRound(ctx, watch, files)
      if (typeof ended === 'number') return ended
      watch.isFirst = false
      if (ended !== 'again') await nextChange(ctx, watch, files)
    }
  } catch (thrown) {
    if (thrown instanceof InputEnded) {
      ctx.out.note('Standard input has ended. Stopped watching.')
      return EXIT.ok
    }
    // A running batch prints its own interruption.
    if (!(thrown instanceof Interruption) || thrown.by === 'stdout closed') throw thrown
    const message = 'Stopped watching. No run was being created.'
    if (ctx.out.mode.json) throw interrupted(thrown, message)
    ctx.out.note(message)
    return thrown.exitCode
  } finally {
    questions?.close()
  }
}

async function runRound(ctx: Context, watch: WatchState, files: WatchedFiles): Promise<RoundEnd> {
  const own = ctx.separate()
  try {
    const end = await (watch.options.mode === 'run' ? batchRound : dryRound)(own, watch, files)
    if (end === 'done') own.out.note(`Watching ${namesOf(watch, files)} for changes. Press Ctrl-C to stop.`)
    return end
  } finally {
    await own.close()
  }
}

const namesOf = ({ words }: WatchState, { count }: WatchedFiles): string =>
  count === 1 ? words.source : `${words.source} and ${plural(count - 1, 'image')}`

const MAX_NAMES = 3

/** Waits for the next change. Rejects with the `Interruption` of a signal, or with `InputEnded`. */
async function nextChange(
  { out, interrupts }: Context,
  { questions }: WatchState,
  files: WatchedFiles,
): Promise<void> {
  const stop = new AbortController()
  const forget = [interrupts.first, questions?.ended].map((signal) =>
    onAbort(signal, () => stop.abort(signal?.reason)),
  )
  try {
    await files.untilChanged(stop.signal)
  } finally {
    for (const each of forget) each()
  }
  const names = files.changed().map((path) => relative('.', path) || path)
  if (names.length > 0) out.note(`${listNames(names, MAX_NAMES)} changed`)
}

interface PlannedRound {
  readonly loaded: LoadedManifest
  readonly prepared: PreparedBatch
}

/** Makes the plan of a round. Returns errors that an edit of the manifest can fix. */
async function planRound(
  ctx: Context,
  watch: WatchState,
  files: WatchedFiles,
): Promise<PlannedRound | RushesError> {
  const { words, options } = watch
  // Watch the file before it is read, so that no change is missed.
  files.add(words.source)
  const loaded = await orUsage(watch, () =>
    checkManifest(ctx, words.source, { ...options, onImage: files.add }),
  )
  if (loaded instanceof RushesError) return loaded
  if (!watch.hasReport && words.flags.report !== undefined) beginReport(words.flags.report, loaded)
  watch.hasReport = true
  // Throws for an invalid lock file, which ends the command: no edit of the manifest can fix it.
  readLock(loaded.lockPath, loaded.manifest.path)
  const prepared = await orUsage(watch, () => prepare(ctx, loaded, options, words))
  return prepared instanceof RushesError ? prepared : { loaded, prepared }
}

/** Returns `usage` errors, except in the first round: there an error such as a mistyped path ends the command. */
async function orUsage<Result>(
  { isFirst }: WatchState,
  work: () => Promise<Result>,
): Promise<Result | RushesError> {
  try {
    return await work()
  } catch (thrown) {
    if (isFirst || !isUsage(thrown)) throw thrown
    return thrown
  }
}

const isUsage = (thrown: unknown): thrown is RushesError =>
  thrown instanceof RushesError && thrown.code === 'usage'

/** Returns the error of an impossible plan, which an edit can fix. */
async function problemOf(ctx: Context, prepared: PreparedBatch): Promise<RushesError | undefined> {
  try {
    await refusePlan(prepared)
    refuseUnwritable(ctx, prepared)
  } catch (thrown) {
    if (!isUsage(thrown)) throw thrown
    return thrown
  }
  return undefined
}

function printProblem({ out }: Context, error: RushesError): RoundEnd {
  out.error(error)
  return 'done'
}

async function dryRound(ctx: Context, watch: WatchState, files: WatchedFiles): Promise<RoundEnd> {
  const planned = await planRound(ctx, watch, files)
  if (planned instanceof RushesError) return printProblem(ctx, planned)
  printPlan(ctx, planned.prepared)
  const problem = await problemOf(ctx, planned.prepared)
  if (problem !== undefined) ctx.out.error(problem)
  return 'done'
}

async function batchRound(ctx: Context, watch: WatchState, files: WatchedFiles): Promise<RoundEnd> {
  const planned = await planRound(ctx, watch, files)
  if (planned instanceof RushesError) return printProblem(ctx, planned)
  const { loaded, prepared } = planned
  const problem = await problemOf(ctx, prepared)
  if (problem !== undefined) return printProblem(ctx, problem)
  const mayRun = await askToCreate(ctx, watch, prepared)
  if (files.changed().length > 0) return 'done'
  if (mayRun) return await runRoundBatch(ctx, watch, files, loaded)
  ctx.out.note('Nothing was created.')
  return 'done'
}

async function runRoundBatch(
  ctx: Context,
  watch: WatchState,
  files: WatchedFiles,
  loaded: LoadedManifest,
): Promise<RoundEnd> {
  const { lockPath } = loaded
  const claim = await claimWhenFree(claimOptionsOf(ctx, lockPath))
  let code: number
  try {
    if (files.changed().length > 0) return 'done'
    // The question may have been answered a day later. Another round then plans with the documents and prices of now.
    if (await (await ctx.models()).refreshIfOld()) return 'again'
    // Another batch may have written the lock file since the plan was shown.
    const ready = await prepare(ctx, loaded, watch.options, watch.words)
    if ((await problemOf(ctx, ready)) !== undefined) return 'again'
    if (watch.questions !== undefined && !isWithin(createsOf(ready), watch.agreed)) return 'again'
    code = await runBatch(ctx, ready, claim)
  } finally {
    await claim.release()
  }
  watch.options = { ...watch.options, force: false, resubmitUnconfirmed: false }
  // The next creates need a new answer.
  watch.agreed = new Set()
  // Files written by the batch itself start no round: a row may use the output of another row as a file.
  files.accept(filesOf(loaded))
  if (code === ctx.interrupts.first.reason?.exitCode) return code
  if (!FATAL_EXIT_CODES.includes(code)) return 'done'
  ctx.out.note('Stopped watching because of this error.')
  return code
}

function filesOf({ lockPath, manifest }: LoadedManifest): readonly string[] {
  const { entries } = readLock(lockPath, manifest.path)
  return [...entries.values()].flatMap(({ made }) =>
    outputsOf(made).map(({ file }) => resolve(manifest.folder, file)),
  )
}

/**
 * Prints the work, and asks before creates, unless the user has agreed to them. Rejects with the `Interruption` of a
 * signal, or with `InputEnded`.
 */
async function askToCreate(ctx: Context, watch: WatchState, prepared: PreparedBatch): Promise<boolean> {
  const { questions, agreed } = watch
  const creates = createsOf(prepared)
  if (creates.size > 0 && isWithin(creates, agreed)) return true
  printWork(ctx, prepared)
  if (questions === undefined || creates.size === 0) return true
  // Discard keystrokes that were made before the question.
  for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve))
  const isAgreed = (await questions.ask(`Create ${plural(creates.size, 'run')}?`)) === 'yes'
  questions.ended.throwIfAborted()
  watch.agreed = isAgreed ? creates : new Set()
  return isAgreed
}

/** Identifies the creates that would be paid for, and their estimates. */
const createsOf = ({ plan, prices }: PreparedBatch): ReadonlySet<string> =>
  new Set(
    plan.steps.flatMap((step) => {
      const { entry, model, hash } = step
      const paid = [entry.name, model, hash ?? entry.identityInput, estimateOf(step, prices)?.millionths]
      return step.action.do === 'create' ? [writeJson(paid)] : []
    }),
  )

const isWithin = (some: ReadonlySet<string>, all: ReadonlySet<string>): boolean =>
  [...some].every((each) => all.has(each))
