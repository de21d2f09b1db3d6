/**
 * `rushes doctor --models`: asks the server of each model's engine whether it responds, and which models it has. Without
 * model files, looks for servers on the usual ports of this machine. Creates no run, and prints no key.
 */
import { resolve } from 'node:path'
import { messageOf, RushesError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import { quoteWord } from '../../host/shell.js'
import type { ModelDocument } from '../../protocol/models.js'
import { amountText, inMillionths } from '../../protocol/price.js'
import { ModelNotListed, UpstreamError } from '../../service/engines/upstream/upstream-error.js'
import type { Context } from '../context/context.js'
import { askServer } from '../models/ask-server.js'
import { check, type Finding, ok, warning } from './finding.js'

/** Time that one server has to answer. */
const CHECK_TIMEOUT_MS = 15_000

/** `path`: file or folder of models. Default: the setting `local.models`. */
export async function checkModelServers(ctx: Context, path: string | undefined): Promise<readonly Finding[]> {
  const setting = path === undefined ? await ctx.setting('localModels') : undefined
  const folder = path ?? (setting === undefined ? undefined : resolve(ctx.configFolder, setting))
  if (folder === undefined) return await findServers(ctx)
  const found: Finding[] = []
  const all = await check('models', async () => {
    found.push(...(await checkFolder(ctx, folder)))
    return []
  })
  return all.status === 'failed' ? [all] : found
}

async function checkFolder(ctx: Context, path: string): Promise<readonly Finding[]> {
  const { env, clock, interrupts } = ctx
  const { openModelSet } = await import('../../service/models/model-set.js')
  const set = await openModelSet({ path, env })
  const preview = () => ({ render: () => Promise.reject(new Error('doctor renders nothing')) })
  const engine = set.createEngine({ env, clock, fetch: await ctx.fetch(), urls: [], preview })

  async function checkModel({ name, cost }: ModelDocument) {
    const payer = engine.describePayer(name)
    const paid = payer === undefined ? '' : `; ${payer}, ${costText(cost)}`
    const place = `${name} (${engine.describeEngine(name)})`
    // A connection that is not accepted fails earlier. Some servers answer nothing at all while they render.
    const silent = new Error(
      `busy? It accepts connections, but sent no response for ${CHECK_TIMEOUT_MS / 1_000} s`,
    )
    const limit = { timeoutMs: CHECK_TIMEOUT_MS, reason: () => silent, clock, signal: interrupts.first }
    try {
      const models = await withTimeout((signal) => engine.checkModel(name, signal), limit)
      return ok(`${models === undefined ? place : `${place}: ${models}`}${paid}`)
    } catch (error) {
      interrupts.first.throwIfAborted()
      const message = `${place}: ${messageOf(error)}`
      const isLoading = error instanceof UpstreamError && error.status === 503
      if (error === silent || isLoading || error instanceof ModelNotListed) return warning(message)
      throw new RushesError('network', message)
    }
  }

  try {
    return await Promise.all([
      ...set.warnings.map((text) => check('models', () => warning(text))),
      ...set.models.map(({ document }) => check('model', () => checkModel(document))),
      ...set.models.flatMap(({ document: { name }, note }) =>
        note === undefined ? [] : check('workflow', () => ok(`${name}: ${note}`)),
      ),
    ])
  } finally {
    await engine.close?.()
  }
}

const costText = (cost: ModelDocument['cost']): string =>
  cost === undefined || cost === 'unknown'
    ? 'no cost in the model file'
    : `${amountText(inMillionths(cost.run), cost.currency)} for a run`

/** Usual ports on the loopback address. The path is below the origin. */
const USUAL: readonly (readonly [type: string, port: number, path: string])[] = [
  ['images', 1234, '/v1'],
  ['images', 8080, '/v1'],
  ['images', 8000, '/v1'],
  ['images', 30000, '/v1'],
  ['comfyui', 8188, ''],
  ['sdapi', 7860, ''],
  ['sdapi', 5001, ''],
  ['cog', 5000, ''],
]
const USUAL_TIMEOUT_MS = 500
/** Servers have models of other kinds too. */
const MAX_NAMED = 4

/** Asks all ports at once. */
async function findServers(ctx: Context): Promise<readonly Finding[]> {
  const { clock, interrupts } = ctx
  const options = { fetch: await ctx.fetch(), clock, signal: interrupts.first, timeoutMs: USUAL_TIMEOUT_MS }
  const found = await Promise.all(
    USUAL.map(async ([type, port, path]) => {
      const origin = `http://127.0.0.1:${port}`
      const answer = await askServer({ type, url: `${origin}${path}` }, options)
      if (answer === undefined || typeof answer === 'string') return []
      const { title, models = [], native } = answer
      // Of several models, those that draw are not known.
      const part = type === 'comfyui' ? '#workflow.json' : models.length > 1 ? `#${models[0]}` : ''
      const isNative = native?.includes('image')
      const engine = isNative ? `sdcpp:${origin}` : `${type}:${origin}${path}${part}`
      const more = models.length > MAX_NAMED ? ` and ${models.length - MAX_NAMED} more` : ''
      const names = models.length === 0 ? '' : `: ${models.slice(0, MAX_NAMED).join(', ')}${more}`
      const message = `${title ?? (isNative ? 'sdcpp' : type)} at ${origin}${path}${names}`
      return ok(message, `rushes run image --local --engine ${quoteWord(engine)} "a red fox"`)
    }),
  )
  const servers = found.flat()
  if (servers.length > 0) return await Promise.all(servers.map((server) => check('server', () => server)))
  const none = warning(
    `no model server answers on 127.0.0.1 at the ports ${USUAL.map(([, port]) => port).join(', ')}`,
    'Start one, or name it: rushes run image --local --engine images:http://<host>:<port>/v1 "a red fox"',
  )
  return [await check('server', () => none)]
}
