/** What the service and its intake thread send each other. */
import type { Kind } from '../../protocol/models.js'
import type { RefusalCode } from '../rules/refusal.js'
import type { ReadCreate } from './read-create.js'

export interface ToIntake {
  readonly id: number
  readonly body: Uint8Array
  readonly models: Readonly<Record<Kind, string>>
}

export type FromIntake = { readonly id: number } & (
  | { readonly read: ReadCreate }
  | { readonly refused: { readonly code: RefusalCode; readonly detail: string | undefined } }
  | { readonly failed: string }
)
