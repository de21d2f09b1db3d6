/**
 * What of a run's input is sent to a server: the parameters in the map `send` of an engine, under which names, and its texts,
 * without what some servers execute in them.
 */
import { writeJson } from '../../protocol/json.js'
import { mediaOfParameter } from '../../protocol/media-parameters.js'
import type { ModelDocument, ParameterSchema } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import type { EngineSettings } from './settings.js'

export interface SentParameters {
  /** Names of the parameters. */
  readonly names: readonly string[]
  /** Whether a parameter is sent as this field. */
  has(field: string): boolean
  /** Leaves out the properties of the input that are neither sent nor among `others`: they would have no effect. */
  checkRest(others: readonly string[]): void
  /** Returns field and value of each parameter that the run sets. */
  fieldsOf(input: Readonly<Record<string, unknown>>): readonly (readonly [field: string, value: unknown])[]
}

/** `fixed`: fields that the engine sets itself. */
export function readSentParameters(
  settings: EngineSettings,
  { input: { properties } }: ModelDocument,
  fixed: readonly string[],
): SentParameters {
  const fields = new Map<string, string>()
  for (const [name, field] of Object.entries(settings.map('send'))) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    const problem = sendProblem(name, field, schema, fixed)
    if (problem === undefined) fields.set(name, String(field))
    else settings.report(['send', name], problem)
  }
  const has = (field: string): boolean => [...fields.values()].includes(field)
  const hasSeed = Object.hasOwn(properties, 'seed') && !settings.hasProblem(['send', 'seed'])
  if (hasSeed && !fields.has('seed') && !has('seed')) fields.set('seed', 'seed')
  return {
    names: [...fields.keys()],
    has,
    checkRest(others) {
      for (const name of Object.keys(properties))
        if (!fields.has(name) && !others.includes(name) && !settings.hasProblem(['send', name]))
          settings.leaveOut(name, ['send'], `"${name}" is not sent: add it here, or remove it from the input`)
    },
    fieldsOf: (run) =>
      [...fields].flatMap(([name, field]) => {
        const value = run[name]
        return value === undefined ? [] : [[field, value] as const]
      }),
  }
}

function sendProblem(
  name: string,
  field: unknown,
  schema: ParameterSchema | undefined,
  fixed: readonly string[],
): string | undefined {
  if (schema === undefined) return 'is not a property of the input'
  // A prompt is cleaned first, and media are sent as files.
  if (name === 'prompt' || mediaOfParameter(name, { ...schema }) !== undefined)
    return 'cannot be sent under another name'
  const isField =
    typeof field === 'string' && /^[\w-]+(\.[\w-]+)*$/.test(field) && !(field in Object.prototype)
  if (!isField) return 'must be the name of a field of the request'
  return fixed.includes(field) ? `cannot be "${field}", which is set already` : undefined
}

/** Returns an object in which `a.b` is the field `b` of the object `a`. */
export function nested(fields: Iterable<readonly [field: string, value: unknown]>): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [field, value] of fields) {
    const names = field.split('.')
    const last = names.pop() ?? field
    let target = result
    for (const name of names) {
      const inner = isObject(target[name]) ? { ...target[name] } : {}
      target[name] = inner
      target = inner
    }
    target[last] = value
  }
  return result
}

/** Element with which a text sets parameters of stable-diffusion.cpp, also size and steps, on all routes of its server. */
const EXTRA_ARGUMENTS = 'sd_cpp_extra_args'

const ELEMENT = new RegExp(`<${EXTRA_ARGUMENTS}>[^<]*</${EXTRA_ARGUMENTS}>`, 'gi')
const PART = new RegExp(`</?${EXTRA_ARGUMENTS}>?|${EXTRA_ARGUMENTS}`, 'gi')

/** Removes the element from all texts of an input: schema and price of the model decide what a run may set. */
export function withoutExtraArguments(value: unknown): unknown {
  // A space, because the rest could form another element.
  if (typeof value === 'string') return value.replace(ELEMENT, '').replace(PART, ' ')
  if (Array.isArray(value)) return value.map(withoutExtraArguments)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [withoutExtraArguments(name), withoutExtraArguments(each)]),
  )
}

/** Adds parameters to a prompt, on one line. */
export function withExtraArguments(prompt: string, fields: Parameters<typeof nested>[0]): string {
  // A value may contain the end of the element.
  const json = writeJson(nested(fields)).replaceAll('<', '\\u003c')
  return json === '{}' ? prompt : `${prompt}<${EXTRA_ARGUMENTS}>${json}</${EXTRA_ARGUMENTS}>`
}

/** The server of stable-diffusion.cpp accepted 10,000 bytes, and crashed at 40,000 of a negative prompt. */
const MAX_TEXT_BYTES = 8_000

/** Throws if a text of a request is too long for stable-diffusion.cpp, whose server would end. */
export function checkLength(...texts: readonly unknown[]): void {
  const bytes = texts.reduce<number>(
    (sum, text) => sum + (typeof text === 'string' ? Buffer.byteLength(text) : 0),
    0,
  )
  if (bytes > MAX_TEXT_BYTES)
    throw new Error(
      `The texts of this run have ${bytes} bytes together; the model's server takes at most ${MAX_TEXT_BYTES}. ` +
        'Shorten the prompt.',
    )
}
