/**
 * `rushes batch --watch`: one round after another. A round plans, asks before it pays, and carries the plan out under a
 * claim of its own; then the manifest and its local images are watched until one of them changes. What is held open for a
 * round is closed after it, so that another batch may run meanwhile.
 */
import { relative, resolve } from 'node:path'
import { readLock } from '../../batch/lock/file.js'
import { outputsOf } from '../../batch/lock/lock.js'
import { countsOf } from '../../batch/plan/index.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import type { Context } from '../context/context.js'
import { interrupted } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { InputEnded, openQuestions, type Questions } from '../terminal/confirm.js'
import { plural } from '../terminal/plural.js'
import { adoptedPlan } from './adopt.js'
import { claimWhenFree } from './claim-for.js'
import type { BatchWords } from './command-line.js'
import { type Consent, createConsent } from './consent.js'
import { checkManifest, type Loaded } from './load.js'
import type { BatchOptions } from './options.js'
import { type Prepared, prepare } from './prepare.js'
import { printDryRun, refusePlan } from './print-plan.js'
import { beginReport } from './report-file.js'
import { runBatch } from './run-batch.js'
import { stepCells } from './show.js'
import { createWatchedFiles, type WatchedFiles } from './watched-files.js'

interface Watch {
  readonly words: BatchWords
  /** Undefined where nothing is asked. */
  readonly questions: Questions | undefined
  readonly consent: Consent
  /** `--force` and `--resubmit-unconfirmed` are for one round: else each save would pay for all rows again. */
  options: BatchOptions
  isFirst: boolean
  /** Whether the file of `--report` was emptied: all rounds write into it. */
  hasReport: boolean
  /** What the last round without work has said: it is not said again. */
  said: string | undefined
}

/** A number ends the command. `again`: the plan is no longer the one that was shown. `silent`: nothing has changed since the last message. */
type RoundEnd = number | 'done' | 'again' | 'silent'

/** Everything else can be fixed in the manifest, or may be over at the next change. */
const ENDING: readonly number[] = [EXIT.bug, EXIT.key, EXIT.account, EXIT.outcomeUnknown]

/** Ends with an exit code when an error makes further rounds useless, else by a signal. */
export async function watchBatch(ctx: Context, words: BatchWords, options: BatchOptions): Promise<number> {
  if (words.word === '-')
    throw usageError('--watch needs a manifest file, not standard input.', 'Give the path of the manifest.')
  const asks = options.mode === 'run' && !options.yes
  const questions = asks ? openQuestions(ctx) : undefined
  if (asks && questions === undefined)
    throw usageError(
      '--watch asks before it creates runs, which needs a terminal.',
      'Add --yes to create them without asking, or --dry-run to print the plan after each change.',
    )
  const consent = createConsent(questions)
  const watch: Watch = {
    words,
    questions,
    consent,
    options,
    isFirst: true,
    hasReport: false,
    said: undefined,
  }
  try {
    for (;;) {
      const files = createWatchedFiles(ctx.clock, words.word)
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
    // A round that is carried out reports its interruption itself.
    if (!(thrown instanceof Interruption) || thrown.by === 'stdout closed') throw thrown
    throw interrupted(thrown, 'Interrupted. No run was being created.')
  } finally {
    questions?.close()
  }
}

async function runRound(ctx: Context, watch: Watch, files: WatchedFiles): Promise<RoundEnd> {
  const own = ctx.separate()
  try {
    const end = await (watch.options.mode === 'run' ? batchRound : dryRound)(own, watch, files)
    if (end === 'done') own.out.note(`Watching ${namesOf(watch, files)} for changes. Press Ctrl-C to stop.`)
    return end
  } finally {
    await own.close()
  }
}

const namesOf = ({ words }: Watch, { count }: WatchedFiles): string =>
  count === 1 ? words.word : `${words.word} and ${plural(count - 1, 'image')}`

const MAX_NAMES = 3

/** Rejects with the `Interruption` of a signal, and with `InputEnded`. */
async function nextChange(
  { out, interrupts }: Context,
  { questions }: Watch,
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
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  if (names.length > 0) out.note(`${names.slice(0, MAX_NAMES).join(', ')}${more} changed`)
}

interface Planned {
  readonly loaded: Loaded
  readonly prepared: Prepared
}

/** Or the error that an edit can fix. */
async function planRound(ctx: Context, watch: Watch, files: WatchedFiles): Promise<Planned | RushesError> {
  const { words, options } = watch
  // Before it is read, so that no change is missed.
  files.add(words.word)
  const loaded = await orUsage(watch, () =>
    checkManifest(ctx, words.word, { ...options, onImage: files.add }),
  )
  if (loaded instanceof RushesError) return loaded
  if (!watch.hasReport) beginReport(words.flags.report, loaded)
  watch.hasReport = true
  // No edit of the manifest repairs a lock file: its error ends the command.
  readLock(loaded.lockPath, loaded.manifest.path)
  const prepared = await orUsage(watch, () => prepare(ctx, loaded, options, words))
  return prepared instanceof RushesError ? prepared : { loaded, prepared }
}

/** At the start an error such as a mistyped path is one of the command line, and ends the command. */
async function orUsage<Result>(
  { isFirst }: Watch,
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

/** With the runs that the journal knows; or the error of a plan that cannot be carried out, which an edit can fix. */
async function readyPlan(ctx: Context, prepared: Prepared): Promise<Prepared | RushesError> {
  try {
    const ready = { ...prepared, plan: await adoptedPlan(ctx, prepared) }
    refusePlan(ready)
    return ready
  } catch (thrown) {
    if (!isUsage(thrown)) throw thrown
    return thrown
  }
}

/** An error is printed once, however often the manifest is saved with it. */
function sayProblem({ out }: Context, watch: Watch, error: RushesError): RoundEnd {
  const text = JSON.stringify([error.message, error.hint])
  if (text === watch.said) {
    out.note('The errors are the same.')
    return 'silent'
  }
  watch.said = text
  out.error(error)
  return 'done'
}

async function dryRound(ctx: Context, watch: Watch, files: WatchedFiles): Promise<RoundEnd> {
  const planned = await planRound(ctx, watch, files)
  if (planned instanceof RushesError) return sayProblem(ctx, watch, planned)
  const { prepared } = planned
  const text = JSON.stringify(prepared.plan.steps.map(stepCells))
  if (text === watch.said) {
    ctx.out.note('The plan is the same.')
    return 'silent'
  }
  watch.said = text
  await printDryRun(ctx, prepared)
  try {
    refusePlan(prepared)
  } catch (thrown) {
    if (!isUsage(thrown)) throw thrown
    ctx.out.error(thrown)
  }
  return 'done'
}

async function batchRound(ctx: Context, watch: Watch, files: WatchedFiles): Promise<RoundEnd> {
  const { out } = ctx
  const planned = await planRound(ctx, watch, files)
  if (planned instanceof RushesError) return sayProblem(ctx, watch, planned)
  const { loaded } = planned
  const prepared = await readyPlan(ctx, planned.prepared)
  if (prepared instanceof RushesError) return sayProblem(ctx, watch, prepared)
  watch.said = undefined
  const answer = await watch.consent.ask(ctx, prepared)
  if (files.changed().length > 0) return 'silent'
  if (answer !== 'yes' && prepared.plan.counts.download === 0) {
    out.note(answer === 'no' ? 'Nothing was created.' : 'The plan is the same.')
    return answer === 'no' ? 'done' : 'silent'
  }
  return await carryOutRound(ctx, watch, { loaded, files, creates: answer === 'yes' })
}

interface RoundWork {
  readonly loaded: Loaded
  readonly files: WatchedFiles
  /** False: only what costs nothing is done. */
  readonly creates: boolean
}

async function carryOutRound(
  ctx: Context,
  watch: Watch,
  { loaded, files, creates }: RoundWork,
): Promise<RoundEnd> {
  const { lockPath } = loaded
  const claim = await claimWhenFree(ctx, lockPath)
  let code: number
  try {
    if (files.changed().length > 0) return 'silent'
    // Another batch may have written the lock file since the plan was shown.
    const fresh = await prepare(ctx, loaded, watch.options, watch.words)
    const ready = await readyPlan(ctx, fresh)
    if (ready instanceof RushesError) return 'again'
    const work = creates ? ready : withoutCreates(ready)
    if (!watch.consent.allows(work.plan)) return 'again'
    code = await runBatch(ctx, work, claim)
  } finally {
    await claim.release()
  }
  watch.options = { ...watch.options, force: false, resubmitUnconfirmed: false }
  if (creates) watch.consent.use()
  // A row may name the output of another one as a file: what the batch itself has written begins no round.
  files.accept(filesOf(loaded))
  if (code === ctx.interrupts.first.reason?.exitCode) return code
  if (!ENDING.includes(code)) return 'done'
  ctx.out.note('Stopped watching because of this error.')
  return code
}

function withoutCreates(prepared: Prepared): Prepared {
  const steps = prepared.plan.steps.map((step) =>
    step.action.do === 'create' ? { ...step, action: { do: 'skip' } as const } : step,
  )
  return { ...prepared, plan: { ...prepared.plan, steps, left: [], counts: countsOf(steps) } }
}

function filesOf({ lockPath, manifest }: Loaded): readonly string[] {
  const { entries } = readLock(lockPath, manifest.path)
  return [...entries.values()].flatMap(({ made }) =>
    outputsOf(made).map(({ file }) => resolve(manifest.folder, file)),
  )
}
