/** Entry point of the thumbnail process. Built as `dist/thumbnailer.cjs`, and started by `createProcessEngine`. */
import { hostEngine } from '../service/engines/host.js'
import { createThumbnailEngine } from './thumbnail.js'

/** Half of a renderer's memory limit. An AVIF of 33 megapixels, the most expensive accepted picture, needs 0.6 GB. */
hostEngine(createThumbnailEngine(), { maxMemoryBytes: 1_024 * 1_048_576 })
