/** The result of reading a manifest: one entry for each run, with its own output file. */
import type { MediaSummary } from '../../protocol/media.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import type { Position } from './position.js'
import type { Models } from './sections.js'

/** One of `image_urls`. */
export type ImageReference =
  /** An http(s) or data: URL, sent unchanged. */
  | { readonly from: 'url'; readonly text: string }
  /** `run:<id>`, looked up when the run is created. */
  | { readonly from: 'run'; readonly text: string }
  | { readonly from: 'file'; readonly path: string; readonly summary: MediaSummary }
  | RowReference

/** `row:<name>` or `row:<name>#<n>`: an output of another run of the manifest. */
export interface RowReference {
  readonly from: 'row'
  /** As written. */
  readonly text: string
  /** Name of the entry that makes it. */
  readonly source: string
  /** Counted from 1. */
  readonly output: number
}

export interface ManifestEntry {
  /** Unique in the manifest; the key in the lock file. */
  readonly name: string
  /** The row's name, without the number that `count` adds. */
  readonly rowName: string
  /** The name of a row with a matrix, else its output, as written: `icon-{animal}`. */
  readonly template: string | undefined
  /** Position of the row. */
  readonly at: Position
  /** Undefined for a model of neither kind. */
  readonly kind: Kind | undefined
  /** Undefined when the manifest names none; then the settings or the lock file do. */
  readonly model: string | undefined
  /** As written in the manifest, with local images by path and rows by name; `inputToSend` makes what is sent. */
  readonly input: ModelInput
  /**
   * The input with each local image replaced by its summary: equal meanings are the same request. An entry that uses
   * other rows has its meaning once their outputs are known: see `meaningWith`.
   */
  readonly meaning: ModelInput
  readonly references: readonly ImageReference[]
  /** Relative to the manifest, with `/`; ends in `.{ext}` when the extension depends on the output. */
  readonly output: string
}

export interface Manifest {
  /** As the user gave it. */
  readonly path: string
  /** Absolute; the paths in the manifest are relative to it. */
  readonly folder: string
  readonly models: Models
  /** In the order of the file. */
  readonly entries: readonly ManifestEntry[]
}
