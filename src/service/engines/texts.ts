/** The texts of a run: what servers of models execute in them, and how long a text may be. */
import { writeJson } from '../../protocol/json.js'
import { isObject } from '../../protocol/parse.js'
import { nested } from './sent-parameters.js'

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
