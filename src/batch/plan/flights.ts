/** What a batch has in flight: creates and runs that its lock file does not have. Only the journal knows them. */
import type { DownloadedFile } from '../../protocol/media.js'
import type { Kind } from '../../protocol/models.js'

export interface Flight {
  /** Name of the entry. */
  readonly name: string
  /** Hash of model and input. */
  readonly hash: string
  readonly kind: Kind | undefined
  readonly model: string
  /** Address of the service. */
  readonly address: string | undefined
  /** Id of the run. Undefined if the outcome of its create is unknown. */
  readonly run: string | undefined
  /** Key of its row in the journal, if it has no id. */
  readonly key: string | undefined
  /** Number of its row in the journal. */
  readonly row: number
  /** Links to the outputs of a run that has succeeded. */
  readonly urls: readonly string[]
  /** Files that have their final names, or were about to get them when the batch was killed. */
  readonly files: readonly DownloadedFile[]
}
