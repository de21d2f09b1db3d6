/** The entry of the renderer's process; built as `dist/renderer.cjs`, and started by `createProcessEngine`. */
import { hostEngine } from './host.js'
import { createPreviewEngine } from './preview/index.js'

hostEngine(createPreviewEngine())
