/**
 * Creates the runs of one `run` command, or reuses succeeded runs with the same input (`--reuse`), and carries them
 * out.
 */
import type { ApiClient } from '../../client/index.js'
import { EXIT, RushesError } from '../../errors.js'
import { withoutData } from '../../journal/identity.js'
import type { RunEstimate } from '../../journal/index.js'
import type { ModelInput } from '../../protocol/models.js'
import { submit } from '../../runs/create.js'
import { type KnownRun, knownRun } from '../../runs/follow.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { carryOutRuns, type RunToCarryOut } from './carry-out.js'
import { encodeRequest, type RunRequest } from './request.js'
import { resumeCommand } from './resume.js'
import { withRunOutputs } from './run-outputs.js'

interface CreateRunsOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly count: number
  readonly kind: string | undefined
  readonly model: string
  readonly input: ModelInput
  readonly wait: boolean
  readonly reuse: boolean
  readonly labels: readonly string[]
  /** Of one run. Undefined if the model has no price. */
  readonly estimate: RunEstimate | undefined
  /** Throws `usage` if this number of runs passes `--max-cost`. */
  checkLimit?(runs: number): void
}

/** Creates the runs. Returns the exit code. Rejects with errors that occur before the first create. */
export async function createRuns(ctx: Context, options: CreateRunsOptions): Promise<number> {
  const { out, clock, interrupts } = ctx
  const { connection, delivery, count, kind, model, wait, labels, estimate } = options
  const { client } = connection
  const recorder = await ctx.recorder()
  const reused = options.reuse
    ? await findReusable(ctx, client, { model, meaning: options.input, count })
    : []
  options.checkLimit?.(count - reused.length)
  const input = await withRunOutputs(ctx, client, options.input)
  const body = encodeRequest(model, input)
  let isGraceNoted = false
  const onGrace = () => {
    if (!isGraceNoted)
      out.note(
        'Waiting up to 10 s for the response to the create, so that the run id is not lost. Press Ctrl-C again to stop now.',
      )
    isGraceNoted = true
  }
  const requestedRun = { kind, model, input: withoutData(input) }
  const ids: string[] = []
  const create = async () => {
    const note = recorder.note({ kind, model, input, meaning: options.input, labels, estimate })
    const { id, body: service, ...times } = await submit({ client, body, clock, interrupts, note, onGrace })
    ids.push(id)
    return { ...requestedRun, id, service, ...times, createdAt: new Date(clock.now()).toISOString() }
  }

  const runs: RunToCarryOut[] = reused.map((run) => ({ run }))
  for (const { id } of reused) out.note(`Reusing ${id}: same model and input, no charge.`)
  while (runs.length < count) runs.push({ model, create })
  const { unsent, exitCode } = await carryOutRuns(ctx, {
    connection,
    delivery,
    runs,
    isFollowed: wait,
    many: 'wait --all',
  })
  if (unsent > 0 && !interrupts.second.aborted && exitCode !== EXIT.stdoutClosed)
    out.note(`${unsent} of ${count} runs were not created.`)
  if (!wait && ctx.globals.local) noteQueued(ctx, ids)
  return exitCode
}

/** A local run is rendered only while a command waits for it. */
function noteQueued({ out, globals }: Context, ids: readonly string[]): void {
  const [only] = ids
  if (only === undefined) return
  const wait = (runs: readonly string[] | 'all') => resumeCommand({ globals, delivery: [] }, 'wait', runs)
  out.note(
    ids.length === 1
      ? `${only} is queued. Render it with \`${wait([only])}\`.`
      : `${ids.length} runs are queued. Render them with \`${wait('all')}\`.`,
  )
}

interface ReuseRequest {
  readonly model: string
  /** The input, as given on the command line. */
  readonly meaning: unknown
  readonly count: number
}

/**
 * Finds succeeded runs of the same request in the journal: at most `count`, newest first. Sends one status request per
 * run to check that the service still has it. Skips runs that the service does not know, or that belong to another
 * account. Rejects with `usage` if the journal cannot be read, and with errors of the status requests: nothing has been
 * paid at that point.
 */
async function findReusable(
  ctx: Context,
  client: Pick<ApiClient, 'get'>,
  { model, meaning, count }: ReuseRequest,
): Promise<readonly KnownRun[]> {
  const candidates = (await ctx.journal()).reusable(await ctx.address(), model, meaning, MAX_CANDIDATES)
  const found: KnownRun[] = []
  for (const run of candidates) {
    if (found.length === count || run.id === undefined) break
    try {
      const state = await client.get(run.id, ctx.interrupts.first)
      if (state.phase === 'succeeded') found.push({ ...knownRun(run.id, run), state })
    } catch (error) {
      if (!(error instanceof RushesError) || error.code !== 'run_not_found') throw error
      ctx.out.note(`The service no longer has ${run.id}; it cannot be reused.`)
    }
  }
  return found
}

/** Maximum number of runs checked, with one status request each. */
const MAX_CANDIDATES = 20

/** Counts the runs of the journal that `--reuse` would find, without a request. */
export async function countReusable(
  ctx: Context,
  { model, input }: Pick<RunRequest, 'model' | 'input'>,
  count: number,
): Promise<number> {
  // A dry run needs no address.
  const address = await ctx.address().catch(() => undefined)
  if (model === undefined || address === undefined) return 0
  return (await ctx.journal()).reusable(address, model, input, Math.min(count, MAX_CANDIDATES)).length
}
