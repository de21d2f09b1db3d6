/** `rushes doctor --models` without a document: looks for model servers on the usual ports of this machine. */
import { quoteWord } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { askServer, type ServerAnswer } from '../models/ask-server.js'
import { type Finding, ok, warning } from './finding.js'

/** The path is below the origin. */
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

const TIMEOUT_MS = 500
/** Servers have models of other kinds too. */
const MAX_NAMED = 4

interface FoundServer {
  readonly answer: ServerAnswer
  readonly url: string
  /** Value of `--engine`. Of several models, those that draw are not known. */
  readonly engine: string
}

/** Asks all ports at once, on the loopback address alone. Creates no run. */
async function lookForServers(ctx: Context): Promise<readonly FoundServer[]> {
  const options = { fetch: await ctx.fetch(), clock: ctx.clock, signal: ctx.interrupts.first }
  const found = await Promise.all(
    USUAL.map(async ([type, port, path]): Promise<readonly FoundServer[]> => {
      const url = `http://127.0.0.1:${port}${path}`
      const answer = await askServer({ type, url }, { ...options, timeoutMs: TIMEOUT_MS })
      if (answer === undefined || typeof answer === 'string') return []
      const { models = [], native } = answer
      const part = type === 'comfyui' ? '#workflow.json' : models.length > 1 ? `#${models[0]}` : ''
      const isNative = native?.includes('image')
      return [{ answer, url, engine: isNative ? `sdcpp:${new URL(url).origin}` : `${type}:${url}${part}` }]
    }),
  )
  return found.flat()
}

export async function findServers(ctx: Context): Promise<readonly Finding[]> {
  const findings = (await lookForServers(ctx)).map(({ answer, url, engine }) => {
    const { title, models = [] } = answer
    const more = models.length > MAX_NAMED ? ` and ${models.length - MAX_NAMED} more` : ''
    const names = models.length === 0 ? '' : `: ${models.slice(0, MAX_NAMED).join(', ')}${more}`
    const advice = `rushes run image --local --engine ${quoteWord(engine)} "a red fox"`
    return { ...ok('server', `${title ?? engine.replace(/:.*$/s, '')} at ${url}${names}`), advice }
  })
  if (findings.length > 0) return findings
  const ports = USUAL.map(([, port]) => port).join(', ')
  const advice =
    'Start one, or name it: rushes run image --local --engine images:http://<host>:<port>/v1 "a red fox"'
  return [warning('server', `no model server answers on 127.0.0.1 at the ports ${ports}`, advice)]
}
