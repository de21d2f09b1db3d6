/**
 * Creates the runs of one `run` command, or reuses succeeded runs with the same input (`--reuse`), and carries them
 * out.
 */
import { encodeCreate } from '../../client/create.js'
import type { ApiClient } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import { withoutData } from '../../journal/identity.js'
import type { RunEstimate } from '../../journal/index.js'
import type { ModelInput } from '../../protocol/models.js'
import type { CreateRequest } from '../../runs/create.js'
import { createErrorGroups } from '../../runs/error-groups.js'
import { type KnownRun, knownRun } from '../../runs/follow.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { carryOutRuns, type FailedCreate, type RunToCarryOut } from './carry-out.js'
import { repeatedCreates } from './folded-errors.js'
import type { RunRequest } from './request.js'
import { withRunOutputs } from './run-outputs.js'

interface CreateRunsOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly count: number
  readonly kind: string | undefined
  readonly model: string
  readonly input: ModelInput
  /** The body of the create, with this input. */
  readonly body: Uint8Array
  readonly wait: boolean
  readonly reuse: boolean
  readonly labels: readonly string[]
  /** Of one run, after `checkLimit`. Undefined if the model has no price. */
  estimate(): RunEstimate | undefined
  /** Throws `usage` if this number of runs passes `--max-cost`. Called again here: a question may have been open for hours. */
  checkLimit?(runs: number): Promise<void>
}

/** Creates the runs. Returns the exit code. Rejects with errors that occur before the first create. */
export async function createRuns(ctx: Context, options: CreateRunsOptions): Promise<number> {
  const { out, globals } = ctx
  const { connection, delivery, count, kind, model, wait, labels, input: givenInput } = options
  connection.checkModel?.(model)
  const recorder = await ctx.recorder()
  const reused = options.reuse ? await findReusable(ctx, connection.client, { model, givenInput, count }) : []
  await options.checkLimit?.(count - reused.length)
  const input = await withRunOutputs(ctx, connection, givenInput)
  const request: CreateRequest = {
    body: input === givenInput ? options.body : encodeCreate({ model, input }),
    intent: { kind, model, input, identityInput: givenInput, labels, estimate: options.estimate() },
    input: withoutData(input),
  }
  const runs: RunToCarryOut[] = reused.map((run) => ({ run }))
  for (const { id } of reused) {
    out.note(`Reusing ${id}: same model and input, no charge.`)
    if (labels.length > 0) recorder.addLabels(id, labels)
  }
  while (runs.length < count) runs.push({ model, request: async () => request })
  const isFree = globals.local && options.estimate()?.millionths === 0
  const goal = { count, reused: reused.length, isReusing: options.reuse, isFree }
  return carryOutRuns(ctx, {
    connection,
    delivery,
    runs,
    isFollowed: wait,
    many: 'wait --all',
    createErrors: (failed, created) => createErrors({ ...goal, created: created.length, failed }),
    withRest: (error, created, failed) => withRest({ ...goal, created: created.length, failed }, error),
  })
}

/** The runs that exist, so that no error advises to pay for them again. */
interface Tally {
  readonly count: number
  /** Number of runs that are reused. */
  readonly reused: number
  /** Whether the command has `--reuse`. */
  readonly isReusing: boolean
  readonly isFree: boolean
  readonly created: number
  readonly failed: readonly FailedCreate[]
}

/** Adds how many runs exist, and how to create the others. */
function withRest(tally: Tally, error: RushesError): RushesError {
  const { count, created, reused } = tally
  const unconfirmed = tally.failed.filter(({ is }) => is === 'unconfirmed').length
  if (count === 1)
    return error.code === 'interrupted' && unconfirmed === 0
      ? error.with({ consequence: 'No run was created.' })
      : error
  const missing = count - reused - created - unconfirmed
  const [was, is] = created === 1 ? ['was', 'is'] : ['were', 'are']
  const paid = created === 0 || tally.isFree ? '' : ` and ${is} paid for`
  const parts = [
    `${created} of ${count} runs ${was} created${paid}`,
    ...(reused === 0 ? [] : [`${reused} reused`]),
    ...(unconfirmed === 0 ? [] : [`${unconfirmed} unconfirmed`]),
  ]
  const hint = [
    withoutRetry(error).hint,
    missing === 0 || created + unconfirmed === 0 ? undefined : restHint(missing, tally.isReusing),
  ]
  return error.with({
    consequence: `${parts.join(', ')}.`,
    hint: hint.filter((each) => each !== undefined).join(' ') || undefined,
  })
}

/** Folds equal errors into one, and completes the last one. */
function createErrors(tally: Tally): readonly RushesError[] {
  const groups = createErrorGroups<FailedCreate>()
  const firsts = tally.failed.filter((each) => groups.add(each.error, each)).map(({ error }) => error)
  // The others are counted by `withRest`; only unconfirmed creates have keys.
  const repeated = groups.repeated().flatMap(({ error, more }) =>
    more[0]?.label.is === 'unconfirmed'
      ? [
          repeatedCreates(
            error,
            more.map(({ label }) => ('key' in label ? label.key : undefined)),
          ),
        ]
      : [],
  )
  return [...firsts, ...repeated].map((error, index, all) =>
    index === all.length - 1 ? withRest(tally, error) : withoutRetry(error),
  )
}

/** Some hints end with the advice to try again. The whole command would then create runs that exist once more. */
const withoutRetry = (error: RushesError): RushesError =>
  error.with({ hint: error.hint?.replace(/, then try again\.$/, '.') })

const restHint = (missing: number, isReusing: boolean): string =>
  isReusing
    ? 'When the created runs have succeeded, run the same command again: --reuse takes them, and only the others are created.'
    : `To create the ${missing === 1 ? 'missing one' : `other ${missing}`}, run the same command with \`-n ${missing}\`.`

interface ReuseRequest {
  readonly model: string
  readonly givenInput: unknown
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
  client: ApiClient,
  { model, givenInput, count }: ReuseRequest,
): Promise<readonly KnownRun[]> {
  const candidates = (await ctx.journal()).reusable(await ctx.address(), model, givenInput)
  const found: KnownRun[] = []
  const gone: string[] = []
  for (const run of candidates) {
    if (found.length === count || run.id === undefined) break
    try {
      const state = await client.get(run.id, ctx.interrupts.first)
      if (state.urls.length > 0) found.push({ ...knownRun(run.id, run), state })
    } catch (error) {
      if (!(error instanceof RushesError) || error.code !== 'run_not_found') throw error
      gone.push(run.id)
    }
  }
  if (gone.length === 1) ctx.out.note(`The service no longer has ${gone[0]}; it cannot be reused.`)
  if (gone.length > 1) ctx.out.note(`The service no longer has ${gone.length} runs; they cannot be reused.`)
  return found
}

/** Counts the runs of the journal that `--reuse` would find, without a request. */
export async function countReusable(
  ctx: Context,
  { model, input }: RunRequest,
  count: number,
): Promise<number> {
  // A dry run needs no address.
  const address = await ctx.address().catch(() => undefined)
  if (model === undefined || address === undefined) return 0
  return (await ctx.journal()).reusable(address, model, input, count).length
}
