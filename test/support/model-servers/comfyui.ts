/** A ComfyUI server that draws nothing, as docs/engines.md describes the interface. It accepts only UUIDs as ids. */
import { randomUUID } from 'node:crypto'
import { ONE_PIXEL_PNG } from '../engines.js'
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'
import { FILM } from './videos.js'

interface Node {
  readonly class_type: string
  readonly inputs: Readonly<Record<string, unknown>>
}

interface Job {
  readonly id: string
  readonly graph: Readonly<Record<string, Node>>
  readonly clientId: string | undefined
}

interface ComfyServer extends ModelServer {
  /** Ids of the jobs that wait or run, in order. The first one runs. */
  queue(): readonly string[]
  /** Ids of all jobs that were started to render, in order. */
  readonly rendered: readonly string[]
  /** Ids of the jobs that were interrupted while they ran. */
  readonly interrupted: readonly string[]
  /** Workflows as they were accepted, in order. */
  readonly graphs: readonly Readonly<Record<string, Node>>[]
  readonly uploads: Map<string, Uint8Array>
  /** Adds the job of another user to the end of the queue, and returns its id. */
  addForeign(): string
  /** Ends the running job; by default with its outputs. */
  finish(entry?: object): void
  /** Loses queue and history, like a restart of the server. */
  restart(): void
}

export interface ComfyOptions {
  /** Whether it ignores the ids of a request and of an interrupt, as versions before July 2025. */
  readonly isOld?: boolean
  /** Whether a job ends by itself at its second look into the history. Otherwise the test calls `finish`. */
  readonly isQuick?: boolean
}

/** Lists that output nodes of each class write, by the example of real nodes. */
const OUTPUTS: Readonly<Record<string, (id: string) => object>> = {
  SaveImage: (id) => ({ images: [{ filename: `${id}_00001_.png`, subfolder: '', type: 'output' }] }),
  PreviewImage: (id) => ({ images: [{ filename: `${id}_temp.png`, subfolder: '', type: 'temp' }] }),
  SaveVideo: (id) => ({
    images: [{ filename: `${id}_00001_.mp4`, subfolder: 'video', type: 'output' }],
    animated: [true],
  }),
}

const CANONICAL_UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export async function createComfyServer({
  isOld = false,
  isQuick = true,
}: ComfyOptions = {}): Promise<ComfyServer> {
  let queue: Job[] = []
  let history = new Map<string, object>()
  const looks = new Map<string, number>()
  const rendered: string[] = []
  const interrupted: string[] = []
  const graphs: Job['graph'][] = []
  const uploads = new Map<string, Uint8Array>()
  const cached = new Set<string>()

  const push = (job: Job): void => {
    queue.push(job)
    if (queue.length === 1) rendered.push(job.id)
  }
  const end = (entry: object): void => {
    const job = queue.shift()
    if (job === undefined) throw new Error('no job is running')
    history.set(job.id, { prompt: [1, job.id, job.graph, {}, []], meta: {}, ...entry })
    if (queue[0] !== undefined) rendered.push(queue[0].id)
  }
  const statusOf = (status: string, ...messages: unknown[]) => ({
    outputs: {},
    status: { status_str: status, completed: status === 'success', messages },
  })
  const interrupt = (): void => {
    interrupted.push(queue[0]?.id ?? '')
    end(statusOf('error', ['execution_interrupted', { node_id: '3' }]))
  }
  function succeed(): void {
    const { graph, clientId } = queue[0] as Job
    const key = JSON.stringify(graph)
    // The fault of versions before July 2026 (PR 14939).
    const isEmpty = cached.has(key) && clientId === undefined
    cached.add(key)
    const nodes = Object.entries(graph).flatMap(([id, { class_type }]) => {
      const output = OUTPUTS[class_type]
      return output === undefined ? [] : [[id, output(id)]]
    })
    const outputs = isEmpty ? {} : Object.fromEntries(nodes)
    end({ ...statusOf('success', ['execution_start', {}], ['execution_success', {}]), outputs })
  }

  function prompt(request: ServerRequest): ServerAnswer {
    const { prompt: graph, client_id: clientId, prompt_id } = request.json()
    if (!isOld && prompt_id !== undefined && !CANONICAL_UUID.test(prompt_id))
      return refused('invalid_prompt_id', 'prompt_id must be a valid UUID', {})
    const errors = nodeErrors(graph)
    const isSaved = (id: string) => OUTPUTS[graph[id].class_type] !== undefined && errors[id] === undefined
    // A broken node drops all outputs, and a broken output only itself.
    const isCut = Object.values(errors).some(({ class_type }) => OUTPUTS[class_type] === undefined)
    if (isCut || !Object.keys(graph).some(isSaved))
      return refused('prompt_outputs_failed_validation', 'Prompt outputs failed validation', errors)
    const id = isOld ? randomUUID() : (prompt_id ?? randomUUID())
    graphs.push(graph)
    push({ id, graph, clientId })
    return { body: { prompt_id: id, number: graphs.length, node_errors: errors } }
  }

  async function upload(request: ServerRequest): Promise<ServerAnswer> {
    const form = await request.form()
    const image = form.get('image') as File
    const subfolder = String(form.get('subfolder') ?? '')
    let name = image.name
    const bytes = new Uint8Array(await image.arrayBuffer())
    const other = uploads.get(`${subfolder}/${name}`)
    // A file with the same content keeps its name.
    const isTaken = other !== undefined && !Buffer.from(other).equals(bytes)
    if (isTaken && form.get('overwrite') !== 'true') name = `(1) ${name}`
    uploads.set(`${subfolder}/${name}`, bytes)
    return { body: { name, subfolder, type: 'input' } }
  }

  function looked(id: string): ServerAnswer {
    looks.set(id, (looks.get(id) ?? 0) + 1)
    if (isQuick && (looks.get(id) ?? 0) > 1 && queue[0]?.id === id) succeed()
    const entry = history.get(id)
    return { body: entry === undefined ? {} : { [id]: entry } }
  }

  function routes(request: ServerRequest): ServerAnswer | Promise<ServerAnswer> {
    const { method, path, query } = request
    const [, , id = ''] = path.split('/')
    if (method === 'POST' && path === '/prompt') return prompt(request)
    if (method === 'POST' && path === '/upload/image') return upload(request)
    if (path.startsWith('/history/')) return looked(id)
    if (method === 'GET' && path === '/queue') {
      const entries = queue.map((job, index) => [index, job.id, job.graph, {}, []])
      return { body: { queue_running: entries.slice(0, 1), queue_pending: entries.slice(1) } }
    }
    if (method === 'POST' && path === '/queue') {
      const { delete: ids = [] } = request.json()
      queue = queue.filter((job, index) => index === 0 || !ids.includes(job.id))
      return {}
    }
    if (method === 'POST' && path === '/interrupt') {
      const { prompt_id } = request.body.length > 0 ? request.json() : { prompt_id: undefined }
      const isMeant = isOld || prompt_id === undefined || queue[0]?.id === prompt_id
      if (queue.length > 0 && isMeant) interrupt()
      return {}
    }
    if (path === '/view') {
      const extension = query.get('filename')?.split('.').at(-1) ?? ''
      return { body: extension === 'png' ? ONE_PIXEL_PNG : FILM }
    }
    return { status: 404, body: '404: Not Found' }
  }

  const server = await createModelServer(routes)
  return Object.assign(server, {
    queue: () => queue.map(({ id }) => id),
    rendered,
    interrupted,
    graphs,
    uploads,
    addForeign() {
      const id = randomUUID()
      push({ id, graph: {}, clientId: 'another' })
      return id
    },
    finish: (entry?: object) => (entry === undefined ? succeed() : end(entry)),
    restart() {
      queue = []
      history = new Map()
    },
  })
}

interface NodeErrors {
  readonly errors: readonly object[]
  readonly class_type: string
}

function nodeErrors(graph: Job['graph']): Readonly<Record<string, NodeErrors>> {
  const errors: Record<string, NodeErrors> = {}
  for (const [id, { class_type, inputs }] of Object.entries(graph)) {
    const { sampler_name: sampler, filename_prefix } = inputs
    const add = (type: string, message: string, details: string): void => {
      errors[id] = { errors: [{ type, message, details }], class_type }
    }
    if (sampler !== undefined && sampler !== 'euler')
      add('value_not_in_list', 'Value not in list', `sampler_name: '${sampler}' not in (list of length 2)`)
    if (filename_prefix === '') add('required_input_missing', 'Required input is missing', 'filename_prefix')
  }
  return errors
}

const refused = (type: string, message: string, node_errors: object): ServerAnswer => ({
  status: 400,
  body: { error: { type, message, details: '', extra_info: {} }, node_errors },
})
