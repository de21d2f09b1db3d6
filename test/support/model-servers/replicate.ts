/** The predictions and files of Replicate, as docs/engines.md describes them. */
import { ONE_PIXEL_PNG } from '../engines.js'
import { SECRET } from './fal.js'
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'

interface Prediction {
  readonly id: string
  readonly model: string
  readonly version: string | undefined
  readonly input: Readonly<Record<string, unknown>>
  status: string
  polls: number
}

export interface ReplicateOptions {
  /** States of a prediction, one for each poll; the last one stays. */
  readonly states?: readonly string[]
  /** Fields of a prediction that has ended. Default: an `output` of one link, which is fresh with each poll. */
  ended?(prediction: Prediction, picture: string): object
}

interface ReplicateServer extends ModelServer {
  /** Accepted predictions, in order. Each one costs money. */
  readonly predictions: Prediction[]
  readonly files: readonly Buffer[]
  /** The outputs, at another address. */
  readonly delivery: ModelServer
}

export async function createReplicateServer({
  states = ['starting', 'processing', 'succeeded'],
  ended = (_, picture) => ({ output: [picture] }),
}: ReplicateOptions = {}): Promise<ReplicateServer> {
  const predictions: Prediction[] = []
  const files: Buffer[] = []

  function create(model: string, { input, version }: { input: Prediction['input']; version?: string }) {
    const id = `r${predictions.length + 1}`
    const prediction = { id, model, version, input, status: 'starting', polls: 0 }
    predictions.push(prediction)
    return prediction
  }

  function shown(prediction: Prediction, base: string): object {
    const { polls, ...fields } = prediction
    const url = `${base}/predictions/${prediction.id}`
    const isEnded = !['starting', 'processing'].includes(prediction.status)
    return {
      ...fields,
      ...{
        output: null,
        error: null,
        data_removed: false,
        urls: { get: url, cancel: `${url}/cancel` },
      },
      ...(isEnded && ended(prediction, `${delivery.url}/${prediction.id}/${polls}`)),
    }
  }

  const delivery = await createModelServer(({ path, headers }): ServerAnswer => {
    if (headers.authorization !== undefined) return { status: 400, body: { detail: 'a key' } }
    const [, id, poll] = path.split('/')
    if (!predictions.some((each) => each.id === id && String(each.polls) === poll)) return { status: 404 }
    return { body: ONE_PIXEL_PNG, headers: { 'content-type': 'image/png' } }
  })

  async function routes(request: ServerRequest): Promise<ServerAnswer> {
    const { method, path, headers } = request
    const base = `http://${headers.host}`
    if (headers.authorization !== `Bearer ${SECRET}`)
      return { status: 401, body: { detail: 'Unauthenticated' } }
    if (path === '/files') {
      const file = (await request.form()).get('content') as File
      files.push(Buffer.from(await file.arrayBuffer()))
      return { status: 201, body: { id: 'f', urls: { get: `${base}/files/${files.length}` } } }
    }
    const [, model] = /^\/models\/(.+)\/predictions$/.exec(path) ?? []
    if (method === 'POST' && model !== undefined)
      return { status: 201, body: shown(create(model, request.json()), base) }
    if (path === '/predictions' && method === 'POST')
      return { status: 201, body: shown(create('acme/pinned', request.json()), base) }
    const prediction = predictions.find(({ id }) => path === `/predictions/${id}`)
    if (prediction === undefined) return { status: 404, body: { detail: 'Not found.', status: 404 } }
    prediction.status = states[Math.min(prediction.polls++, states.length - 1)] ?? prediction.status
    return { body: shown(prediction, base) }
  }

  return Object.assign(await createModelServer(routes), { delivery, predictions, files })
}
