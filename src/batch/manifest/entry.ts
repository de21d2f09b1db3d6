/** What a manifest says of each run: one entry with its own output file. Entries may use outputs of other entries. */
import type { MediaSummary, MediaType } from '../../protocol/media.js'
import type { MediaPlace } from '../../protocol/media-parameters.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import type { Models } from './sections.js'

export interface ManifestEntry {
  /** Unique in the manifest, in the Unicode form NFC. Also the key of the entry in the lock file. */
  readonly name: string
  /** Name of the run as written, without the number that `count` adds. */
  readonly rowName: string
  /** Where the run is written. The line is counted from 1. */
  readonly at: { readonly line: number }
  /** Undefined for a model whose kind is not known. */
  readonly kind: Kind | undefined
  /** Undefined if the manifest has no model for the run. The settings or the lock file then set it. */
  readonly model: string | undefined
  /** Input as written: local images are paths, and outputs of runs are references. See `inputToSend`. */
  readonly input: ModelInput
  /**
   * Input with each local image replaced by its summary: two requests are equal if their identity inputs are. That of
   * an entry that uses other runs is unknown until their outputs exist: see `identityInputOf`.
   */
  readonly identityInput: ModelInput
  /**
   * The identity input before the document of its model was known. A run that was made with it is not paid again because
   * a service now describes the model.
   */
  readonly undocumentedInput: ModelInput | undefined
  readonly references: readonly MediaReference[]
  /** Names of the media parameters of its model. */
  readonly media: readonly string[]
  /** Kept in the journal; not a part of the input. */
  readonly labels: readonly string[]
  /** Path relative to the manifest, separated by `/`. Ends in `.{ext}` if the extension depends on the output. */
  readonly output: string
}

export interface Manifest {
  /** Path of the manifest, as given by the user. */
  readonly path: string
  /** Absolute path of the manifest's folder. Paths in the manifest are relative to it. */
  readonly folder: string
  readonly models: Models
  readonly hasMatrix: boolean
  /** In the order of the manifest. */
  readonly entries: readonly ManifestEntry[]
}

/** A source in a media parameter. */
export type MediaReference =
  /** An http(s) or data: URL, sent unchanged, or `run:<id>`. `summary`: what identifies a data: URL. */
  | ({ readonly from: 'url'; readonly text: string; readonly summary?: MediaSummary | undefined } & Placed)
  /** A local file. `path` is absolute. */
  | ({
      readonly from: 'file'
      readonly text: string
      readonly path: string
      readonly summary: MediaSummary
    } & Placed)
  | RowReference

interface Placed {
  readonly place: MediaPlace
}

/** `row:<name>` or `row:<name>#<n>`: an output of another run of the manifest. */
export interface RowReference extends Placed {
  readonly from: 'row'
  /** What the parameter takes. */
  readonly type: MediaType
  /** The reference, as written. */
  readonly text: string
  /** Name of the entry whose output it is. */
  readonly source: string
  /** Number of the output, from 1. */
  readonly output: number
}

/** A source whose URL is known only when the run is created. */
export type SentReference = Extract<MediaReference, { readonly from: 'file' | 'row' }>
