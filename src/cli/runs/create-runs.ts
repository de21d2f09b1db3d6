/** Creates the runs of one `run` command, and carries them out. */
import { resolve, sep } from 'node:path'
import { encodeCreate } from '../../client/create.js'
import { EXIT } from '../../errors.js'
import { identityOf, withoutData } from '../../protocol/identity.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import { fill, holds, numbered } from '../../protocol/output-names.js'
import type { Begin } from '../../runs/run.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import type { CostLimit } from '../models/cost-limit.js'
import { carryOutRuns, type Observer } from './carry-out.js'
import { withRunOutputs } from './run-outputs.js'

export interface CreateRunsOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly count: number
  readonly kind: Kind | undefined
  readonly model: string
  readonly input: ModelInput
  /** Names of its media parameters. */
  readonly media: readonly string[]
  /** The body of the create, with this input. */
  readonly body: Uint8Array
  readonly wait: boolean
  readonly labels: readonly string[]
  /** Name of the create, for a session that repeats it. */
  readonly requestId?: string | undefined
  readonly observer?: Observer | undefined
  /** Checked here, directly before the creates. */
  readonly limit: CostLimit
}

/** Creates the runs. Returns the exit code. Rejects with errors that occur before the first create. */
export async function createRuns(ctx: Context, options: CreateRunsOptions): Promise<number> {
  const { connection, delivery, count, kind, model, wait, labels, limit, media, observer } = options
  connection.checkModel?.(model)
  const input = await withRunOutputs(ctx, connection, options.input, media)
  const priced = { model, kind, input: options.input }
  await limit.reserve(() => limit.prices.sum([priced], count))
  const estimate = limit.prices.estimate(priced)
  const request = {
    body: input === options.input ? options.body : encodeCreate({ model, input }),
    input: withoutData(input, media),
  }
  const intent = {
    ...{ kind, model, input, media, labels, estimate, requestId: options.requestId },
    folder: resolve('.'),
    // Equal for links to one output that differ at each call.
    identity: identityOf(model, options.input, undefined, media),
    dayLimit: limit.perDay,
  }
  const begins = Array.from({ length: count }, (_, index): Begin => {
    const output = outputOf(delivery, index)
    return { is: 'create', request: async () => ({ ...request, intent: { ...intent, output } }) }
  })
  const isFree = ctx.globals.local && estimate?.millionths === 0
  const carryOut = { connection, delivery, begins, isFree, isFollowed: wait, observer }
  const { code, sent } = await carryOutRuns(ctx, carryOut)
  const unsent = count - sent
  limit.giveBack({ runs: unsent, millionths: unsent * (estimate?.millionths ?? 0) })
  // Exit code 2 means that nothing was sent.
  return code === EXIT.usage && sent > 0 ? EXIT.runFailed : code
}

/**
 * The path of `-o` for the run with this index alone, for `wait --last`: as if each run before it had one output. Undefined
 * in a folder with braces in its name, which `wait` would fill in too.
 */
function outputOf({ target }: Delivery, index: number): string | undefined {
  if (target?.kind !== 'template' || resolve('.').includes('{')) return undefined
  const { template } = target
  const path = fill(template, { index: String(index + 1) })
  const isOwn = index === 0 || path !== template || holds(path, 'id') || holds(path, 'name')
  return resolve(isOwn ? path : numbered(path, index + 1, sep))
}
