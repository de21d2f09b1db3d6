/**
 * The engine `comfyui`: renders a workflow on a ComfyUI server. The workflow is a file, exported for the API; a document
 * names the inputs of its nodes that get the values of a run.
 */

import type { Clock } from '../../../host/clock.js'
import { sha256OfFile } from '../../../host/files.js'
import { type MediaParameters, mediaParameters } from '../../../protocol/media-parameters.js'
import { isObject } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import type { Engine, RenderJob } from '../engine.js'
import type { ReadEngine } from '../read-engine.js'
import { createUpstream } from '../upstream/index.js'
import { createJobEngine, type JobServer } from '../upstream/jobs.js'
import { fetchFiles, publishOutputs } from '../upstream/outputs.js'
import { type FormField, mediaFileOf, referencesOf, type SourceFile } from '../upstream/request-body.js'
import { JobEnded, UpstreamError } from '../upstream/upstream-error.js'
import type { ServerFile } from './answers.js'
import { type ComfyServer, createComfyServer } from './jobs.js'
import { checkReferences, type ReadSlots, readSlots, slotValues } from './slots.js'
import { filledWorkflow, parseWorkflow, type Workflow } from './workflow.js'

/** Folder for references within the server's folder of inputs: no file of the user is overwritten. */
const UPLOAD_FOLDER = 'rushes'

const NO_WORKFLOW =
  '. In ComfyUI, choose Workflow > Export (API), and add the file: workflow: flow.json in a model file, or #flow.json after ' +
  'the URL of --engine'

export const readComfyui: ReadEngine = (settings, document) => {
  const url = settings.url('url')
  const key = settings.secret('key_env')
  const partnerKey = settings.secret('partner_key_env', 'COMFY_API_KEY', true)
  const text = settings.file('workflow', NO_WORKFLOW)
  const parsed = text === undefined ? undefined : parseWorkflow(text)
  if (parsed?.ok === false) settings.report(['workflow'], parsed.wrong)
  const workflow = parsed?.ok ? parsed.value : undefined
  const media = mediaParameters(document.input)
  const read = readSlots(settings, document, workflow)
  // Only a document without problems is rendered, and it has a URL.
  return (parts) => {
    // Comfy charges for the nodes of its partners.
    const hasCost = mayCost(document) || partnerKey !== undefined
    const upstream = createUpstream({ url: url as URL, key, otherKey: partnerKey, hasCost, parts })
    const server = createComfyServer(upstream, partnerKey)
    return createComfyuiEngine(server, parts.clock, { workflow: workflow ?? {}, read, media })
  }
}

interface WorkflowModel {
  readonly workflow: Workflow
  readonly read: ReadSlots
  readonly media: MediaParameters
}

function createComfyuiEngine(
  server: ComfyServer,
  clock: Clock,
  { workflow, read, media }: WorkflowModel,
): Engine {
  const { upstream } = server

  /** Returns the name by which the workflow loads the uploaded file. */
  async function upload(file: SourceFile, job: RenderJob): Promise<string> {
    const extension = file.name.slice(file.name.lastIndexOf('.'))
    const image = { ...file, name: `${await sha256OfFile(file.path)}${extension}` }
    const form: readonly FormField[] = [
      ['image', image],
      ['type', 'input'],
      ['subfolder', UPLOAD_FOLDER],
    ]
    const value = await upstream.value(
      { method: 'POST', path: 'upload/image', form, isQuick: true },
      job.signal,
    )
    if (!isObject(value) || typeof value.name !== 'string')
      throw new UpstreamError('ComfyUI returned no name for the uploaded reference image.')
    return value.subfolder === '' ? value.name : `${String(value.subfolder ?? UPLOAD_FOLDER)}/${value.name}`
  }

  const view = ({ filename, subfolder, type }: ServerFile, job: RenderJob, maxBytes: number) =>
    upstream.file(`view?${new URLSearchParams({ filename, subfolder, type })}`, job, maxBytes)

  const jobs: JobServer<readonly ServerFile[]> = {
    ...server,
    async create(job) {
      const references = await referencesOf(job)
      checkReferences(references.length, read.slots)
      return server.plan(job, async () => {
        const images: string[] = []
        for (const reference of references) images.push(await upload(reference, job))
        const input = { ...job.input }
        for (const [name, [path]] of Object.entries(job.media ?? {}))
          input[name] = await upload(await mediaFileOf(path, name, media.get(name) ?? 'file', 0), job)
        return filledWorkflow(workflow, slotValues(read, input, images))
      })
    },
    async outputs(files, job) {
      if (files.length > 0)
        return await publishOutputs(
          job,
          await fetchFiles(files, (file, maxBytes) => view(file, job, maxBytes)),
          [...['image', 'video', 'audio']],
        )
      throw new JobEnded(
        'ComfyUI finished the workflow without an image or a video. Either it has no node that saves one, or the server ' +
          'has rendered it before and left out its outputs: give it a slot for the seed.',
      )
    },
  }

  return {
    ...createJobEngine(jobs, clock),
    close: () => upstream.close(),
  }
}
