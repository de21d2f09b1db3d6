/** `rushes doctor --models`: asks the server of each model's engine whether it responds, and which models it has. */
import { resolve } from 'node:path'
import { EXIT, messageOf } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { ModelDocument } from '../../protocol/models.js'
import { amountText, inMillionths } from '../../protocol/price.js'
import { ModelNotListed, UpstreamError } from '../../service/engines/upstream/upstream-error.js'
import type { Context } from '../context/context.js'
import { findServers } from './find-servers.js'
import { type Finding, failed, failedBy, ok, warning } from './finding.js'

/** Time that one server has to answer. */
const CHECK_TIMEOUT_MS = 15_000

/**
 * `path`: file or folder of documents. Default: the setting `local.models`, else the servers of this machine. No run is
 * created, and no key is printed.
 */
export async function checkModelServers(ctx: Context, path: string | undefined): Promise<readonly Finding[]> {
  const setting = path === undefined ? await ctx.setting('localModels') : undefined
  const folder = path ?? (setting === undefined ? undefined : resolve(ctx.configFolder, setting))
  if (folder === undefined) return await findServers(ctx)
  try {
    const { openModelSet } = await import('../../service/models/model-set.js')
    const set = await openModelSet({ path: folder, env: ctx.env })
    const preview = () => ({ render: () => Promise.reject(new Error('doctor renders nothing')) })
    const { env, clock } = ctx
    const engine = set.createEngine({ env, clock, fetch: await ctx.fetch(), urls: [], preview })
    try {
      const checked = await Promise.all(set.models.map(({ document }) => check(document)))
      const found = set.models.flatMap(({ document: { name }, note }) =>
        note === undefined ? [] : [ok('workflow', `${name}: ${note}`)],
      )
      return [...set.warnings.map((text) => warning('models', text)), ...checked, ...found]
    } finally {
      await engine.close?.()
    }

    async function check({ name, cost }: ModelDocument): Promise<Finding> {
      const payer = engine.describePayer(name)
      const paid = payer === undefined ? '' : `; ${payer}, ${costText(cost)}`
      const place = `${name} (${engine.describeEngine(name)})`
      // A connection that is not accepted fails earlier. Some servers answer nothing at all while they render.
      const silent = new Error(
        `busy? It accepts connections, but sent no response for ${CHECK_TIMEOUT_MS / 1_000} s`,
      )
      try {
        const found = await withTimeout((signal) => engine.checkModel(name, signal), {
          timeoutMs: CHECK_TIMEOUT_MS,
          reason: () => silent,
          clock,
          signal: ctx.interrupts.first,
        })
        return ok('model', `${found === undefined ? place : `${place}: ${found}`}${paid}`)
      } catch (error) {
        ctx.interrupts.first.throwIfAborted()
        const message = `${place}: ${messageOf(error)}`
        const isLoading = error instanceof UpstreamError && error.status === 503
        return error === silent || isLoading || error instanceof ModelNotListed
          ? warning('model', message)
          : failed('model', message, { exitCode: EXIT.network })
      }
    }
  } catch (error) {
    ctx.interrupts.first.throwIfAborted()
    return [failedBy('models', error)]
  }
}

const costText = (cost: ModelDocument['cost']): string =>
  cost === undefined || cost === 'unknown'
    ? 'no cost in the document'
    : `${amountText(inMillionths(cost.run), cost.currency)} for a run`
