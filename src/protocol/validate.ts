/** Checks inputs against the model schemas; errors name the allowed values and the nearest one. */
import type { ErrorObject } from 'ajv'
import { KINDS, type Kind, type ModelInput, type ParameterSchema } from './models.js'
import { describeLoss, describeType, isExact, listedValues, NUMBER, parametersOf } from './parameters.js'
import { nearest, shortened } from './text.js'
import { VALIDATORS } from './validators.js'

export interface InputProblem {
  /** The parameter: `aspect_ratio`, or `image_urls/3` for an entry of a list. Empty for the whole input. */
  readonly parameter: string
  /** The problem, without the parameter's name: `must be one of 720p, 1080p (did you mean "720p"?)`. */
  readonly message: string
}

/** Not `String(data)`: an object may have its own `toString`. */
const shownValue = (data: unknown): string => shortened(JSON.stringify(data) ?? 'undefined', 100)

function notListed(allowed: readonly string[], data: unknown, { type }: ParameterSchema, form = ''): string {
  const given = shownValue(data)
  const near = nearest(given.replace(/^"|"$/g, ''), allowed)
  const meant = type === 'string' ? `"${near}"` : near
  return `must be one of ${form}${allowed.join(', ')}, not ${given}${near === undefined ? '' : ` (did you mean ${meant}?)`}`
}

/** A flag or a CSV cell that is a number, but was left a text since it would lose digits. */
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

/** Everything that is wrong with an input, at most one problem for each parameter. */
export function inputProblems(kind: Kind, input: ModelInput): readonly InputProblem[] {
  const validate = VALIDATORS[kind]
  return validate(input) ? [] : problemsOfAjv(validate.errors ?? [])
}

/** The errors of a check with the options `allErrors` and `verbose`, at most one problem for each parameter. */
export function problemsOfAjv(errors: readonly ErrorObject[]): readonly InputProblem[] {
  const byParameter = new Map<string, InputProblem>()
  // A value of the wrong type also fails `enum`; `type` comes first and says more.
  for (const error of errors) {
    const problem = problemOfAjv(error)
    if (!byParameter.has(problem.parameter)) byParameter.set(problem.parameter, problem)
  }
  return [...byParameter.values()]
}

/** Fields that the schema does not name. They are sent anyway; the caller warns, since a name may be mistyped. */
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
