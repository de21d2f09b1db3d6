/** From the bytes of a create to its checked request. Pure; the body may have 64 MiB, and then it takes a second. */
import type { Kind } from '../../protocol/models.js'
import { checkStructure } from '../rules/body-structure.js'
import { type CreateRequest, readCreateRequest } from '../rules/create-request.js'
import { type ExtractedImages, extractImages } from '../rules/embedded-images.js'
import { checkInputBounds } from '../rules/input-bounds.js'

/** A create whose data: URLs were replaced by `StoredImage`, with the images. */
export type ReadCreate = Pick<CreateRequest, 'model' | 'kind'> & ExtractedImages

/** Throws `Refusal`: 400. */
export function readCreate(body: Uint8Array, models: Readonly<Record<Kind, string>>): ReadCreate {
  checkStructure(body)
  const { model, kind, input } = readCreateRequest(body, models)
  checkInputBounds(kind, input)
  return { model, kind, ...extractImages(input) }
}
