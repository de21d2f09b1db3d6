/** What the service and its intake thread send each other. */
import type { Kind } from '../../protocol/models.js'
import type { SentError } from '../sent-error.js'
import type { ReadCreate } from './read-create.js'

export interface IntakeRequest {
  /** In pieces. */
  readonly body: readonly Uint8Array[]
  readonly models: Readonly<Record<Kind, string>>
}

export type IntakeAnswer = { readonly read: ReadCreate } | { readonly error: SentError }
