/** Entry point of the renderer process. Built as `dist/renderer.cjs`, and started by `createProcessEngine`. */
import { hostEngine } from '../service/engines/host.js'
import { createPreviewEngine } from './index.js'

hostEngine(createPreviewEngine())
