/** The pages of the runs, their live parts, and what can be done with a run. */
import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ShownRun } from '../../console/parts.js'
import { RunPage, StateAnswer, type StateView } from '../../console/run-page.js'
import { LiveAnswer, type RunsLayout, RunsPage } from '../../console/runs-page.js'
import { isSentImage } from '../../protocol/media.js'
import { mediaParameters, mediaSources } from '../../protocol/media-parameters.js'
import { defaultsOf } from '../../protocol/price.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { sendStoredFile } from '../http/stored-file.js'
import { findDocument } from '../models/served-model.js'
import { choiceIn, cursorIn, numberIn, type Query, textIn } from '../rules/console-requests.js'
import { Refusal } from '../rules/refusal.js'
import type { KeyName, ListedRun, RunFilter } from '../store/lists.js'
import { inputKey, outputUrl, type StoredFile } from '../store/run.js'
import type { ById, Site } from './site.js'

const PAGE_SIZE = 24
/** Maximum number of runs under way that a page asks for. */
const MAX_KNOWN = 1_000
const MAX_SEARCH_LENGTH = 1_000

interface Asked {
  Querystring: Query
}

export function addRunRoutes(app: FastifyInstance, site: Site): void {
  const { store, models, endpoints } = site.options

  app.get('/', (_request, reply) => site.redirect(reply, '/runs'))

  app.get<Asked>('/runs', async (request, reply) => {
    const accountId = site.account(request)
    const filter = filterOf(accountId, request.query)
    const before = cursorIn(request.query, 'before')
    const [{ runs, next }, keys] = await Promise.all([
      store.listRuns({ ...filter, before, limit: PAGE_SIZE }),
      keyChoices(site, accountId),
    ])
    return site.page(reply, RunsPage, {
      query: {
        status: filter.status,
        model: filter.model,
        key: filter.key === undefined ? undefined : String(filter.key),
        search: filter.search,
      },
      layout: layoutOf(request.query),
      runs: runs.map((run) => shownRun(site, run)),
      next,
      models: models.map(({ name }) => name),
      keys,
    })
  })

  /** One request for all rows of a page: 204, or the rows that changed. */
  app.get<Asked>('/runs/live', async (request, reply) => {
    // Each row sends `<id>.<version>`.
    const known = new Map(
      [request.query.at ?? []].flat().map((at) => String(at).split('.') as [string, string]),
    )
    if (known.size > MAX_KNOWN) throw new Refusal('bad_request')
    if (known.size === 0) return reply.code(204).send()
    const changed = (await store.findRuns([...known.keys()], site.account(request)))
      .map((run) => shownRun(site, run))
      .filter(({ id, version }) => known.get(id) !== version)
    if (changed.length === 0) return reply.code(204).send()
    return site.part(reply, LiveAnswer, {
      layout: layoutOf(request.query),
      changed,
    })
  })

  app.get<ById>('/runs/:id', async (request, reply) =>
    site.page(reply, RunPage, await viewOf(site, request, request.params.id)),
  )

  /** The version is in the URL: with an ETag, the browser turns a 304 into a 200, and the part is swapped again. */
  app.get<ById & { Querystring: { version?: string } }>('/runs/:id/state', async (request, reply) => {
    const [run] = await store.findRuns([request.params.id], site.account(request))
    if (run !== undefined && shownRun(site, run).version === request.query.version)
      return reply.code(204).send()
    return site.part(reply, StateAnswer, await viewOf(site, request, request.params.id))
  })

  site.post(app, '/runs/:id/cancel', async (_form, request, reply) => {
    const { id } = request.params as ById['Params']
    await endpoints.cancelRun(site.account(request), id, site.proof(request))
    return site.redirect(reply, `/runs/${id}`)
  })
}

/** Pictures of runs: thumbnails, and the images that were sent with a run. */
export function addPictureRoutes(app: FastifyInstance, site: Site): void {
  const { store, files, makeThumbnail } = site.options

  app.get<{ Params: { id: string; position: string } }>(
    '/runs/:id/references/:position',
    async (request, reply) => {
      const { id, position } = request.params
      const file = await findReference(site, site.account(request), id, Number(position))
      return sendStoredFile(request, reply, files, file)
    },
  )

  /** A picture of which no thumbnail can be made is shown as it is. */
  app.get<ById>('/runs/:id/thumbnail', async (request, reply) => {
    const closed = new AbortController()
    reply.raw.once('close', () => closed.abort(new Refusal('bad_request', 'The connection was closed.')))
    const [run] = await store.findRuns([request.params.id], site.account(request))
    const picture = run?.outputs[0]
    if (picture === undefined || makeThumbnail === undefined) throw new Refusal('not_found')
    try {
      const bytes = await makeThumbnail(picture, closed.signal)
      reply.header('cache-control', 'private, max-age=31536000, immutable')
      return reply.type('image/webp').send(bytes)
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'not_found')) throw error
      // Each view of the list would try to decode it again.
      reply.header('cache-control', 'private, max-age=3600')
      return site.redirect(reply, outputUrl('', picture))
    }
  })
}

const layoutOf = ({ view }: Query): RunsLayout => (view === 'grid' ? 'grid' : 'list')

const filterOf = (accountId: number, query: Query): Omit<RunFilter, 'limit'> => ({
  accountId,
  status: choiceIn(query, 'status', LOCAL_STATUSES),
  model: textIn(query, 'model'),
  key: numberIn(query, 'key', 1, Number.MAX_SAFE_INTEGER),
  search: textIn(query, 'search', MAX_SEARCH_LENGTH),
})

/** The newest keys. An account can have more, but most of those are disabled. */
export const keyChoices = ({ options: { store } }: Site, accountId: number): Promise<readonly KeyName[]> =>
  store.listAccountKeys({ accountId, limit: 100 })

function shownRun({ options }: Site, run: ListedRun): ShownRun {
  const state = run.status === 'processing' ? options.worker.renderStateOf(run.id) : undefined
  const document = findDocument(options.models, run.model)
  const prompt = run.prompt ?? ''
  const { status, failure, isRefunded, isRemoved } = run
  const changing = {
    status,
    failure,
    isRefunded,
    isRemoved,
    progress: state?.progress === undefined ? undefined : Math.round(100 * state.progress),
    queuePosition: state?.queue_position,
  }
  return {
    ...run,
    ...changing,
    version: createHash('sha256').update(JSON.stringify(changing)).digest('base64url').slice(0, 12),
    prompt,
    ratio: ratioOf(
      run.aspectRatio ?? (document && defaultsOf(document.input).aspect_ratio),
      run.kind === 'video',
    ),
    key: run.key?.name,
    outputs: run.outputs.map((output, index) => ({
      ...output,
      url: outputUrl('', output),
      savedName: `${run.id}${index === 0 ? '' : `-${index + 1}`}${extname(output.name)}`,
    })),
  }
}

function ratioOf(text: unknown, isWide: boolean): readonly [number, number] {
  const [, width, height] = /^(\d{1,4}):(\d{1,4})$/.exec(String(text)) ?? []
  if (Number(width) > 0 && Number(height) > 0) return [Number(width), Number(height)]
  return isWide ? [16, 9] : [1, 1]
}

/** Throws `Refusal` (404) for a run of another account. */
async function viewOf(site: Site, request: FastifyRequest, id: string): Promise<StateView> {
  const { store, models, baseUrl } = site.options
  const accountId = site.account(request)
  const [listed] = await store.findRuns([id], accountId)
  const run = await store.findRun(id, accountId)
  if (listed === undefined || run === undefined) throw new Refusal('run_not_found')
  return {
    run: shownRun(site, listed),
    input: run.input,
    document: findDocument(models, run.model),
    baseUrl: baseUrl(request),
  }
}

/** Returns a file that was sent with the run. `position`: its index among the sources of the run. Throws `Refusal` (404). */
async function findReference(
  { options: { store, models } }: Site,
  accountId: number,
  id: string,
  position: number,
): Promise<StoredFile> {
  const run = await store.findRun(id, accountId)
  if (run === undefined) throw new Refusal('run_not_found')
  const media = mediaParameters(findDocument(models, run.model)?.input)
  const { value: file } = mediaSources(run.input, media.keys())[position] ?? {}
  if (!isSentImage(file)) throw new Refusal('not_found')
  const { sha256, bytes, content_type: contentType } = file
  return { key: inputKey(run.id, sha256), contentType, bytes, sha256, name: `reference-${position + 1}` }
}
