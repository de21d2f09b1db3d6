/**
 * The service's own bounds of an input, beside the schemas: whatever is accepted is stored, and sent again with every
 * status request.
 */
import { type Kind, MODEL_INPUTS } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import { Refusal } from './refusal.js'

export const MAX_PROMPT_CHARACTERS = 100_000
export const MAX_UNKNOWN_BYTES = 65_536
/** Of either model: the interface publishes this bound for images, and none for videos. */
export const MAX_IMAGES = 14
export const MAX_URL_CHARACTERS = 8_192

/** Throws `Refusal` (invalid_input). The input matches its schema. */
export function checkInputBounds(kind: Kind, input: Readonly<Record<string, unknown>>): void {
  const refuse = (sentence: string) => {
    throw new Refusal('invalid_input', sentence)
  }
  const { prompt, image_urls: images = [] } = input as { prompt: string; image_urls?: readonly string[] }
  if (prompt.length > MAX_PROMPT_CHARACTERS)
    refuse(`input.prompt has ${prompt.length} characters; the limit is ${MAX_PROMPT_CHARACTERS}.`)
  if (images.length > MAX_IMAGES)
    refuse(`input.image_urls has ${images.length} images; the limit is ${MAX_IMAGES}.`)
  const long = images.findIndex((url) => !/^data:/i.test(url) && url.length > MAX_URL_CHARACTERS)
  if (long >= 0) refuse(`input.image_urls/${long} is longer than ${MAX_URL_CHARACTERS} characters.`)
  const huge = pathOfHugeNumber(input, 'input')
  if (huge !== undefined) refuse(`${huge} is a number outside the range of ±${Number.MAX_VALUE}.`)
  const unknown = Object.entries(input).filter(
    ([name]) => !Object.hasOwn(MODEL_INPUTS[kind].properties, name),
  )
  const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(unknown)))
  if (bytes > MAX_UNKNOWN_BYTES)
    refuse(
      `The fields that the model does not define have ${bytes} bytes together; the limit is ${MAX_UNKNOWN_BYTES}.`,
    )
}

/** JSON has numbers of any size, such as 1e999. They are read as Infinity, and would be stored as null. */
function pathOfHugeNumber(value: unknown, path: string): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : path
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, part] of Object.entries(value)) {
    const found = pathOfHugeNumber(part, `${path}${path === 'input' ? '.' : '/'}${shortened(name)}`)
    if (found !== undefined) return found
  }
  return undefined
}
