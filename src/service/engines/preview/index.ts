/** The built-in renderer as a type of engine. It draws each model of a kind alike. */
import { defaultsOf } from '../../../protocol/price.js'
import { valueProblem } from '../../../protocol/validate.js'
import { PREVIEW_DOCUMENTS } from '../../models/served-model.js'
import type { ReadEngine } from '../read-engine.js'

/**
 * Sets the values that the renderer needs: a document may leave them out, and may have others that it cannot draw. Does
 * not close the shared renderer.
 */
export const readPreview: ReadEngine =
  (_settings, { kind }) =>
  ({ preview }) => {
    const renderer = preview()
    const { input: schema } = PREVIEW_DOCUMENTS[kind]
    const defaults = Object.entries({ prompt: '', ...defaultsOf({ input: schema }) })
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
