/**
 * Reads and checks the body of a create, in the order of the interface (4.1): the model first, since its schema is
 * needed to check the input. The structure was bounded before (body-structure.ts).
 */
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { shortened } from '../../protocol/text.js'
import { type InputProblem, inputProblems } from '../../protocol/validate.js'
import { Refusal } from './refusal.js'

export interface CreateRequest {
  readonly model: string
  readonly kind: Kind
  readonly input: Readonly<Record<string, unknown>>
}

const MAX_MESSAGE_LENGTH = 2_000

/** Throws `Refusal`: invalid_json, missing_model, missing_input, model_not_found or invalid_input. */
export function readCreateRequest(body: Uint8Array, models: Readonly<Record<Kind, string>>): CreateRequest {
  const value = jsonOf(body)
  if (!isObject(value)) throw new Refusal('missing_model', 'The body is not a JSON object.')
  const { model, input } = value
  if (typeof model !== 'string') throw new Refusal('missing_model')
  if (!isObject(input)) throw new Refusal('missing_input')
  const kind = KINDS.find((each) => models[each] === model)
  if (kind === undefined) throw new Refusal('model_not_found', available(model, models))
  const problems = inputProblems(kind, input)
  if (problems.length > 0) throw new Refusal('invalid_input', sentenceOf(problems))
  return { model, kind, input }
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown
  } catch {
    throw new Refusal('invalid_json', body.byteLength === 0 ? 'The body is empty.' : undefined)
  }
}

const available = (model: string, models: Readonly<Record<Kind, string>>): string =>
  `Requested: "${shortened(model)}". Available: ${Object.values(models).join(', ')}.`

const sentenceOf = (problems: readonly InputProblem[]): string =>
  shortened(
    `${problems
      .map(({ parameter, message }) => `${parameter === '' ? 'input' : `input.${parameter}`} ${message}`)
      .join('; ')}.`,
    MAX_MESSAGE_LENGTH,
  )
