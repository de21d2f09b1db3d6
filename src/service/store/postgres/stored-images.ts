import type { StoredInput } from '../../stored-run.js'

/** SHA-256 of the stored images of an input, for the column `images`; null when it has none. */
export function imagesOf({ image_urls }: StoredInput): readonly string[] | null {
  if (!Array.isArray(image_urls)) return null
  const found = image_urls.flatMap((image: unknown) => {
    const sha256 = (image as { readonly sha256?: unknown } | null)?.sha256
    return typeof sha256 === 'string' ? [sha256] : []
  })
  return found.length === 0 ? null : found
}
