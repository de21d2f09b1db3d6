/**
 * Parses and checks the bytes of a create: limits of the structure, model and schema, limits of the input, and embedded
 * images. Pure.
 */

import { createHash } from 'node:crypto'
import { readJson, writeJson } from '../../protocol/json.js'
import { fromBase64, fromPercent, type SentImage } from '../../protocol/media.js'
import { mediaParameters, mediaSources, placeText, withMedia } from '../../protocol/media-parameters.js'
import type { ModelDocument, ModelInput } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean, shortened } from '../../protocol/text.js'
import { type InputProblem, inputProblems } from '../../protocol/validate.js'
import { Refusal } from './refusal.js'

interface ReadCreate {
  readonly document: ModelDocument
  /** Input with a `SentImage` for each data: URL. */
  readonly input: ModelInput
  readonly images: readonly EmbeddedImage[]
}

/** An image that was sent as a data: URL. Its bytes become a stored file (`inputKey`). */
export interface EmbeddedImage extends SentImage {
  readonly data: Uint8Array
}

/** Parses the body of a create. Throws `Refusal` (400): invalid_json, or invalid_input for its structure. */
export function parseCreate(body: Uint8Array): unknown {
  checkStructure(body)
  return jsonOf(body)
}

/** Reads a parsed body. Throws `Refusal` (400). For images of 64 MiB, this takes about 0.3 s. */
export function readCreate(body: unknown, models: readonly ModelDocument[]): ReadCreate {
  const { model, input } = readModelAndInput(body)
  const document = checkedDocument(model, input, models)
  return { document, ...extractMedia(input, mediaNames(document)) }
}

const mediaNames = ({ input }: ModelDocument): readonly string[] => [...mediaParameters(input).keys()]

/** Maximum nesting depth of objects and lists. */
export const MAX_DEPTH = 100
/**
 * Maximum number of values. Far more than any input needs: a schema defines at most 64 parameters.
 */
export const MAX_VALUES = 10_000

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Checks the structure before the body is parsed: deep JSON, or JSON with very many values, costs many times more time
 * and memory than its size. Stops at the first exceeded limit. Throws `Refusal` (invalid_input). Bytes that are not
 * JSON may pass; the parser then refuses them.
 */
export function checkStructure(body: Uint8Array, maxValues = MAX_VALUES): void {
  let depth = 0
  let values = 1
  let texts = 0
  for (let index = 0; index < body.length; index++) {
    const byte = body[index]
    if (byte === QUOTE) {
      texts++
      index = endOfText(body, index)
    } else if (byte === COMMA) values++
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth++
      values++
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
    if (depth > MAX_DEPTH)
      throw new Refusal('invalid_input', `The body is nested more than ${MAX_DEPTH} levels deep.`)
    // A value has one name at most.
    if (values > maxValues || texts > 2 * maxValues)
      throw new Refusal('invalid_input', `The body has more than ${maxValues} values.`)
  }
}

/** Returns the index of the quote that ends a text. Skips a picture of 64 MiB without looking at each byte. */
function endOfText(body: Uint8Array, start: number): number {
  const next = body.indexOf(QUOTE, start + 1)
  if (next !== -1 && body[next - 1] !== BACKSLASH) return next
  let index = start + 1
  while (index < body.length && body[index] !== QUOTE) index += body[index] === BACKSLASH ? 2 : 1
  return index
}

const MAX_MESSAGE_LENGTH = 2_000
/** A refused create names its first problems. The check ends there, since it may block the service's other requests. */
const MAX_NAMED_PROBLEMS = 10

/** Throws `Refusal`: missing_model or missing_input. */
function readModelAndInput(body: unknown): { readonly model: string; readonly input: ModelInput } {
  if (!isObject(body)) throw new Refusal('missing_model', 'The body is not a JSON object.')
  const { model, input } = body
  if (typeof model !== 'string') throw new Refusal('missing_model')
  if (!isObject(input)) throw new Refusal('missing_input')
  return { model, input }
}

/**
 * Checks in the order of docs/service.md: the model first, since the input is checked with its schema. Throws
 * `Refusal`: model_not_found or invalid_input.
 */
function checkedDocument(model: string, input: ModelInput, models: readonly ModelDocument[]): ModelDocument {
  const document = models.find(({ name }) => name === model)
  if (document === undefined) throw new Refusal('model_not_found', requested(model, models))
  const problems = inputProblems(document.input, input, MAX_NAMED_PROBLEMS)
  if (problems.length > 0) throw new Refusal('invalid_input', sentenceOf(problems))
  checkInputBounds(document, input)
  return document
}

/** Throws `Refusal` (invalid_json), also for bytes that are not UTF-8. */
export function jsonOf(body: Uint8Array): unknown {
  try {
    return readJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new Refusal('invalid_json', body.byteLength === 0 ? 'The body is empty.' : undefined)
  }
}

/** No name of a model is longer. Bounds the search for the nearest one. */
const MAX_NAME_CHARACTERS = 200

function requested(model: string, models: readonly ModelDocument[]): string {
  const names = model.length > MAX_NAME_CHARACTERS ? [] : models.map(({ name }) => name)
  return `Requested: "${shortened(model)}".${didYouMean(model, names)}`
}

const sentenceOf = (problems: readonly InputProblem[]): string =>
  shortened(
    `${problems
      .map(({ parameter, message }) => `${parameter === '' ? 'input' : `input.${parameter}`} ${message}`)
      .join('; ')}.`,
    MAX_MESSAGE_LENGTH,
  )

export const MAX_PROMPT_CHARACTERS = 100_000
/** Of all parameters but the prompt and media, as JSON: a status response contains them. */
const MAX_PARAMETER_BYTES = 262_144
/** Maximum number of files in one parameter for all models. The published API has this limit for images, and none for videos. */
export const MAX_FILES = 14
const MAX_URL_CHARACTERS = 8_192

/**
 * Limits of this service for an input that matches its schema. An accepted input is stored, and sent with every status
 * response. Throws `Refusal` (invalid_input).
 */
function checkInputBounds(document: ModelDocument, input: ModelInput): void {
  const { properties } = document.input
  const media = mediaNames(document)
  const refuse = (sentence: string) => {
    throw new Refusal('invalid_input', sentence)
  }
  // Refuse images that the model would ignore: the run would cost as much, and its result would not show them.
  if (Object.hasOwn(input, 'image_urls') && !Object.hasOwn(properties, 'image_urls'))
    refuse('This model takes no image_urls.')
  const hasPrompt = Object.hasOwn(properties, 'prompt') && typeof input.prompt === 'string'
  const { length } = hasPrompt ? String(input.prompt) : ''
  if (length > MAX_PROMPT_CHARACTERS)
    refuse(`input.prompt has ${length} characters; the limit is ${MAX_PROMPT_CHARACTERS}.`)
  for (const name of media) {
    const { [name]: list } = input
    if (Array.isArray(list) && list.length > MAX_FILES)
      refuse(`input.${name} has ${list.length} files; the limit is ${MAX_FILES}.`)
  }
  for (const source of mediaSources(input, media)) {
    const text = String(source.value)
    if (/^data:/i.test(text)) continue
    if (text.length > MAX_URL_CHARACTERS)
      refuse(`input.${placeText(source)} is longer than ${MAX_URL_CHARACTERS} characters.`)
    if (!/^https?:\/\//i.test(text) || !URL.canParse(text))
      refuse(`input.${placeText(source)} is not an http(s) or data: URL.`)
  }
  // JSON allows numbers of any size: 1e999 is parsed as Infinity, and would be stored as null.
  for (const [name, value] of Object.entries(input))
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY)
      refuse(`input.${shortened(name)} is a number outside the range of ±${Number.MAX_VALUE}.`)
  const others = Object.entries(input).filter(
    ([name]) => !media.includes(name) && !(hasPrompt && name === 'prompt'),
  )
  const bytes = Buffer.byteLength(writeJson(Object.fromEntries(others)))
  if (bytes > MAX_PARAMETER_BYTES)
    refuse(
      `The parameters other than prompt and media have ${bytes} bytes of JSON together; ` +
        `the limit is ${MAX_PARAMETER_BYTES}.`,
    )
}

/** Replaces data: URLs (RFC 2397) only in media parameters: a prompt that looks like one stays text. */
function extractMedia(input: ModelInput, media: readonly string[]): Pick<ReadCreate, 'input' | 'images'> {
  const images: EmbeddedImage[] = []
  const embedded = mediaSources(input, media).flatMap((source) => {
    const { value } = source
    if (typeof value !== 'string' || !/^data:/i.test(value)) return []
    const image = imageOf(value, `input.${placeText(source)}`)
    images.push(image)
    const { sha256, bytes, content_type } = image
    return [{ ...source, value: { sha256, bytes, content_type } }]
  })
  return { input: withMedia(input, embedded), images }
}

/** More than any media type with its attributes has. */
const MAX_DATA_HEAD = 1_000

function imageOf(url: string, parameter: string): EmbeddedImage {
  const comma = url.indexOf(',')
  if (comma < 0) throw new Refusal('invalid_input', `${parameter} is a data: URL without a comma.`)
  // Millions of attributes would take seconds and a gigabyte.
  if (comma > MAX_DATA_HEAD)
    throw new Refusal(
      'invalid_input',
      `${parameter} is a data: URL with more than ${MAX_DATA_HEAD} characters before its data.`,
    )
  const [type = '', ...attributes] = url.slice('data:'.length, comma).split(';')
  const isBase64 = attributes.at(-1)?.trim().toLowerCase() === 'base64'
  const text = url.slice(comma + 1)
  const isInvalid = !isBase64 && /%(?![0-9a-f]{2})/i.test(text)
  const data = isInvalid ? undefined : isBase64 ? fromBase64(text) : fromPercent(text)
  if (data === undefined)
    throw new Refusal(
      'invalid_input',
      `${parameter} is a data: URL whose ${isBase64 ? 'base64' : 'percent encoding'} is not valid.`,
    )
  return {
    sha256: createHash('sha256').update(data).digest('hex'),
    bytes: data.byteLength,
    content_type: contentTypeOf(type),
    data,
  }
}

/** Returns `text/plain`, the default of RFC 2397, for an invalid type. */
const contentTypeOf = (type: string): string =>
  /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(type.trim()) ? type.trim().toLowerCase() : 'text/plain'
