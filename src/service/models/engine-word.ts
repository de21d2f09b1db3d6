/** The short form of an engine, which is the value of `--engine`: a shell command, or `images:http://127.0.0.1:1234/v1`. */
import { usageError } from '../../errors.js'
import { nearest } from '../../protocol/text.js'
import { PROVIDERS } from '../engines/hosted/providers.js'

export type EngineWord = Readonly<Record<string, string>> & { readonly type: string }

/** One example for each type that has a short form. */
const EXAMPLES: Readonly<Record<string, string>> = {
  images: 'images:http://127.0.0.1:1234/v1',
  comfyui: 'comfyui:http://127.0.0.1:8188#workflow.json',
  videos: 'videos:http://127.0.0.1:8000/v1',
  sdapi: 'sdapi:http://127.0.0.1:7860',
  sdcpp: 'sdcpp:http://127.0.0.1:1234',
  fal: 'fal:fal-ai/flux/dev',
  replicate: 'replicate:black-forest-labs/flux-schnell',
  openrouter: 'openrouter:google/veo-3.1',
  cog: 'cog:http://127.0.0.1:5000',
}

/** The key of a server that a word names, unless it is that of OpenAI. */
const KEY_VARIABLE = 'RUSHES_ENGINE_KEY'

/**
 * Adds the variable with the key of the server, which a word cannot name. OpenAI needs its own; another server gets the
 * key that is set for it.
 */
export function withKeyVariable(
  engine: EngineWord,
  env: Readonly<Record<string, string | undefined>>,
): EngineWord {
  const { url } = engine
  if (url === undefined || !URL.canParse(url)) return engine
  if (new URL(url).hostname === 'api.openai.com') return { ...engine, key_env: 'OPENAI_API_KEY' }
  return (env[KEY_VARIABLE]?.trim() ?? '') === '' ? engine : { ...engine, key_env: KEY_VARIABLE }
}

/** `127.0.0.1:1234/v1` and `localhost:8188`, which no shell command is. */
const BARE_ADDRESS = /^(localhost|\d+\.\d+\.\d+\.\d+|\[[\da-f:]+\])(:\d+)?(\/\S*)?$/i

/**
 * Returns the map `engine` of the word. `flag`: the beginning of an error message. A text after `#` is the workflow of
 * ComfyUI, and the name of the model for other servers. Throws `usage` with an example. Does not repeat the word, which
 * may contain a password.
 */
export function readEngineWord(word: string, flag: string): EngineWord {
  const [, type, url, fragment = ''] = /^(?:([a-z]+):)?(https?:\/\/[^#]*)(?:#(.*))?$/.exec(word) ?? []
  if ((url !== undefined && type === undefined) || BARE_ADDRESS.test(word))
    throw usageError(
      `${flag}…: the URL of a server needs the type of the engine, such as images:http://….`,
      `Examples: ${Object.values(EXAMPLES).join(', ')}.`,
    )
  if (url !== undefined && type !== undefined) {
    const name = type === 'comfyui' || fragment.endsWith('.json') ? 'workflow' : 'model'
    return { type, url, ...(fragment !== '' && { [name]: fragment }) }
  }
  checkType(word, flag)
  const [, named = '', rest = ''] = /^([a-z]+)(?::(.*))?$/s.exec(word) ?? []
  const example = Object.hasOwn(EXAMPLES, named) ? EXAMPLES[named] : undefined
  if (example === undefined) return { type: 'command', command: word }
  const isHosted = Object.hasOwn(PROVIDERS, named) && PROVIDERS[named]?.url !== undefined
  if (isHosted && /^[\w.-]+(\/[\w.-]+)+(:[\w.-]+)?$/.test(rest)) return { type: named, model: rest }
  throw usageError(
    `${flag}${named}:…: needs ${isHosted ? 'the name of a model' : 'the http or https URL of the server'}.`,
    `Example: --engine ${example}`,
  )
}

/** A command may begin with any word and a colon, but hardly with a mistyped type of engine. */
function checkType(word: string, flag: string): void {
  const [, type = ''] = /^(\w+):/.exec(word) ?? []
  if (type === '' || Object.hasOwn(EXAMPLES, type)) return
  const meant = nearest(type, Object.keys(EXAMPLES))
  if (meant === undefined) return
  throw usageError(
    `${flag}${type}:…: unknown type of engine "${type}". Did you mean ${meant}:?`,
    `Example: --engine ${EXAMPLES[meant]}`,
  )
}
