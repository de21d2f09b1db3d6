/** Media in an input: the parameters that hold it, and what identifies it in place of its bytes. */
import { kindsWith, PARAMETER_NAMES, parametersOf } from './parameters.js'

/**
 * Parameters that hold images, as http(s) or data: URLs: in the schemas, those that are lists. A text in any other parameter
 * is a text, even if it looks like a data: URL. Models without a schema are read by the same names.
 */
export const MEDIA_PARAMETERS: readonly string[] = PARAMETER_NAMES.filter((name) =>
  kindsWith(name).some((kind) => parametersOf(kind)[name]?.type === 'array'),
)

/**
 * Identifies media by its content. Only what rushes has read becomes an instance: an object with the same fields can also be
 * a part of the input itself, and is a different input.
 */
export class MediaSummary {
  /** 64 hexadecimal digits, of the decoded bytes. */
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
  // Makes the type nominal.
  readonly #isSummary = true

  constructor(sha256: string, bytes: number, contentType: string) {
    this.sha256 = sha256
    this.bytes = bytes
    this.content_type = contentType
  }

  static is(value: unknown): value is MediaSummary {
    return typeof value === 'object' && value !== null && #isSummary in value
  }
}
