/** Checks inputs against the model schemas. Errors list the allowed values and suggest the nearest one. */
import type { ErrorObject } from 'ajv'
import { KINDS, type Kind, type ModelInput, type ParameterSchema } from './models.js'
import { describeLoss, describeType, isExact, listedValues, NUMBER, parametersOf } from './parameters.js'
import { nearest, shortened } from './text.js'
import { VALIDATORS } from './validators.js'

export interface InputProblem {
  /** Name of the parameter: `aspect_ratio`, or `image_urls/3` for an entry of a list. Empty for the whole input. */
  readonly parameter: string
  /**
   * Description of the problem, without the name of the parameter: `must be one of 720p, 1080p (did you mean "720p"?)`.
   */
  readonly message: string
}

/** Returns a value as JSON for a message. Not `String(data)`, because an object may have its own `toString`. */
const shownValue = (data: unknown): string => shortened(JSON.stringify(data) ?? 'undefined', 100)

function notListed(allowed: readonly string[], data: unknown, { type }: ParameterSchema, form = ''): string {
  const value = shownValue(data)
  const near = nearest(value.replace(/^"|"$/g, ''), allowed)
  const suggestion = type === 'string' ? `"${near}"` : near
  return `must be one of ${form}${allowed.join(', ')}, not ${value}${near === undefined ? '' : ` (did you mean ${suggestion}?)`}`
}

/** Whether the value is a number from a flag or a CSV cell that was left as text because it would lose digits. */
const isLossy = ({ type }: ParameterSchema, data: unknown): data is string =>
  (type === 'integer' || type === 'number') &&
  typeof data === 'string' &&
  NUMBER.test(data) &&
  Number.isFinite(Number(data)) &&
  !isExact(data, Number(data))

function problemOfAjv({
  instancePath,
  keyword,
  params,
  parentSchema,
  data,
  message,
}: ErrorObject): InputProblem {
  const parameter = instancePath.slice(1)
  const problem = (what: string): InputProblem => ({ parameter, message: what })
  const schema = parentSchema as ParameterSchema
  const listed = listedValues(schema)
  switch (keyword) {
    case 'required':
      return { parameter: String(params.missingProperty), message: 'is missing' }
    case 'maxItems':
      return problem(`takes at most ${params.limit}, not ${(data as unknown[]).length}`)
    case 'enum':
      return problem(notListed(listed ?? [], data, schema))
    case 'minimum':
    case 'maximum':
      return problem(`must be ${describeType(schema)}, not ${shownValue(data)}`)
    case 'type':
      if (listed !== undefined)
        return problem(
          notListed(listed, data, schema, `the ${schema.type === 'string' ? 'string' : 'number'}s `),
        )
      if (schema.type === 'string') return problem('must be of type string')
      if (schema.type === 'array') return problem('must be a list of strings')
      if (isLossy(schema, data)) return problem(`must have fewer digits: ${describeLoss(data, Number(data))}`)
      return problem(`must be ${describeType(schema)}, not ${shownValue(data)}`)
    default:
      return problem(message ?? 'is not valid')
  }
}

/** Returns the problems of an input, at most one for each parameter. */
export function inputProblems(kind: Kind, input: ModelInput): readonly InputProblem[] {
  const validate = VALIDATORS[kind]
  return validate(input) ? [] : problemsOfAjv(validate.errors ?? [])
}

/**
 * Converts the errors of a validation with the options `allErrors` and `verbose` to problems, at most one for each
 * parameter.
 */
export function problemsOfAjv(errors: readonly ErrorObject[]): readonly InputProblem[] {
  const byParameter = new Map<string, InputProblem>()
  // A value of the wrong type also fails `enum`. The error for `type` comes first and is clearer.
  for (const error of errors) {
    const problem = problemOfAjv(error)
    if (!byParameter.has(problem.parameter)) byParameter.set(problem.parameter, problem)
  }
  return [...byParameter.values()]
}

/**
 * Returns the fields that the schema does not define. They are sent anyway; the caller warns, because a name may be
 * mistyped.
 */
export function unknownFields(
  kind: Kind,
  input: ModelInput,
): readonly { name: string; nearest: string | undefined }[] {
  const known = Object.keys(parametersOf(kind))
  return Object.keys(input)
    .filter((name) => !known.includes(name))
    .map((name) => ({ name, nearest: nearest(name, known) }))
}

export const isKind = (text: string): text is Kind => (KINDS as readonly string[]).includes(text)
