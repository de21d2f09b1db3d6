/** The entry of the renderer's process; built as `dist/renderer.cjs`, and started by `createProcessEngine`. */
import { hostEngine } from '../service/engines/host.js'
import { createPreviewEngine } from './index.js'

hostEngine(createPreviewEngine())
