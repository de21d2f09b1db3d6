/** The types of engines, by the name that a document uses (`engine: { type: images }`). */
import { defaultsOf } from '../../protocol/price.js'
import { valueProblem } from '../../protocol/validate.js'
import { readComfyui } from '../engines/comfyui/index.js'
import { readCommand } from '../engines/command/index.js'
import { createCogEngine } from '../engines/hosted/cog.js'
import { createFalEngine } from '../engines/hosted/fal.js'
import { readHosted } from '../engines/hosted/index.js'
import { createOpenRouterEngine } from '../engines/hosted/openrouter.js'
import { createReplicateEngine } from '../engines/hosted/replicate.js'
import { readImages } from '../engines/images/index.js'
import { readSdapi } from '../engines/sdapi/index.js'
import { readSdcpp } from '../engines/sdcpp/index.js'
import type { ReadEngine } from '../engines/settings.js'
import { readVideos } from '../engines/videos/index.js'
import { PREVIEW_DOCUMENTS } from './served-model.js'

/**
 * The built-in renderer, which draws each model of a kind alike. Sets the values that it needs: a document may leave them
 * out, and may have others that it cannot draw. Does not close the shared renderer.
 */
const readPreview: ReadEngine =
  (_settings, { kind }) =>
  ({ preview }) => {
    const renderer = preview()
    const { input: schema } = PREVIEW_DOCUMENTS[kind]
    const defaults = Object.entries({ prompt: '', ...defaultsOf(schema) })
    return {
      render(job) {
        const drawn = defaults.map(([name, standard]) => {
          const parameter = schema.properties[name]
          const value = job.input[name]
          return [name, parameter && valueProblem(parameter, value) === undefined ? value : standard]
        })
        return renderer.render({ ...job, input: { ...job.input, ...Object.fromEntries(drawn) } })
      },
    }
  }

export const ENGINE_TYPES: Readonly<Record<string, ReadEngine>> = {
  images: readImages,
  comfyui: readComfyui,
  videos: readVideos,
  sdapi: readSdapi,
  sdcpp: readSdcpp,
  fal: readHosted('fal', createFalEngine),
  replicate: readHosted('replicate', createReplicateEngine),
  openrouter: readHosted('openrouter', createOpenRouterEngine),
  cog: readHosted('cog', createCogEngine),
  command: readCommand,
  preview: readPreview,
}
