/** What a batch has in flight: creates and runs that its lock file does not have. Only the journal knows them. */
import type { Kind } from '../../protocol/models.js'
import type { Lock } from '../lock/lock.js'

/** A file that has its final name, or was about to get it when the batch was killed. */
export interface PlacedFile {
  /** Absolute path. */
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  readonly url: string
  readonly content_type: string
}

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
  /** Number of its row in the journal. Undefined if only the lock file of an earlier version has it. */
  readonly row: number | undefined
  /** Links to the outputs of a run that has succeeded. */
  readonly urls: readonly string[]
  readonly files: readonly PlacedFile[]
}

/** The creates in a lock file of an earlier version, until a batch takes them over into the journal. */
export const earlierFlights = ({ earlier }: Lock): readonly Flight[] =>
  [...earlier].map(([name, { hash, kind, model, service, run, key }]) => ({
    ...{ name, hash, kind, model, address: service, run, key },
    row: undefined,
    urls: [],
    files: [],
  }))
