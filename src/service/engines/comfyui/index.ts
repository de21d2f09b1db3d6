/**
 * The engine `comfyui`: renders a workflow on a ComfyUI server. The workflow is a file, exported for the API; a document
 * names the inputs of its nodes that get the values of a run.
 */
import { mediaParameters } from '../../../protocol/media-parameters.js'
import { mayCost } from '../../../protocol/price.js'
import type { ReadEngine } from '../read-engine.js'
import { createUpstream } from '../upstream/index.js'
import { createJobEngine } from '../upstream/jobs.js'
import { createComfyServer } from './server.js'
import { readSlots } from './slots.js'
import { parseWorkflow } from './workflow.js'

const NO_WORKFLOW =
  '. In ComfyUI, choose Workflow > Export (API), and add the file: workflow: flow.json in a model file, or #flow.json after ' +
  'the URL of --engine'

export const readComfyui: ReadEngine = (settings, document) => {
  const url = settings.url('url')
  const key = settings.secret('key_env')
  const partnerKey =
    settings.value('partner_key_env') === undefined
      ? settings.optionalSecret('COMFY_API_KEY')
      : settings.secret('partner_key_env')
  const text = settings.file('workflow', NO_WORKFLOW)
  const parsed = text === undefined ? undefined : parseWorkflow(text)
  if (parsed?.ok === false) settings.report(['workflow'], parsed.wrong)
  const workflow = parsed?.ok ? parsed.value : undefined
  const slots = readSlots(settings, document, workflow)
  const model = { workflow: workflow ?? {}, slots, media: mediaParameters(document.input), partnerKey }
  return (parts) => {
    // Comfy charges for the nodes of its partners.
    const hasCost = mayCost(document) || partnerKey !== undefined
    const upstream = createUpstream({ url, key, otherKey: partnerKey, hasCost, parts })
    return createJobEngine(createComfyServer(upstream, model), parts.clock)
  }
}
