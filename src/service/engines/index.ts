/** The types of engines, by the name that a document uses (`engine: { type: images }`). */
import { messageOf } from '../../errors.js'
import { defaultsOf } from '../../protocol/price.js'
import { parseDuration } from '../../protocol/units.js'
import { valueProblem } from '../../protocol/validate.js'
import { PREVIEW_DOCUMENTS } from '../models/served-model.js'
import { readComfyui } from './comfyui/index.js'
import { readCommand } from './command/index.js'
import { createCogEngine } from './hosted/cog.js'
import { createFalEngine } from './hosted/fal.js'
import { readHosted } from './hosted/index.js'
import { createOpenRouterEngine } from './hosted/openrouter.js'
import { createReplicateEngine } from './hosted/replicate.js'
import { readImages } from './images/index.js'
import type { ReadEngine } from './read-engine.js'
import { readSdapi } from './sdapi/index.js'
import { readSdcpp } from './sdcpp/index.js'
import { readVideos } from './videos/index.js'

/** Adds the setting `timeout: 45m`, the limit of one run. */
const withTimeLimit =
  (read: ReadEngine): ReadEngine =>
  (settings, document) => {
    const limitMs = timeLimitOf(settings.text('timeout'), (problem) => settings.report(['timeout'], problem))
    const createEngine = read(settings, document)
    if (limitMs === undefined) return createEngine
    return (parts) => ({ ...createEngine(parts), limitMs: () => limitMs })
  }

function timeLimitOf(text: string | undefined, report: (problem: string) => void): number | undefined {
  if (text === undefined) return undefined
  try {
    const ms = parseDuration(text, 'timeout')
    return ms === 0 ? Number.POSITIVE_INFINITY : ms
  } catch (error) {
    report(messageOf(error))
    return undefined
  }
}

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
  images: withTimeLimit(readImages),
  comfyui: withTimeLimit(readComfyui),
  videos: withTimeLimit(readVideos),
  sdapi: withTimeLimit(readSdapi),
  sdcpp: withTimeLimit(readSdcpp),
  fal: withTimeLimit(readHosted('fal', createFalEngine)),
  replicate: withTimeLimit(readHosted('replicate', createReplicateEngine)),
  openrouter: withTimeLimit(readHosted('openrouter', createOpenRouterEngine)),
  cog: withTimeLimit(readHosted('cog', createCogEngine)),
  command: withTimeLimit(readCommand),
  preview: readPreview,
}
