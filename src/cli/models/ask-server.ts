/** Asks a model server for its models and its size, without a run: for `--engine`, and to find servers on this machine. */
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { type Fetch, HttpFailure } from '../../host/http.js'
import { readText } from '../../host/receive-text.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import type { Size } from '../../service/engines/sizes.js'

export interface AskOptions {
  readonly fetch: Fetch
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

export interface ServerAnswer {
  /** Names of its models; undefined if it has no list of them. */
  readonly models?: readonly string[] | undefined
  /** Size of its pictures if a request has none. */
  readonly size?: Size | undefined
  /** Another name of the server than that of its type. */
  readonly title?: string
  /** Kinds that it draws by its own interface, the engine `sdcpp`. */
  readonly native?: readonly Kind[]
}

export interface AskedServer {
  readonly type: string
  readonly url: string
  /** Of the model, for its size. Default: image. */
  readonly kind?: Kind
  /** Sent to the server. */
  readonly key?: string | undefined
}

/** The path below the engine's URL that each type of server answers. */
const PATHS: Readonly<Record<string, string>> = {
  images: 'models',
  videos: 'models',
  sdapi: 'sdapi/v1/sd-models',
  sdcpp: 'v1/models',
  comfyui: 'system_stats',
  cog: 'openapi.json',
}

/**
 * Resolves with `refused` if nothing listens at the address, `unauthorized` if the server wants another key, and undefined
 * if it sends no answer in time, or another one. Rejects only with the reason of the signal.
 */
export async function askServer(
  { type, url, kind = 'image', key }: AskedServer,
  options: AskOptions,
): Promise<ServerAnswer | 'refused' | 'unauthorized' | undefined> {
  const path = PATHS[type]
  if (path === undefined || !URL.canParse(url)) return undefined
  const answer = await getJson(new URL(`${url.replace(/\/+$/, '')}/${path}`), key, options)
  if (answer === undefined || answer === 'refused' || answer === 'unauthorized') return answer
  if (type === 'comfyui') {
    if (!isObject(answer) || !isObject(answer.system)) return undefined
    return { title: `ComfyUI ${String(answer.system.comfyui_version ?? '')}`.trimEnd() }
  }
  if (type === 'cog') return isObject(answer) && isObject(answer.paths) ? { title: 'Cog' } : undefined
  const list = isObject(answer) ? answer.data : answer
  if (!Array.isArray(list)) return undefined
  const names = list.map((each) => (isObject(each) ? (each.id ?? each.title) : undefined))
  const models = names.filter((name) => typeof name === 'string')
  if (models.length !== 1 || models[0] !== 'sd-cpp-local') return { models }
  const native = await getJson(new URL('/sdcpp/v1/capabilities', url), key, options)
  const { supported_modes: listed, model } = isObject(native) ? native : {}
  // The list has the same name for every model.
  const file = isObject(model) && typeof model.stem === 'string' && model.stem !== '' ? model.stem : undefined
  const modes: readonly unknown[] = Array.isArray(listed) ? listed : []
  const kinds = KINDS.filter((each) => modes.includes(MODES[each]))
  const size = sizeIn(native, kind)
  return { models: file === undefined ? models : [file], title: 'stable-diffusion.cpp', size, native: kinds }
}

/** The names of stable-diffusion.cpp. */
const MODES: Readonly<Record<Kind, string>> = { image: 'img_gen', video: 'vid_gen' }

/** The default size of stable-diffusion.cpp, which its user set for the model. */
function sizeIn(capabilities: unknown, kind: Kind): Size | undefined {
  const { defaults_by_mode: byMode, defaults } = isObject(capabilities) ? capabilities : {}
  const found = isObject(byMode) ? byMode[MODES[kind]] : defaults
  const { width, height } = isObject(found) ? found : {}
  const isSide = (side: unknown): side is number =>
    typeof side === 'number' && Number.isInteger(side) && side >= 64 && side <= 4096
  return isSide(width) && isSide(height) ? { width, height } : undefined
}

const MAX_BYTES = 1_048_576

async function getJson(
  url: URL,
  key: string | undefined,
  { fetch, clock, signal, timeoutMs }: AskOptions,
): Promise<unknown> {
  const reason = () => new Error('no response')
  try {
    return await withTimeout(
      async (limited) => {
        const headers = { accept: 'application/json', ...(key && { authorization: `Bearer ${key}` }) }
        const response = await fetch({ method: 'GET', url, headers, signal: limited })
        const body = parseJson(await readText(response, MAX_BYTES))
        if (response.status === 401) return 'unauthorized'
        return response.status === 200 && body.ok ? body.value : undefined
      },
      { ...{ timeoutMs, reason, clock, signal } },
    )
  } catch (error) {
    signal.throwIfAborted()
    return error instanceof HttpFailure && !error.sent ? 'refused' : undefined
  }
}
