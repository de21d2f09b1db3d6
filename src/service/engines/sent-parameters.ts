/** The map `send` of an engine: which parameter is sent to the server under which name. */
import { mediaOfParameter } from '../../protocol/media-parameters.js'
import type { ModelDocument } from '../../protocol/models.js'
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
  { input }: ModelDocument,
  fixed: readonly string[],
  standard: Readonly<Record<string, string>> = {},
): SentParameters {
  const known = Object.entries(standard).filter(([name]) => Object.hasOwn(input.properties, name))
  const fields = new Map<string, string>(known)
  for (const [name, field] of Object.entries(settings.map('send'))) {
    if (!Object.hasOwn(input.properties, name))
      settings.report(['send', name], 'is not a property of the input')
    // A prompt is cleaned first, and references are sent as files.
    else if (name === 'prompt' || name === 'image_urls') settings.report(['send', name], 'is always sent')
    else if (mediaOfParameter(name, { ...input.properties[name] }) !== undefined)
      settings.report(['send', name], 'takes media, and this engine sends only image_urls')
    else if (typeof field !== 'string' || !/^[\w-]+(\.[\w-]+)*$/.test(field) || field in Object.prototype)
      settings.report(['send', name], 'must be the name of a field of the request')
    else if (fixed.includes(field))
      settings.report(['send', name], `cannot be "${field}", which is set already`)
    else fields.set(name, field)
  }
  const has = (field: string): boolean => [...fields.values()].includes(field)
  const hasSeed = Object.hasOwn(input.properties, 'seed') && !settings.hasProblem(['send', 'seed'])
  if (hasSeed && !fields.has('seed') && !has('seed')) fields.set('seed', 'seed')
  return {
    names: [...fields.keys()],
    has,
    checkRest(others) {
      for (const name of Object.keys(input.properties))
        if (!fields.has(name) && !others.includes(name) && !settings.hasProblem(['send', name]))
          settings.leaveOut(name, ['send'], `"${name}" is not sent: add it here, or remove it from the input`)
    },
    fieldsOf: (run) =>
      [...fields].flatMap(([name, field]) => {
        const value = run[name] ?? (field === 'seed' ? randomSeed(input.properties[name]) : undefined)
        return value === undefined ? [] : [[field, value] as const]
      }),
  }
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
