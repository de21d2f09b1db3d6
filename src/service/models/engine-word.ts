/** The short form of an engine, which is the value of `--engine`: a shell command, or `images:http://127.0.0.1:1234/v1`. */
import { usageError } from '../../errors.js'
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

/**
 * Returns the map `engine` of the word. `flag`: the beginning of an error message. A text after `#` is the workflow of
 * ComfyUI, and the name of the model for other servers. Throws `usage` with an example. Does not repeat the word, which
 * may contain a password.
 */
export function readEngineWord(word: string, flag: string): EngineWord {
  const [, type, url, fragment = ''] = /^(?:([a-z]+):)?(https?:\/\/[^#]*)(?:#(.*))?$/.exec(word) ?? []
  if (url !== undefined && type === undefined)
    throw usageError(
      `${flag}…: the URL of a server needs the type of the engine, such as images:http://….`,
      `Examples: ${Object.values(EXAMPLES).join(', ')}.`,
    )
  if (url !== undefined && type !== undefined && URL.canParse(url)) {
    const name = type === 'comfyui' || fragment.endsWith('.json') ? 'workflow' : 'model'
    return { type, url, ...(fragment !== '' && { [name]: fragment }) }
  }
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
