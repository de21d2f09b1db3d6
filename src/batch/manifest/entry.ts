/** What a manifest comes to: one entry per run, each with a file of its own. */
import type { Kind, ModelInput } from '../../protocol/models.js'
import type { Position } from './position.js'
import type { Models } from './top.js'

/** One of `image_urls`. */
export type Reference =
  /** http(s) or data:, as it is. */
  | { readonly from: 'url'; readonly text: string }
  /** `run:<id>`, looked up when the run is created. */
  | { readonly from: 'run'; readonly text: string }
  | { readonly from: 'file'; readonly path: string; readonly summary: ImageSummary }

/** What identifies the content of an image: the same shape as the journal keeps. */
export interface ImageSummary {
  /** 64 hexadecimal digits. */
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

export interface Entry {
  /** Unique in the manifest; the key in the lock file. */
  readonly name: string
  /** The row's name, without the number that `count` adds. */
  readonly rowName: string
  /** Of the row. */
  readonly at: Position
  /** Undefined for a model that is neither of the two. */
  readonly kind: Kind | undefined
  /** Undefined where the manifest names none: the settings may, else the lock file. */
  readonly model: string | undefined
  /** As the manifest has it, with local images by their paths: what is sent is made by `inputToSend`. */
  readonly input: ModelInput
  /** The same with the summary of each local image in its place: what makes two requests the same. */
  readonly meaning: ModelInput
  readonly references: readonly Reference[]
  /** Relative to the manifest, with `/`; where the extension waits for the file it ends in `.{ext}`. */
  readonly output: string
}

export interface Manifest {
  /** As the user gave it. */
  readonly path: string
  /** Absolute: what every path in it is relative to. */
  readonly folder: string
  readonly models: Models
  /** In the order of the file. */
  readonly entries: readonly Entry[]
}
