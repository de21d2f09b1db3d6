/** The map `send` of an engine: which parameter is sent to the server under which name. */
import { mediaOfParameter } from '../../protocol/media-parameters.js'
import type { ModelDocument, ParameterSchema } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { randomSeed } from './seed.js'
import type { EngineSettings } from './settings.js'

export interface SentParameters {
  /** Names of the parameters. */
  readonly names: readonly string[]
  /** Whether a parameter is sent as this field. */
  has(field: string): boolean
  /** Leaves out the properties of the input that are neither sent nor among `others`: they would have no effect. */
  checkRest(others: readonly string[]): void
  /**
   * Returns field and value of each parameter that the run sets. A model with a seed gets a random one if the run has
   * none: some servers would otherwise draw the same picture each time.
   */
  fieldsOf(input: Readonly<Record<string, unknown>>): readonly (readonly [field: string, value: unknown])[]
}

/** `fixed`: fields that the engine sets itself. `standard`: fields of parameters that the document does not map. */
export function readSentParameters(
  settings: EngineSettings,
  { input: { properties } }: ModelDocument,
  fixed: readonly string[],
  standard: Readonly<Record<string, string>> = {},
): SentParameters {
  const known = Object.entries(standard).filter(([name]) => Object.hasOwn(properties, name))
  const fields = new Map<string, string>(known)
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
        const value = run[name] ?? (field === 'seed' ? randomSeed(properties[name]) : undefined)
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
