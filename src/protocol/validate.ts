/** Inputs against the model schemas, with errors that name the allowed values and the nearest one. */
import type { ErrorObject } from 'ajv'
import { KINDS, type Kind, MODEL_INPUTS, type ModelInput } from './models.js'
import { nearest } from './nearest.js'
import { shortened } from './text.js'
import { VALIDATORS } from './validators.js'

export interface InputProblem {
  /** The parameter: `aspect_ratio`, or `image_urls/3` for an entry of a list. Empty for the whole input. */
  readonly parameter: string
  /** What is wrong, without the parameter's name: `must be one of 720p, 1080p (nearest: 720p)`. */
  readonly message: string
}

function allowedMessage(allowed: readonly string[], data: unknown): string {
  const given = shortened(JSON.stringify(data) ?? 'undefined', 100)
  // A value without its quotes; `String` would stumble over an object with a `toString` of its own.
  const near = nearest(given.replace(/^"|"$/g, ''), allowed)
  return `must be one of ${allowed.join(', ')}, not ${given}${near === undefined ? '' : ` (nearest: ${near})`}`
}

function problemOfAjv(error: ErrorObject): InputProblem {
  const parameter = error.instancePath.slice(1)
  switch (error.keyword) {
    case 'required':
      return { parameter: String(error.params.missingProperty), message: 'is missing' }
    case 'enum':
      return { parameter, message: allowedMessage(error.params.allowedValues as string[], error.data) }
    case 'maxItems':
      return {
        parameter,
        message: `takes at most ${error.params.limit}, not ${(error.data as unknown[]).length}`,
      }
    case 'type': {
      const allowed = error.parentSchema?.enum as readonly string[] | undefined
      if (allowed !== undefined)
        return { parameter, message: `${allowedMessage(allowed, error.data)}, as a string` }
      return {
        parameter,
        message: `must be ${error.params.type === 'array' ? 'a list of strings' : `of type ${error.params.type}`}`,
      }
    }
    default:
      return { parameter, message: error.message ?? 'is not valid' }
  }
}

/** Everything that is wrong with an input, at most one problem a parameter. */
export function inputProblems(kind: Kind, input: ModelInput): readonly InputProblem[] {
  const validate = VALIDATORS[kind]
  if (validate(input)) return []
  const byParameter = new Map<string, InputProblem>()
  // A value of the wrong type breaks `type` and `enum` at once; the first says more.
  for (const error of validate.errors ?? []) {
    const problem = problemOfAjv(error)
    if (!byParameter.has(problem.parameter)) byParameter.set(problem.parameter, problem)
  }
  return [...byParameter.values()]
}

/** Fields that the schema does not name. They are sent as they are, but a mistyped one is worth a word. */
export function unknownFields(
  kind: Kind,
  input: ModelInput,
): readonly { name: string; nearest: string | undefined }[] {
  const known = Object.keys(MODEL_INPUTS[kind].properties)
  return Object.keys(input)
    .filter((name) => !known.includes(name))
    .map((name) => ({ name, nearest: nearest(name, known) }))
}

export const isKind = (text: string): text is Kind => (KINDS as readonly string[]).includes(text)
