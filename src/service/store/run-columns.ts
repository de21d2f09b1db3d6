/** What of an input is kept in columns, so that a list need not read inputs. */
import type { StoredInput } from '../stored-run.js'

/** Of a prompt; a search looks at no more. */
export const MAX_PROMPT_CHARACTERS = 1_000

/** Without what neither text of PostgreSQL nor the driver of SQLite can have: NUL and half surrogate pairs. */
const storable = (text: string): string => text.replace(/\0|\p{Surrogate}/gu, '')

/** The first characters of the prompt; null when it is not a text. */
export const promptOf = ({ prompt }: StoredInput): string | null =>
  typeof prompt === 'string'
    ? [...storable(prompt.slice(0, 4 * MAX_PROMPT_CHARACTERS))].slice(0, MAX_PROMPT_CHARACTERS).join('')
    : null

/** Longer than every ratio: a model may take any text. */
const MAX_RATIO_CHARACTERS = 100

export const aspectRatioOf = ({ aspect_ratio }: StoredInput): string | null =>
  typeof aspect_ratio === 'string' ? storable(aspect_ratio.slice(0, MAX_RATIO_CHARACTERS)) : null

/** SHA-256 of the stored images; null without any. */
export function imagesOf({ image_urls }: StoredInput): readonly string[] | null {
  if (!Array.isArray(image_urls)) return null
  const found = image_urls.flatMap((image: unknown) => {
    const sha256 = (image as { readonly sha256?: unknown } | null)?.sha256
    return typeof sha256 === 'string' ? [sha256] : []
  })
  return found.length === 0 ? null : found
}
