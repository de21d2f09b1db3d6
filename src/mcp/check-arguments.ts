/** Checks the arguments of a call against the schema of its tool; errors name the parameter and the nearest right one. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { usageError } from '../errors.js'
import { findInexact } from '../protocol/exact-number.js'
import { nearest } from '../protocol/nearest.js'
import { shortened } from '../protocol/text.js'
import { problemsOfAjv } from '../protocol/validate.js'
import type { Arguments, ToolDefinition } from './tool.js'

const ajv = new Ajv({ allErrors: true, verbose: true })
const compiled = new WeakMap<object, ValidateFunction>()

/** Throws `usage` with every problem. */
export function checkArguments({ name, inputSchema }: ToolDefinition, args: Arguments): void {
  const deep = Object.keys(args).find((each) => !isWithinLevels(args[each], MAX_LEVELS))
  if (deep !== undefined)
    throw usageError(
      `${shortened(deep, 60)} is nested more than ${MAX_LEVELS} levels deep. Nothing was sent.`,
    )
  const inexact = findInexact(args)
  if (inexact !== undefined)
    throw usageError(
      `${shortened(inexact.join('.'), 100)} is a number whose digits cannot be kept: it is beyond ${Number.MAX_SAFE_INTEGER}. Nothing was sent.`,
      'Use a smaller number, or a string if the model accepts one.',
    )
  const validate = compiled.get(inputSchema) ?? ajv.compile(inputSchema)
  compiled.set(inputSchema, validate)
  if (validate(args)) return
  const known = Object.keys(inputSchema.properties)
  const lines: string[] = []
  const others: ErrorObject[] = []
  for (const error of validate.errors ?? []) {
    const own = OWN_SENTENCES[error.keyword]?.(error, known)
    if (own === undefined) others.push(error)
    else lines.push(own)
  }
  for (const { parameter, message } of problemsOfAjv(others)) lines.push(`${nameOf(parameter)} ${message}.`)
  throw usageError(lines.join(' '), `Parameters of ${name}: ${known.join(', ')}.`)
}

/** Deeper values would exhaust the stack of the functions that read them. */
const MAX_LEVELS = 500

function isWithinLevels(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((each) => isWithinLevels(each, levels - 1))
}

/** What the checks of model inputs do not have, by Ajv's keyword. */
const OWN_SENTENCES: Readonly<
  Record<string, (error: ErrorObject, known: readonly string[]) => string | undefined>
> = {
  additionalProperties: ({ params }, known) => unknownParameter(String(params.additionalProperty), known),
  type: ({ params, instancePath }) =>
    params.type === 'object' ? `${nameOf(instancePath.slice(1))} must be a JSON object.` : undefined,
  minItems: ({ instancePath }) => `${nameOf(instancePath.slice(1))} is empty.`,
  minLength: ({ instancePath }) => `${nameOf(instancePath.slice(1))} is empty.`,
  maxLength: ({ instancePath, params }) =>
    `${nameOf(instancePath.slice(1))} has more than ${params.limit} characters.`,
}

/** `image_urls/3` is the fourth entry of a list. */
function nameOf(parameter: string): string {
  const [field = '', entry] = parameter.split('/')
  return `${field}${entry === undefined ? '' : ` (entry ${Number(entry) + 1})`}`
}

function unknownParameter(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return `Unknown parameter "${shortened(name, 60)}".${near === undefined ? '' : ` Did you mean "${near}"?`}`
}
