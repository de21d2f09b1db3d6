/** Creates the runs of one `run` command, and carries them out. */
import { resolve } from 'node:path'
import { encodeCreate } from '../../client/create.js'
import type { RushesError } from '../../errors.js'
import type { RunEstimate } from '../../journal/index.js'
import { identityOf, withoutData } from '../../protocol/identity.js'
import type { ModelInput } from '../../protocol/models.js'
import type { CreateRequest } from '../../runs/run.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { createErrorGroups } from '../terminal/error-groups.js'
import { carryOutRuns, type FailedCreate, type Observer } from './carry-out.js'
import { repeatedCreates } from './folded-errors.js'
import { withRunOutputs } from './run-outputs.js'

interface CreateRunsOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly count: number
  readonly kind: string | undefined
  readonly model: string
  readonly input: ModelInput
  /** Names of its media parameters. */
  readonly media: readonly string[]
  /** The body of the create, with this input. */
  readonly body: Uint8Array
  readonly wait: boolean
  readonly labels: readonly string[]
  /** Name of the create, for a session that repeats it. */
  readonly requestId?: string
  readonly observer?: Observer | undefined
  /** Of one run, after `checkLimit`. Undefined if the model has no price. */
  estimate(): RunEstimate | undefined
  /** Throws `usage` if this number of runs passes `--max-cost`. Called again here: a question may have been open for hours. */
  checkLimit?(runs: number): Promise<void>
}

/** Creates the runs. Returns the exit code. Rejects with errors that occur before the first create. */
export async function createRuns(ctx: Context, options: CreateRunsOptions): Promise<number> {
  const { connection, delivery, count, kind, model, wait, labels, media, input: givenInput } = options
  connection.checkModel?.(model)
  await options.checkLimit?.(count)
  const input = await withRunOutputs(ctx, connection, givenInput, media)
  const request: CreateRequest = {
    body: input === givenInput ? options.body : encodeCreate({ model, input }),
    intent: {
      ...{ kind, model, input, media, labels, requestId: options.requestId, folder: resolve('.') },
      output: outputOf(delivery, count),
      // Equal for links to one output that differ at each call.
      identity: identityOf(model, givenInput, undefined, media),
      estimate: options.estimate(),
    },
    input: withoutData(input, media),
  }
  const runs = Array.from({ length: count }, () => ({ request: async () => request }))
  const isFree = ctx.globals.local && options.estimate()?.millionths === 0
  const goal = { count, isFree }
  return carryOutRuns(ctx, {
    connection,
    delivery,
    runs,
    isFollowed: wait,
    many: 'wait --all',
    observer: options.observer,
    createErrors: (failed, created) => createErrors({ ...goal, created, failed }),
    withRest: (error, created, failed) => withRest({ ...goal, created, failed }, error),
  })
}

/** The path of `-o` if it also names the file of one of the runs alone. */
function outputOf({ target }: Delivery, runs: number): string | undefined {
  if (target?.kind !== 'template' || (runs > 1 && !target.template.includes('{id}'))) return undefined
  return resolve(target.template)
}

/** The runs that exist, so that no error advises to pay for them again. */
interface Tally {
  readonly count: number
  readonly isFree: boolean
  readonly created: number
  readonly failed: readonly FailedCreate[]
}

/** Adds how many runs exist, and how to create the others. */
function withRest(tally: Tally, error: RushesError): RushesError {
  const { count, created } = tally
  const unconfirmed = tally.failed.filter(({ is }) => is === 'unconfirmed').length
  if (count === 1)
    return error.code === 'interrupted' && unconfirmed === 0
      ? error.with({ consequence: 'No run was created.' })
      : error
  const missing = count - created - unconfirmed
  const [was, is] = created === 1 ? ['was', 'is'] : ['were', 'are']
  const paid = created === 0 || tally.isFree ? '' : ` and ${is} paid for`
  const parts = [
    `${created} of ${count} runs ${was} created${paid}`,
    ...(unconfirmed === 0 ? [] : [`${unconfirmed} unconfirmed`]),
  ]
  const hint = [
    withoutRetry(error).hint,
    missing === 0 || created + unconfirmed === 0 ? undefined : restHint(missing),
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

const restHint = (missing: number): string =>
  `To create the ${missing === 1 ? 'missing one' : `other ${missing}`}, run the same command with \`-n ${missing}\`.`
