/**
 * What `run`, `wait` and `download` have in common: runs are created and followed by the schedule, their outputs are
 * downloaded, and each is printed in its turn.
 */
import { type Polled, type PollOptions, runSchedule, type Task } from '../../batch/schedule/index.js'
import { createNamer } from '../../download/file-names.js'
import type { RushesError } from '../../errors.js'
import type { TypicalDuration } from '../../journal/index.js'
import { formatBytes } from '../../protocol/byte-size.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { asRushesError, exitCodeOf, interrupted, stopsCreating } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { plural } from '../terminal/plural.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import { formatSeconds } from '../terminal/progress-lines.js'
import type { RunRecord } from '../terminal/run-json.js'
import { deliver } from './deliver.js'
import { createDownloadOrder } from './download-order.js'
import { createErrorReport } from './error-report.js'
import { createRunFollower, type FollowedRun, type RunFollower } from './follow-run.js'
import type { KnownRun } from './known-run.js'
import { inOrder } from './print-order.js'
import { openResults, printRun, recordOf } from './print-run.js'
import { resumeCommand } from './resume.js'
import { createUnfinishedRuns, type ManyRuns, type Unfinished, withWayBack } from './unfinished-runs.js'

export interface Session {
  readonly progress: Progress
  /** A run that exists: it is followed to its end. `index` is its turn, from 0. */
  follow(index: number, known: KnownRun): void
  /** A run that is created first. A rejection of `create` is the error of the run. */
  create(index: number, group: string, create: () => Promise<KnownRun>): void
  /** Creates, follows and delivers all of them. `begun`: how many creates were begun. */
  carryOut(): Promise<{ readonly begun: number; readonly exitCode: number }>
}

export interface SessionOptions {
  readonly ctx: Context
  readonly connection: Connection
  readonly delivery: Delivery
  readonly runs: number
  /** Whether runs are waited for; else they are printed as soon as they exist. Default true. */
  readonly isFollowed?: boolean
  /** How to resume with many of the runs. */
  readonly many: ManyRuns
}

interface Turn {
  readonly record: RunRecord | undefined
  readonly error: RushesError | undefined
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { ctx, connection, delivery, runs, isFollowed = true, many } = options
  const { out, clock, interrupts } = ctx
  const { client } = connection
  const progress = await createProgress(ctx, runs)
  const recorder = await ctx.recorder()
  const address = await ctx.address()
  const wayBack = { globals: ctx.globals, delivery: delivery.again }
  const resume = (id: string, verb: 'wait' | 'download') => resumeCommand(wayBack, verb, [id])
  const unfinished: Unfinished = {
    isLocal: ctx.globals.local,
    verb: delivery.patience === 'once' ? 'download' : 'wait',
    resume: (verb, ids) => resumeCommand(wayBack, verb, ids),
    many,
    isRemembered: (id) => recorder.find(id) !== undefined,
  }
  const parts = {
    client,
    interrupts,
    delivery,
    downloader: delivery.target === undefined ? undefined : await ctx.downloader(connection.fetch),
    namer: delivery.target === undefined ? undefined : createNamer(delivery.target),
    stdout: () => ctx.stdout,
    recorder,
    address,
    resume,
    warn: out.warn,
    onTransfer: progress.transfer,
  }
  const timeoutMs = delivery.patience === 'once' ? undefined : delivery.patience
  const tasks: Task[] = []
  const typicalDurations = new Map<string, TypicalDuration | undefined>()
  const followers = new Map<number, RunFollower>()
  const finishing: Promise<void>[] = []
  const report = createErrorReport(ctx)
  /** The runs that are not waited for any longer. */
  const left = createUnfinishedRuns(unfinished)
  /** Of a local service, which renders only for those who wait. */
  const queued: string[] = []
  const startedAtMs = clock.monotonic()
  const succeeded: RunRecord[] = []
  let begun = 0
  let isStopped = false
  /** Whether the status of any run was received: then a run without an answer says nothing about the service. */
  let isAnswered = false

  const turns = inOrder<Turn>(({ record, error }) => {
    if (record !== undefined) printRun(ctx, record, { target: delivery.target, isFollowed })
    if (error === undefined) return
    if (left.has(error)) report.addSilently(error)
    else report.add(error)
  })
  const inTurn = createDownloadOrder(runs)

  function begin(index: number, known: KnownRun): RunFollower {
    const follower = createRunFollower({ client, clock, recorder }, known)
    followers.set(index, follower)
    progress.runBegan(known.model, typicalDurationOf(known.model))
    if (known.state !== undefined) progress.status(known.id, known.state.status)
    return follower
  }

  function typicalDurationOf(model: string | undefined): TypicalDuration | undefined {
    if (model === undefined) return undefined
    if (!typicalDurations.has(model)) typicalDurations.set(model, recorder.typicalDuration(model))
    return typicalDurations.get(model)
  }

  /** The run is not followed any more: its outputs are downloaded, and it has its turn. */
  function finish(index: number, run: FollowedRun): void {
    followers.delete(index)
    const { id } = run.known
    const error = run.error && withWayBack(run.error, run, unfinished.resume)
    const work = async () => {
      const deliverRun = () => deliver(parts, { ...run, error })
      // Names count over the outputs of all runs, so with a template the downloads begin in the order of the runs.
      const record = await (delivery.target?.kind === 'template'
        ? inTurn.begin(index, deliverRun)
        : deliverRun())
      progress.runEnded(id)
      if (record.error === undefined) succeeded.push(record)
      turns.settle(index, { record, error: record.error })
      if (delivery.open && record.error === undefined) await openResults(ctx, record)
    }
    finishing.push(work())
  }

  /** There is no run: the others do not wait for it. */
  function leaveOut(index: number, error: RushesError | undefined): void {
    isStopped ||= error !== undefined && (stopsCreating(error) || error.code === 'interrupted')
    inTurn.skip(index)
    progress.runEnded()
    turns.settle(index, { record: undefined, error })
  }

  async function createRun(index: number, create: () => Promise<KnownRun>): Promise<number | undefined> {
    begun++
    try {
      const known = await create()
      progress.activity(undefined)
      if (isFollowed) begin(index, known)
      else turns.settle(index, { record: recordOf(known), error: undefined })
      return isFollowed ? known.answeredAtMs : undefined
    } catch (thrown) {
      // A signal came before anything was sent.
      const isUnsent = thrown instanceof Interruption
      if (isUnsent) begun--
      leaveOut(index, isUnsent ? undefined : asRushesError(thrown))
      return undefined
    }
  }

  async function poll(index: number, pollOptions: PollOptions): Promise<Polled> {
    const follower = followers.get(index)
    if (follower === undefined) return { is: 'over' }
    const step = await follower.poll(pollOptions)
    isAnswered ||= step.is === 'running' || (step.is === 'over' && step.run.state !== undefined)
    if (step.is === 'over') {
      if (step.run.state !== undefined) progress.status(step.run.known.id, step.run.state.status)
      finish(index, step.run)
      return step
    }
    if (step.is === 'running') {
      progress.status(step.state.id, step.state.status)
    } else {
      progress.activity('invalid response, trying again')
      out.debug(`${step.error.runId}: ${step.error.message}`)
    }
    return step
  }

  function expire(index: number): void {
    const follower = followers.get(index)
    if (follower === undefined) return
    const { id } = follower.known
    const errorAtLimit = isAnswered ? (limit: RushesError) => limit : follower.errorAtLimit
    const error = left.limitPassed(id, timeoutMs ?? 0, errorAtLimit)
    queued.push(id)
    finish(index, follower.stopped(error))
  }

  const taskOf = (index: number, group: string): Task => ({
    group,
    poll: (pollOptions) => poll(index, pollOptions),
    expire: () => expire(index),
  })

  /** `download` without a wait limit: one status request, which must show a finished run. */
  const onceOf = (index: number, group: string, follower: RunFollower): Task => ({
    group,
    async poll({ signal }) {
      await finishNow(index, follower, signal)
      return { is: 'over' }
    },
  })

  async function finishNow(index: number, follower: RunFollower, signal: AbortSignal): Promise<void> {
    const { id } = follower.known
    try {
      const state = follower.known.state ?? (await client.get(id, signal))
      progress.status(id, state.status)
      if (state.phase !== 'going') return finish(index, follower.ended(state))
      finish(index, { ...follower.stopped(left.notFinished(state)), state })
    } catch (thrown) {
      const error = thrown instanceof Interruption ? interruptedAt(id, thrown) : asRushesError(thrown)
      if (error.code === 'run_not_found') recorder.recordNotFound(error, id)
      finish(index, follower.stopped(error))
    }
  }

  function interruptedAt(id: string, reason: Interruption): RushesError {
    queued.push(id)
    return left.interrupted(id, reason)
  }

  function sayHowItEnded(): void {
    const [first] = succeeded
    if (first === undefined || ctx.stderr.isTTY !== true || !isFollowed) return
    const files = succeeded.flatMap((record) => record.files)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const what = runs === 1 ? 'Done' : `${succeeded.length} of ${runs} runs done`
    const made = files.length === 0 ? '' : `: ${plural(files.length, 'file')} (${formatBytes(bytes)})`
    out.note(`${what} in ${formatSeconds(clock.monotonic() - startedAtMs)}${made}`)
  }

  return {
    progress,
    follow(index, known) {
      if (!isFollowed) return turns.settle(index, { record: recordOf(known), error: undefined })
      const follower = begin(index, known)
      const group = known.model ?? ''
      if (known.state !== undefined) finishing.push(finishNow(index, follower, interrupts.first))
      else tasks.push(delivery.patience === 'once' ? onceOf(index, group, follower) : taskOf(index, group))
    },
    create: (index, group, create) =>
      tasks.push({ ...taskOf(index, group), create: () => createRun(index, create) }),
    async carryOut() {
      let interruption: Interruption | undefined
      try {
        await runSchedule({
          tasks,
          clock,
          random: ctx.random,
          budget: RUNS_LIMIT,
          load: client.load,
          timeoutMs,
          durationsOf: recorder.durations,
          mayCreate: () => !isStopped,
          signal: interrupts.first,
        })
      } catch (thrown) {
        if (!(thrown instanceof Interruption)) throw thrown
        interruption = thrown
        for (const [index, follower] of [...followers])
          finish(index, follower.stopped(interruptedAt(follower.known.id, thrown)))
      }
      await allSettled(finishing)
      progress.end()
      if (unfinished.isLocal && queued.length > 0) recorder.recordQueued(...queued)
      report.end()
      for (const error of left.report()) report.print(error)
      const isReported = report.errors.some(({ code }) => code === 'interrupted')
      if (interruption === undefined) sayHowItEnded()
      else if (!isReported) report.add(interrupted(interruption))
      return { begun, exitCode: exitCodeOf(report.errors) }
    },
  }
}

/** Waits for a list that may grow meanwhile. */
async function allSettled(work: readonly Promise<void>[]): Promise<void> {
  for (let at = 0; at < work.length; at++) await work[at]
}
