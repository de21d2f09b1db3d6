/** The entry of the process that makes thumbnails; built as `dist/thumbnailer.cjs`, and started by `createProcessEngine`. */
import { hostEngine } from '../service/engines/host.js'
import { createThumbnailEngine } from './thumbnail.js'

/** Half of a renderer's: an AVIF of 33 megapixels, the most expensive picture that is accepted, needs 0.6 GB. */
hostEngine(createThumbnailEngine(), { maxMemoryBytes: 1_024 * 1_048_576 })
